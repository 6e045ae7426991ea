"""The tokens that would make a pattern fail, of those that the automaton allows.

Nearly everywhere in a pattern only tokens can fail that hold a whole range, quantifier or reference.  They are listed
once per vocabulary and tried.  Elsewhere, as behind the dash of a range, the vocabulary's trie is walked with the
checker until it is free again.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.distinct.json_text import QUOTE, escaped
from guided.constraint.distinct.token_texts import NO_TOKENS, TokenTexts
from guided.constraint.formats.pattern_text import BEGINNING, FREE_IN_CLASS, PatternText
from guided.constraint.formats.refusals import FormatRefusals, token_array
from guided.constraint.per_vocabulary import PerVocabulary
from guided.constraint.product import ProductMachine
from guided.grammar.formats.pattern_reading import START
from guided.grammar.formats.regex_automata import SKELETONS
from guided.grammar.formats.regex_languages import skeletons
from guided.grammar.regular.expr import json_string
from guided.grammar.regular.stepwise import by_byte
from guided.vocab.vocabulary import Vocabulary

if TYPE_CHECKING:
    from guided.constraint.effects.token_effects import TokenEffects

_REFERRING = re.compile(rb"\\\\[1-9k]|\?<|\\u")
"""Tokens that can fail, where the pattern is free, for what they refer to; others may match too."""
_OUTSIDE = re.compile(rb"\{[0-9]|\[.*[-\\]|\\", re.DOTALL)
_IN_CLASS = re.compile(rb"[\\-]|\{[0-9]")
"""The others that can fail there, outside and inside a class; or end where it is not free."""
_TYPICAL = rb"^[^a-z\d'](?:a|\d{2,3})+?[A-Z]*$"
"""A pattern in which masks are made before they are asked for."""
_DEEP = "q" * 32
"""Open groups: more than a token closes, of which the automaton has seen that there are so many."""


class Found(NamedTuple):
    """Tokens that fail behind some place, and those after which the automaton's shortest way may fail."""

    failed: NDArray[np.int64]
    undecided: NDArray[np.int64]

    def less(self, tokens: NDArray[np.int64]) -> Found:
        """The same without some tokens."""
        return Found(*(tokenset.difference(part, tokens) for part in self))


