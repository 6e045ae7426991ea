"""Tokens refused in or before a string that is an item, found by what is left of the strings that the array holds.

Such a token either ends a string that is there already, or holds one as a whole, or leads on in strings that are there
while no other can come of it.  Each is found from the string it would repeat or lead on in, as the string joins the
array; so what one mask takes grows with what has joined since the last, not with what the array holds.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from guided.constraint.json_text import QUOTE, Expects, Mode, Text
from guided.constraint.json_values import STRING_KEY
from guided.constraint.seen import Link, Seen
from guided.constraint.token_texts import NO_TOKENS, TokenTexts
from guided.grammar.ir import Mark
from guided.kernels.layout import DEAD

if TYPE_CHECKING:
    from guided.constraint.checked import CheckedMachine

_BEHIND_STRINGS = bytes((STRING_KEY[0] + 1,))
_ANY_CHARACTER = (b"\\", b"\\u")
"""Escapes that may still become any character."""
_SETTLED = -(1 << 60)
"""For the count of a token that is refused for good."""


class _Place:
    """What is known of one place in the automaton and in a string, for the items up to some."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Know nothing."""
        self.upto: Link | None = None
        self.refused: NDArray[np.int64] = NO_TOKENS
        self.counts: dict[int, int] = {}
        """Of tokens that stay in the string, how many items they lead on in."""
        self.full: dict[int, tuple[int, bytes, bytes]] = {}
        """Those of them of which it is not clear that another string may come: the automaton's state behind them, the
        key of the string so far, and what is pending in it."""
        self.tried: dict[int, None] = {}
        """Tokens that may repeat an item in a way that is not told here."""


class SeenItems:
    """Answers for the states of one checked machine; the machine's lock must be held."""

    def __init__(self, machine: CheckedMachine) -> None:
        self._machine: CheckedMachine = weakref.proxy(machine)
        self._texts = TokenTexts.of(machine.vocabulary)
        self._places: dict[tuple[int, Mode, bytes], _Place] = {}
        self._after: dict[tuple[int, int], int] = {}
        self._quotes: dict[int, tuple[int, ...]] = {}

    def refused(self, state: int, own: int, row: NDArray[np.uint32], text: Text) -> NDArray[np.int64] | None:
        """The allowed tokens that repeat an item, or can only come to that; None where this is not told.

        Told are those before which the text agrees with an item as long as it goes, up to the item's end.
        """
        level, mode, machine = text.level, text.mode, self._machine
        if level is None or not level.compares or text.pending or machine.likeness.candidates(level):
            return None
        if mode is Mode.BETWEEN:
            if (
                level.expects is not Expects.VALUE
                or not _only_strings(level.seen)
                or not self._is_free(own, level.seen)
            ):
                return None
        elif mode is not Mode.STRING:
            return None
        key = (own, mode, text.text)
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = _Place()
        self._follow(place, own, row, text, level.seen)
        if place.full:
            dead = [
                token for token, inside in place.full.items() if not self._goes_on(state, token, level.seen, inside)
            ]
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

    def _goes_on(self, state: int, token: int, seen: Seen, inside: tuple[int, bytes, bytes]) -> bool:
        """May a string come of one that a token is part of that is not there yet?"""
        at, key, pending = inside
        # Their number was found to be small.
        rests = self._machine.look.strings.listed(at, pending)
        return self._machine.lives(state, token) if rests is None else rests.has_new(key, seen)

    def _follow(self, place: _Place, own: int, row: NDArray[np.uint32], text: Text, seen: Seen) -> None:
        """Take in the items that the place does not know yet."""
        if place.upto is seen.link:
            return
        begun = STRING_KEY + text.text
        if place.upto is None:
            self._take_in(place, own, row, text, seen.beginning(begun), len(begun))
            place.upto = seen.link
            return
        link, keys = seen.link, []
        while link is not None and link is not place.upto:
            keys.append(link[0])
            link = link[1]
        if link is None:
            # Another array, or one that went another way.
            place.clear()
            keys = list(seen.beginning(begun))
        self._take_in(place, own, row, text, (key for key in keys if key.startswith(begun)), len(begun))
        place.upto = seen.link

    def _take_in(
        self, place: _Place, own: int, row: NDArray[np.uint32], text: Text, keys: Iterable[bytes], size: int
    ) -> None:
        dead: list[int] = []
        for key in keys:
            rest = key[size:]
            if text.mode is Mode.STRING:
                self._ending(place, own, row, rest, dead)
                self._inside(place, own, text, rest)
            else:
                self._opening(place, own, rest)
        if dead:
            place.refused = np.concatenate((place.refused, np.asarray(dead, np.int64)))

    def _ending(self, place: _Place, own: int, row: NDArray[np.uint32], rest: bytes, dead: list[int]) -> None:
        """The tokens that end the string so that it is an item again."""
        machine = self._machine
        for closing in self._texts.closing.get(rest, ()):
            tokens = closing.within(row)
            if not tokens:
                continue
            after = machine.inner.advance_text(own, closing.spelling)
            left = after if after == DEAD else machine.frames.without(after, Mark.DISTINCT)
            if left == DEAD:
                dead += tokens
            elif left != after:
                place.tried.update(dict.fromkeys(tokens))

    def _inside(self, place: _Place, own: int, text: Text, rest: bytes) -> None:
        """The tokens that lead on in what is left of an item, and do not end it."""
        texts = self._texts
        if not (rest.isascii() and self._machine.look.is_uniform(own, text)):
            for token in texts.beginning(rest):
                part = rest[: self._texts.size(token)]
                self._lead_on(place, own, token, text.text + part, b"")
        for size in range(min(len(rest), texts.longest_escaping) + 1):
            for token, pending in texts.escaping.get(rest[:size], ()):
                self._lead_on(place, own, token, text.text + rest[:size], pending)

    def _opening(self, place: _Place, own: int, rest: bytes) -> None:
        """The tokens that begin a string as an item does, and those that hold it."""
        texts = self._texts
        for size in range(min(len(rest), texts.longest_opening) + 1):
            for token, pending in texts.opening.get(rest[:size], ()):
                self._lead_on(place, own, token, rest[:size], pending)
        for token in texts.wholes.get(rest, ()):
            if self._stepped(own, token) != DEAD:
                place.tried[token] = None

    def _lead_on(self, place: _Place, own: int, token: int, begun: bytes, pending: bytes) -> None:
        after, counts = self._stepped(own, token), self._machine.look.counts
        if after == DEAD or counts.is_infinite(after, pending):
            return
        number = place.counts[token] = place.counts.get(token, 0) + 1
        if token in place.full or number < 0:
            return
        if pending in _ANY_CHARACTER and counts.more_behind_escape(self._before(own, token, pending), number):
            return
        if not counts.more_than(after, pending, number):
            place.full[token] = (after, STRING_KEY + begun, pending)

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
