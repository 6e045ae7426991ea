"""Tokens refused in or before a string that is an item, or a name, found by what is left of those that are there.

Such a token either ends a string that is there already, or holds one as a whole, or leads on in strings that are there
while no other can come of it.  Each is found from the string it would repeat or lead on in, as the string joins the
array or object; so what one mask takes grows with what has joined since the last, not with what the container holds.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.distinct.json_text import QUOTE, Expects, Level, Mode, Text
from guided.constraint.distinct.json_values import STRING_KEY
from guided.constraint.distinct.string_counts import ANY_ASCII
from guided.constraint.distinct.token_texts import NO_TOKENS, Closing, TokenTexts, is_text
from guided.constraint.distinct.unused_strings import UnusedStrings
from guided.constraint.distinct.used_keys import Link, UsedKeys
from guided.grammar.ir import Mark
from guided.kernels.layout import DEAD

if TYPE_CHECKING:
    from guided.constraint.distinct.machine import DistinctMachine

_BEHIND_STRINGS = bytes((STRING_KEY[0] + 1,))
_SETTLED = -(1 << 60)
"""For the count of a token that is refused for good."""

_Leading: TypeAlias = dict[int, tuple[int, bytes, bytes]]
"""By token that leads on in strings that are there: in how many, with which of their bytes, and what is pending."""


class _Place:
    """What is known of one place in the automaton and in a string, for the items or names up to some."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Know nothing."""
        self.upto: Link | None = None
        self.refused: NDArray[np.int64] = NO_TOKENS
        self.counts: dict[int, int] = {}
        """Of tokens that stay in the string, how many of those that are there they lead on in."""
        self.full: dict[int, tuple[int, bytes, bytes]] = {}
        """Those of them of which it is not clear that another string may come: the automaton's state behind them, the
        key of the string so far, and what is pending in it."""
        self.tried: dict[int, None] = {}
        """Tokens that may repeat one in a way that is not told here."""
        self.unseen: UnusedStrings | None = None
        """Those that may come and are not there, where all that may come are listed: then nothing is counted."""