class PatternTokens(PerVocabulary):
    """Facts about the tokens of one vocabulary, in the order of its trie."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        texts = TokenTexts.of(vocabulary)
        self.spelled = texts.spelled
        trie = vocabulary.trie
        self.byte, self.end = memoryview(trie.byte.data), memoryview(trie.end.data)
        self.offset, self.ids = trie.token_offset, trie.token_ids
        signs = np.zeros(256, np.int64)
        signs[list(b'"\\<>{[-')] = 1
        spelling = vocabulary.spelling
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(signs[spelling.data])])
        signed = before[spelling.offsets[1:]] > before[spelling.offsets[:-1]]
        places = np.flatnonzero(signed[trie.token_ids])
        data = {place: texts.spelled(int(self.ids[place])) for place in places.tolist()}
        self._in_names = _places(data, re.compile(rb"[>\\]"))
        referring = _places(data, _REFERRING)
        self._referring = self.ids[referring].tolist()
        outside, in_class = _places(data, _OUTSIDE), _places(data, _IN_CLASS)
        self._outside, self._in_class = np.union1d(referring, outside), np.union1d(referring, in_class)
        self._others = {
            "atom": self.ids[np.setdiff1d(outside, referring)].tolist(),
            "items": self.ids[np.setdiff1d(in_class, referring)].tolist(),
        }
        self.dash = next((node for node in _children(self.end, 0, len(self.byte)) if self.byte[node] == 0x2D), 0)
        """The node of the dash, 0 where no token begins with it."""
        self._dashes = self.ids[_places(data, re.compile(rb"-"), whole=False)].astype(np.int64)
        self._found: dict[tuple[str, bool, bool, int, frozenset[bytes]], Found] = {}
        self._between: dict[tuple[bool, int, int, int], list[int]] = {}
        opening = [int(self.ids[place]) for place, text in data.items() if _fails_behind_quote(text)]
        self.opening = token_array(opening)
        """Tokens in which a string begins that is no pattern."""
        self._is_prepared = False
        # Made with the constraint, and not in the middle of the first pattern.
        for state in (("atom", "."), ("items", "."), ("group", ".")):
            for _ in self.found_free(BEGINNING._replace(reading=START._replace(state=state))):
                pass
        if self.dash:
            for node in _children(self.end, self.dash, self.end[self.dash]):
                for depth in (1, 2):
                    self.between(True, int(self.offset[node + depth - 1]), int(self.offset[self.end[node]]), depth)

    def prepare(self, effects: TokenEffects) -> None:
        """Make what masks in a typical pattern ask for: 5 ms at some of its places, which no token should take."""
        if self._is_prepared:
            return
        self._is_prepared = True
        states, reading = effects.states, START
        every_state = [states.add(json_string(skeletons(), canonical=canonical)) for canonical in (False, True)]
        every = np.full(effects.store.arrays.masks.shape[1], -1, np.int32).view(np.uint32)
        for byte in _TYPICAL:
            for at, state in enumerate(every_state):
                effects.need(1, effects.root, state)
                every_state[at] = next(target for low, high, target in states.edges(state) if low <= byte <= high)
            _Walk(self, every, PatternText(reading, b""))
            after = reading.step(byte)
            assert after is not None
            reading = after

    def found_free(self, text: PatternText) -> Iterator[Found]:
        """What tokens do where the pattern is free; behind an item of a class only those that begin with no dash."""
        kind = text.reading.state[0]
        if kind in FREE_IN_CLASS:
            yield from self._without_dash(kind == "behind", "items", text)
        else:
            yield from self._without_dash(False, "group" if kind == "group" else "atom", text)

    def _without_dash(self, dash: bool, kind: str, text: PatternText) -> Iterator[Found]:
        reading = text.reading
        place = PatternText(reading._replace(state=(kind, "." + _DEEP)), b"")
        for refers in (True, False):
            about = (reading.number, reading.names) if refers else (0, frozenset[bytes]())
            key = (kind, dash, refers, *about)
            found = self._found.get(key)
            if found is None:
                some = self._referring if refers else self._others["items" if kind == "items" else "atom"]
                every = self._found.get((kind, False, refers, *about)) or self.read(place, some, 0)
                found = self._found[key] = every.less(self._dashes) if dash else every
            yield found

    def read(self, text: PatternText, some: Iterable[int], depth: int) -> Found:
        """What is left of some tokens, of which so many bytes led to a place."""
        failed, undecided = [], []
        # Tokens come in the trie's order, and are read from where they part with the one before.
        before = b""
        places: list[PatternText | None] = [text]
        for token in some:
            data = self.spelled(token)[depth:]
            shared = 0
            for one, other in zip(before[: len(places) - 1], data, strict=False):
                if one != other:
                    break
                shared += 1
            del places[shared + 1 :]
            before = data
            now = places[shared]
            for byte in data[shared:]:
                if now is None or (byte == QUOTE and not now.pending):
                    break
                now = now.step(byte)
                places.append(now)
            if now is None:
                failed.append(token)
            elif len(places) > len(data) and now.is_doubtful:
                undecided.append(token)
        return Found(token_array(failed), token_array(undecided))

    def between(self, in_class: bool, first: int, stop: int, depth: int) -> list[int]:
        """Tokens that may fail where the pattern is free, for what is behind so many of their bytes.

        Among those at some places of the trie's order.
        """
        key = (in_class, first, stop, depth)
        found = self._between.get(key)
        if found is None:
            some = self._at(self._in_class if in_class else self._outside, first, stop)
            find = (_IN_CLASS if in_class else _OUTSIDE).search, _REFERRING.search
            found = [token for token in some if any(search(self.spelled(token), depth) for search in find)]
            self._between[key] = found
        return found

    def in_names(self, first: int, stop: int) -> list[int]:
        """Tokens that may end the name of a group, and behind it more."""
        return self._at(self._in_names, first, stop)

    def _at(self, places: NDArray[np.int64], first: int, stop: int) -> list[int]:
        low, high = np.searchsorted(places, (first, stop))
        found: list[int] = self.ids[places[low:high]].tolist()
        return found


class PatternRefusals(FormatRefusals[PatternTokens]):
    """Refused tokens by state of one machine."""

    def __init__(self, machine: ProductMachine[PatternText], effects: TokenEffects) -> None:
        super().__init__(machine, PatternTokens.of(machine.vocabulary))
        self._tokens.prepare(effects)

    def inside(self, text: PatternText, row: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of the tokens of a row, behind a place in a pattern: those that fail, and the undecided others."""
        walk = _Walk(self._tokens, row, text)
        return walk.failed(), walk.undecided()


