"""How many more characters a text needs until a pattern can end."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from guided.automata.lexer.distances import spelled, utf8_blocks
from guided.automata.lexer.states import StateTable
from guided.grammar.regular.lengths import begins
from guided.kernels.data.layout import CANONICAL, CLOSES, MATCHED
from guided.kernels.masking.places import number_places

__all__ = ["CharactersLeft", "distinct_places"]

PLACES = 1 << 12
"""Places in which the tokens of a walk may end; nearly all patterns have below 1,000, and of more all is done again."""


def distinct_places(at: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The places among some, each once, and which of these each is."""
    numbers = np.empty(at.shape[0], np.int32)
    room = PLACES
    while True:
        examples = np.empty(room, np.int32)
        n = int(number_places(at, numbers, examples, np.zeros(2 * room, np.int32)))
        if n >= 0:
            return at[examples[:n]], numbers
        room *= 4


class CharactersLeft:
    """Over the states of patterns, remembered."""

    def __init__(self, states: StateTable) -> None:
        self.states = states
        self._known: dict[int, int] = {}
        self._rows: dict[int, list[tuple[int, int, int]]] = {}

    def of_tokens(self, at: NDArray[np.int64]) -> NDArray[np.int32]:
        """``int32[n]``: the fewest whole characters left for tokens that end in the places ``at``, 0 behind the text.

        A character that is begun counts with its token.
        """
        places, numbers = distinct_places(at)
        left = [self.of_place(place & 0xFFFFFFFF, place >> 32) for place in places.tolist()]
        return np.array(left, np.int32)[numbers]

    def of_place(self, state: int, decode: int = 0) -> int:
        """Fewest characters from a state, or after what an escape there can still become, to where the text may end."""
        if not decode:
            return 0 if state == MATCHED else self._of_state(state)
        # No character brings the end nearer than by itself.
        nearest = max(self._of_state(state) - 1, 0)
        best: int | None = None
        for _, low, high in spelled(decode, bool(self.states.arrays.mode[state] & CANONICAL)):
            for first, last in utf8_blocks(low, high):
                for after in self._after(state, first, last):
                    left = self._of_state(after)
                    if left <= nearest:
                        return left
                    best = left if best is None else min(best, left)
        if best is None:
            raise AssertionError("an escape that is begun has a character that goes on")
        return best

    def _of_state(self, start: int) -> int:
        found = self._known.get(start)
        if found is None:
            least, most = self.states.parts.fewest_characters(start)
            found = self._known[start] = least if least == most else self._nearest(start)
        return found

    def _nearest(self, start: int) -> int:
        """Breadth first, a level per character, up to where what is known from a state is no farther."""
        level = [start]
        seen = {start}
        length = 0
        best: int | None = None
        while level and (best is None or length < best):
            following: list[int] = []
            for state in level:
                if self.states.arrays.mode[state] & CLOSES:
                    return length
                known = self._known.get(state)
                if known is not None:
                    best = length + known if best is None else min(best, length + known)
                    continue
                for low, _, target in self._row(state):
                    if target not in seen:
                        seen.add(target)
                        (following if begins(low) else level).append(target)
            level = following
            length += 1
        if best is None:
            raise AssertionError("a live state of a pattern has a way to its end")
        return best

    def _after(self, state: int, first: bytes, last: bytes) -> Iterator[int]:
        """The states after one character between two of equal length."""
        if not first:
            yield state
            return
        rest = len(first) - 1
        least, most = b"\x80" * rest, b"\xbf" * rest
        for low, high, target in self._row(state):
            if low <= first[0] <= high:
                yield from self._after(target, first[1:], last[1:] if first[0] == last[0] else most)
            if first[0] != last[0] and low <= last[0] <= high:
                yield from self._after(target, least, last[1:])
            if max(low, first[0] + 1) <= min(high, last[0] - 1):
                yield from self._after(target, least, most)

    def _row(self, state: int) -> list[tuple[int, int, int]]:
        found = self._rows.get(state)
        if found is None:
            found = self._rows[state] = self.states.edges(state)
        return found