class UsedStrings:
    """Answers for the states of one checked machine; the machine's lock must be held."""

    def __init__(self, machine: DistinctMachine) -> None:
        self._machine: DistinctMachine = weakref.proxy(machine)
        self._texts = TokenTexts.of(machine.vocabulary)
        self._places: dict[tuple[int, Mode, bytes], _Place] = {}
        self._after: dict[tuple[int, int], int] = {}
        self._quotes: dict[int, tuple[int, ...]] = {}
        self._others: dict[tuple[int, bool], int] = {}
        """By state behind a string that is there, an item or not: the state of the threads to which it is no such."""

    def refused(self, state: int, own: int, row: NDArray[np.uint32], text: Text) -> NDArray[np.int64] | None:
        """The allowed tokens that repeat an item or name, or can only come to that; None where this is not told.

        Told are those before which the text agrees with one as long as it goes, up to the end of that.
        """
        level, mode, machine = text.level, text.mode, self._machine
        if level is None or text.pending or machine.likeness.candidates(level):
            return None
        if mode is Mode.BETWEEN:
            if level.expects is Expects.VALUE:
                told = level.compares and _only_strings(level.seen)
            else:
                told = level.expects is Expects.NAME
            if not (told and self._is_free(own, level.seen)):
                return None
        elif mode is not Mode.NAME and not (mode is Mode.STRING and level.compares):
            return None
        key = (own, mode, text.text)
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = _Place()
        self._follow(place, own, row, text, level)
        if place.full:
            dead = [token for token, inside in place.full.items() if not self._goes_on(state, token, level, inside)]
            if dead:
                for token in dead:
                    del place.full[token]
                    place.counts[token] = _SETTLED
                place.refused = np.concatenate((place.refused, np.asarray(dead, np.int64)))
        if place.tried:
            repeating = [token for token in place.tried if not machine.lives(state, token)]
            if repeating:
                return np.concatenate((place.refused, np.asarray(repeating, np.int64)))
        return place.refused

    def _is_free(self, own: int, seen: UsedKeys) -> bool:
        """Can a new string begin here, and behind any white space?"""
        more_than = self._machine.look.counts.more_than
        return all(quote != DEAD and more_than(quote, b"", seen.size) for quote in self._begun(own))

    def _begun(self, own: int) -> tuple[int, ...]:
        """The states in which a string has begun, here and behind any white space."""
        machine = self._machine
        quotes = self._quotes.get(own)
        if quotes is None:
            reached = machine.look.behind_space(own)
            quotes = self._quotes[own] = tuple({machine.byte_step(at, QUOTE) for at in reached}) or (DEAD,)
        return quotes

    def _goes_on(self, state: int, token: int, level: Level, inside: tuple[int, bytes, bytes]) -> bool:
        """May a string come of one that a token is part of that is not there yet?"""
        at, key, pending = inside
        # Their number was found to be small.
        rests = self._machine.look.strings.listed(at, pending) if level.is_array else None
        return self._machine.lives(state, token) if rests is None else rests.has_new(key, level.seen)

    def _follow(self, place: _Place, own: int, row: NDArray[np.uint32], text: Text, level: Level) -> None:
        """Take in the items or names that the place does not know yet."""
        seen = level.seen
        if place.upto is seen.link:
            return
        begun = STRING_KEY + text.text if level.is_array else text.text
        inside = text.mode is not Mode.BETWEEN
        keys = self._joined(place, seen, begun)
        if keys is None:
            place.clear()
            keys = list(seen.beginning(begun))
            told = self._told(own, level, inside)
            place.unseen = None if told is None else UnusedStrings(told)
        place.upto = seen.link
        if not keys:
            return
        rests = [key[len(begun) :] for key in keys]
        dead: list[int] = []
        if place.unseen is not None:
            dead += place.unseen.ended(self._texts, row, rests, inside=inside)
        else:
            leading = self._inside(own, text, rests) if inside else self._opening(rests)
            self._lead_on(place, own, row, level, text.text, leading)
        for rest in rests:
            if inside:
                self._ending(place, own, row, level, self._texts.closing.get(rest, ()), dead)
            else:
                self._holding(place, own, row, level, rest, dead)
        if dead:
            place.refused = np.concatenate((place.refused, np.asarray(dead, np.int64)))

    def _joined(self, place: _Place, seen: UsedKeys, begun: bytes) -> list[bytes] | None:
        """The keys that begin so and are new to a place; None where it knows none, or those of another container."""
        if place.upto is None:
            return None
        joined, link = [], seen.link
        while link is not None and link is not place.upto:
            joined.append(link[0])
            link = link[1]
        return None if link is None else [key for key in joined if key.startswith(begun)]

    def _told(self, own: int, level: Level, inside: bool) -> tuple[bytes, ...] | None:
        """All strings that may come, where they are listed and each may be spelled in any way."""
        look, mark = self._machine.look, Mark.DISTINCT if level.is_array else Mark.UNDECLARED
        found: tuple[bytes, ...] | None = None
        for at in (own,) if inside else self._begun(own):
            told = look.strings.told(at, mark) if look.inside.is_text(at) else None
            if told is None or (found is not None and told != found):
                return None
            found = told
        return found

    def _ending(
        self, place: _Place, own: int, row: NDArray[np.uint32], level: Level, ways: Iterable[Closing], dead: list[int]
    ) -> None:
        """The tokens that end the string so that it is one that is there."""
        machine = self._machine
        for closing in ways:
            tokens = closing.within(row)
            if not tokens:
                continue
            after = machine.inner.advance_text(own, closing.spelling)
            key = (after, level.is_array)
            left = self._others.get(key)
            if left is None:
                if after == DEAD:
                    left = DEAD
                elif level.is_array:
                    left = machine.frames.without(after, Mark.DISTINCT)
                else:
                    left = machine.frames.without_undeclared_name(after)
                self._others[key] = left
            if left == DEAD:
                dead += tokens
            elif left != after:
                place.tried.update(dict.fromkeys(tokens))

    def _inside(self, own: int, text: Text, rests: list[bytes]) -> _Leading:
        """The tokens that lead on in what is left of those that are there, and do not end it."""
        texts, look = self._texts, self._machine.look
        found: _Leading = {}
        anyhow = look.inside.goes_on_anyhow(own, text.mode)
        uniform = not anyhow and look.is_uniform(own, text)
        for rest in rests:
            free = anyhow and is_text(rest)
            if not (free or (uniform and rest.isascii())):
                for token in texts.beginning(rest):
                    _count(found, token, rest[: texts.size(token)], b"")
            escaping = texts.escaping_halves if free else texts.escaping
            for size in range(min(len(rest), texts.longest_escaping) + 1) if escaping else ():
                for token, pending in escaping.get(rest[:size], ()):
                    _count(found, token, rest[:size], pending)
        return found

    def _opening(self, rests: list[bytes]) -> _Leading:
        """The tokens that begin a string as one that is there does."""
        texts = self._texts
        found: _Leading = {}
        for rest in rests:
            for size in range(min(len(rest), texts.longest_opening) + 1):
                for token, pending in texts.opening.get(rest[:size], ()):
                    _count(found, token, rest[:size], pending)
        return found

    def _holding(
        self, place: _Place, own: int, row: NDArray[np.uint32], level: Level, content: bytes, dead: list[int]
    ) -> None:
        """The tokens that hold a string that is there."""
        leading = self._texts.leading.get(content, ())
        self._ending(place, own, row, level, leading, dead)
        wholes = self._texts.wholes.get(content, ())
        if wholes:
            settled = {token for closing in leading for token in closing.tokens.tolist()}
            allowed = (token for token in wholes if tokenset.contains(row, token))
            place.tried.update((token, None) for token in allowed if token not in settled)

    def _lead_on(
        self, place: _Place, own: int, row: NDArray[np.uint32], level: Level, text: bytes, leading: _Leading
    ) -> None:
        """Take in tokens that lead on in some more strings."""
        machine = self._machine
        counts = machine.look.counts
        doubtful: dict[int, int] = {}
        for token, (number, _, pending) in leading.items():
            number += place.counts.get(token, 0)
            place.counts[token] = number
            if number < 0 or token in place.full or not tokenset.contains(row, token):
                continue
            if not (
                pending in ANY_ASCII and counts.more_behind_escape(self._before(own, token, pending), pending, number)
            ):
                doubtful[token] = number
        stepped = machine.inner.advance_each(own, list(doubtful)) if doubtful else []
        for (token, number), after in zip(doubtful.items(), stepped, strict=True):
            _, part, pending = leading[token]
            if after == DEAD or counts.more_than(after, pending, number):
                continue
            # A name that is surely declared repeats nothing seen.
            if level.is_array or machine.frames.inside_undeclared_name(after):
                begun = text + part
                place.full[token] = (after, STRING_KEY + begun if level.is_array else begun, pending)

    def _before(self, own: int, token: int, pending: bytes) -> int:
        """The automaton's state before the escape in which a token ends."""
        key = (own, token)
        found = self._after.get(key)
        if found is None:
            data = self._texts.spelled(token)[: -len(pending)]
            found = self._after[key] = self._machine.inner.advance_text(own, data) if data else own
        return found


def _count(found: _Leading, token: int, part: bytes, pending: bytes) -> None:
    before = found.get(token)
    found[token] = (1 if before is None else before[0] + 1, part, pending)


def _only_strings(seen: UsedKeys) -> bool:
    first = seen.first_from(b"")
    return first is not None and first.startswith(STRING_KEY) and seen.first_from(_BEHIND_STRINGS) is None