class _Walk:
    """One search for the tokens of a row that fail behind a place in a pattern."""

    def __init__(self, tokens: PatternTokens, row: NDArray[np.uint32], text: PatternText) -> None:
        self._tokens = tokens
        self._row = row
        self._failed: list[NDArray[np.int64]] = []
        self._undecided: list[NDArray[np.int64]] = []
        self._from(text, 0, len(tokens.byte), 0)

    def failed(self) -> NDArray[np.int64]:
        """The tokens that fail."""
        return self._allowed(self._failed)

    def undecided(self) -> NDArray[np.int64]:
        """The others after which the automaton's shortest way to an end may fail."""
        return self._allowed(self._undecided)

    def _allowed(self, some: list[NDArray[np.int64]]) -> NDArray[np.int64]:
        found = np.concatenate([NO_TOKENS, *some])
        return found[tokenset.are_in(self._row, found)]

    def _from(self, text: PatternText, node: int, stop: int, depth: int) -> None:
        """The tokens below a node of the trie, ``depth`` bytes of which led to a place."""
        tokens = self._tokens
        offset = tokens.offset
        first, last = int(offset[node + 1]), int(offset[stop])
        if text.is_free:
            if depth:
                in_class = text.reading.state[0] in FREE_IN_CLASS
                self._add(tokens.read(text, tokens.between(in_class, first, last, depth), depth))
            else:
                for found in tokens.found_free(text):
                    self._add(found)
                if text.reading.state[0] == "behind" and tokens.dash:
                    self._through(text, tokens.dash, 0)
            return
        if _in_new_name(text):
            self._add(tokens.read(text, tokens.in_names(first, last), depth))
            for name in text.reading.names:
                if name.startswith(text.reading.begun):
                    self._follow(name[len(text.reading.begun) :], node, stop)
            return
        for at in _children(tokens.end, node, stop):
            if tokens.byte[at] != QUOTE or text.pending:
                self._through(text, at, depth)

    def _through(self, text: PatternText, at: int, depth: int) -> None:
        """The tokens at and below a node, to whose parent a place belongs."""
        tokens = self._tokens
        offset, value, beyond = tokens.offset, tokens.byte[at], tokens.end[at]
        then = text.step(value)
        if then is None:
            self._failed.append(tokens.ids[offset[at] : offset[beyond]].astype(np.int64))
        elif _is_open(text, value):
            some = tokens.between(True, int(offset[at]), int(offset[beyond]), depth)
            self._add(tokens.read(text, some, depth))
        else:
            if then.is_doubtful:
                self._undecided.append(tokens.ids[offset[at] : offset[at + 1]].astype(np.int64))
            if beyond > at + 1:
                self._from(then, at, beyond, depth + 1)

    def _follow(self, rest: bytes, node: int, stop: int) -> None:
        """The tokens that spell the rest of a name that there is already are undecided: they must not end it."""
        byte, end, offset = self._tokens.byte, self._tokens.end, self._tokens.offset
        for value in rest:
            node += 1
            while node < stop and byte[node] != value:
                node = end[node]
            if node >= stop:
                return
            stop = end[node]
        if rest:
            self._undecided.append(self._tokens.ids[offset[node] : offset[node + 1]].astype(np.int64))

    def _add(self, found: Found) -> None:
        self._failed.append(found.failed)
        self._undecided.append(found.undecided)


def _children(end: memoryview, node: int, stop: int) -> Iterator[int]:
    """The nodes right below one whose subtree ends at ``stop``."""
    at = node + 1
    while at < stop:
        yield at
        at = end[at]


def _in_new_name(text: PatternText) -> bool:
    state = text.reading.state
    return not text.pending and state[0] == "name" and state[2][0] == "term"


def _is_open(text: PatternText, byte: int) -> bool:
    """Behind the dash of a range: may any character come that begins with this byte?"""
    kind, _, *rest = text.reading.state
    return kind == "range" and byte >= 0x80 and not text.pending and byte != chr(rest[0]).encode("utf-8", "replace")[0]


def _places(data: Mapping[int, bytes], pattern: re.Pattern[bytes], *, whole: bool = True) -> NDArray[np.int64]:
    """Where the texts are in which a pattern is found, anywhere or (not ``whole``) at their beginning."""
    find = pattern.search if whole else pattern.match
    return np.asarray([place for place, text in data.items() if find(text)], np.int64)


def _fails_behind_quote(data: bytes) -> bool:
    """Is there a quotation mark behind which the checker fails and the automaton does not?"""
    at = data.find(b'"') + 1
    while at:
        now, text, pending = BEGINNING, b"", b""
        for value in data[at:]:
            if value == QUOTE and not pending:
                break
            piece, pending = escaped((pending + bytes((value,))).lower()) if pending else (bytes((value,)), b"")
            if piece == b"\\" and not pending and not now.pending:
                piece, pending = b"", b"\\"
            then = now.step(value)
            text += piece
            if then is None:
                if pending or _is_skeleton(text):
                    return True
                break
            now = then
        at = data.find(b'"', at) + 1
    return False


def _is_skeleton(text: bytes) -> bool:
    """Does some skeleton of a pattern begin so?"""
    state: Hashable = SKELETONS.start
    for byte in text:
        ways = by_byte(SKELETONS.steps(state))
        if byte not in ways:
            return False
        state = ways[byte]
    return True
