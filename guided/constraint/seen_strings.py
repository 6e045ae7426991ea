"""Tokens refused in or before a string that is an item, or a name, found by what is left of those that are there.

Such a token either ends a string that is there already, or holds one as a whole, or leads on in strings that are there
while no other can come of it.  Each is found from the string it would repeat or lead on in, as the string joins the
array or object; so what one mask takes grows with what has joined since the last, not with what the container holds.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from guided.constraint.json_text import QUOTE, Expects, Level, Mode, Text
from guided.constraint.json_values import STRING_KEY
from guided.constraint.seen import Link, Seen
from guided.constraint.string_counts import ANY_ASCII
from guided.constraint.token_texts import NO_TOKENS, Closing, TokenTexts
from guided.grammar.ir import Mark
from guided.kernels.layout import DEAD

if TYPE_CHECKING:
    from guided.constraint.checked import CheckedMachine

_BEHIND_STRINGS = bytes((STRING_KEY[0] + 1,))
_SETTLED = -(1 << 60)
"""For the count of a token that is refused for good."""


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


class SeenStrings:
    """Answers for the states of one checked machine; the machine's lock must be held."""

    def __init__(self, machine: CheckedMachine) -> None:
        self._machine: CheckedMachine = weakref.proxy(machine)
        self._texts = TokenTexts.of(machine.vocabulary)
        self._places: dict[tuple[int, Mode, bytes], _Place] = {}
        self._after: dict[tuple[int, int], int] = {}
        self._quotes: dict[int, tuple[int, ...]] = {}

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

    def _is_free(self, own: int, seen: Seen) -> bool:
        """Can a new string begin here, and behind any white space?"""
        machine = self._machine
        quotes = self._quotes.get(own)
        if quotes is None:
            reached = machine.look.behind_space(own)
            quotes = self._quotes[own] = tuple({machine.byte_step(at, QUOTE) for at in reached}) or (DEAD,)
        counts = machine.look.counts
        return all(quote != DEAD and counts.more_than(quote, b"", seen.size) for quote in quotes)

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
        keys: Iterable[bytes]
        if place.upto is None:
            keys = seen.beginning(begun)
        else:
            joined, link = [], seen.link
            while link is not None and link is not place.upto:
                joined.append(link[0])
                link = link[1]
            if link is None:
                # Another container, or one that went another way.
                place.clear()
                keys = seen.beginning(begun)
            else:
                keys = (key for key in joined if key.startswith(begun))
        inside = text.mode is not Mode.BETWEEN
        dead: list[int] = []
        for key in keys:
            rest = key[len(begun) :]
            if inside:
                self._ending(place, own, row, level, self._texts.closing.get(rest, ()), dead)
                self._inside(place, own, text, level, rest)
            else:
                self._opening(place, own, row, level, rest, dead)
        if dead:
            place.refused = np.concatenate((place.refused, np.asarray(dead, np.int64)))
        place.upto = seen.link

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
            if after == DEAD:
                left = DEAD
            elif level.is_array:
                left = machine.frames.without(after, Mark.DISTINCT)
            else:
                left = machine.frames.without_undeclared_name(after)
            if left == DEAD:
                dead += tokens
            elif left != after:
                place.tried.update(dict.fromkeys(tokens))

    def _inside(self, place: _Place, own: int, text: Text, level: Level, rest: bytes) -> None:
        """The tokens that lead on in what is left of one that is there, and do not end it."""
        texts = self._texts
        if not (rest.isascii() and self._machine.look.is_uniform(own, text)):
            for token in texts.beginning(rest):
                part = rest[: self._texts.size(token)]
                self._lead_on(place, own, level, token, text.text + part, b"")
        for size in range(min(len(rest), texts.longest_escaping) + 1):
            for token, pending in texts.escaping.get(rest[:size], ()):
                self._lead_on(place, own, level, token, text.text + rest[:size], pending)

    def _opening(
        self, place: _Place, own: int, row: NDArray[np.uint32], level: Level, rest: bytes, dead: list[int]
    ) -> None:
        """The tokens that begin a string as one that is there does, and those that hold it."""
        texts = self._texts
        for size in range(min(len(rest), texts.longest_opening) + 1):
            for token, pending in texts.opening.get(rest[:size], ()):
                self._lead_on(place, own, level, token, rest[:size], pending)
        leading = texts.leading.get(rest, ())
        self._ending(place, own, row, level, leading, dead)
        wholes = texts.wholes.get(rest, ())
        if wholes:
            settled = {token for closing in leading for token in closing.tokens.tolist()}
            allowed = (token for token in wholes if int(row[token >> 5]) >> (token & 31) & 1)
            place.tried.update((token, None) for token in allowed if token not in settled)

    def _lead_on(self, place: _Place, own: int, level: Level, token: int, begun: bytes, pending: bytes) -> None:
        number = place.counts[token] = place.counts.get(token, 0) + 1
        if token in place.full or number < 0:
            return
        machine = self._machine
        counts = machine.look.counts
        if pending in ANY_ASCII and counts.more_behind_escape(self._before(own, token, pending), number):
            return
        after = self._stepped(own, token)
        if after == DEAD or counts.more_than(after, pending, number):
            return
        # A name that is surely declared repeats nothing seen.
        if level.is_array or machine.frames.inside_undeclared_name(after):
            place.full[token] = (after, STRING_KEY + begun if level.is_array else begun, pending)

    def _before(self, own: int, token: int, pending: bytes) -> int:
        """The automaton's state before the escape in which a token ends."""
        key = (own, ~token)
        found = self._after.get(key)
        if found is None:
            data = self._texts.spelled(token)[: -len(pending)]
            found = self._after[key] = self._machine.inner.advance_text(own, data) if data else own
        return found

    def _stepped(self, own: int, token: int) -> int:
        """The automaton's state after a token, remembered."""
        key = (own, token)
        found = self._after.get(key)
        if found is None:
            found = self._after[key] = self._machine.inner.advance_token_text(own, token)
        return found


def _only_strings(seen: Seen) -> bool:
    first = seen.first_from(b"")
    return first is not None and first.startswith(STRING_KEY) and seen.first_from(_BEHIND_STRINGS) is None
