"""How many more characters a bounded run needs until a pattern beside it can end."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from guided.automata.distances import spelled, utf8_blocks
from guided.automata.joint import segments
from guided.automata.states import StateTable
from guided.kernels.layout import CLOSES

__all__ = ["CharactersLeft"]


class CharactersLeft:
    """Over pairs of a run's state and a pattern's, remembered."""

    def __init__(self, states: StateTable) -> None:
        self.states = states
        self._known: dict[tuple[int, int, int], int] = {}

    def of_tokens(self, at: NDArray[np.int32], inside: NDArray[np.bool_], home: int) -> NDArray[np.int32]:
        """``int32[n]``: for tokens that stay inside and end in the places ``at``, the fewest whole characters left."""
        # Neighbours in the trie mostly end in the same places, so few are left to sort.
        first = np.concatenate([[True], (at[1:] != at[:-1]).any(axis=1)])
        runs = np.flatnonzero(first)
        live = np.logical_or.reduceat(inside, runs) if runs.size else inside
        one, other, decode = at[runs].astype(np.int64).T
        # State ids have below 24 bits (`MAX_EDGES`), and few places are inside an escape: one sort of plain numbers.
        escape = np.searchsorted(np.unique(decode), decode)
        _, example, number = np.unique(one << 40 | other << 16 | escape, return_index=True, return_inverse=True)
        places = at[runs[example]]
        wanted = np.zeros(places.shape[0], np.bool_)
        wanted[number[live]] = True
        characters = np.zeros(places.shape[0], np.int32)
        for i in np.flatnonzero(wanted).tolist():
            pair = places[i].tolist()
            characters[i] = self.of_place((pair[0], pair[1]), pair[2], home)
        return np.repeat(characters[number], np.diff(np.append(runs, at.shape[0])))

    def of_place(self, start: tuple[int, int], decode: int, home: int) -> int:
        """Breadth first, a level per character, over pairs of a run's state and a pattern's."""
        key = (*start, decode)
        known = self._known.get(key)
        if known is not None:
            return known
        # A character already begun was counted with the token.
        length = 0 if start[0] == home else -1
        level = [start]
        if decode:
            level = [
                pair
                for _, low, high in spelled(decode)
                for first, last in utf8_blocks(low, high)
                for pair in self._after_character(start, first, last)
            ]
        seen = set(level)
        while level:
            following: list[tuple[int, int]] = []
            for pair in level:
                mode = self.states.arrays.mode
                if mode[pair[0]] & mode[pair[1]] & CLOSES:
                    self._known[key] = max(length, 0)
                    return max(length, 0)
                for _, _, *after in segments(self.states.edges(pair[0]), self.states.edges(pair[1])):
                    target = (after[0], after[1])
                    if all(target) and target not in seen:
                        seen.add(target)
                        (following if target[0] == home else level).append(target)
            level = following
            length += 1
        raise AssertionError("a live state of a pattern has a way to its end")

    def _after_character(self, pair: tuple[int, int], first: bytes, last: bytes) -> Iterator[tuple[int, int]]:
        """The pairs after one character between two of equal length."""
        if not first:
            yield pair
            return
        for low, high, one, other in segments(self.states.edges(pair[0]), self.states.edges(pair[1])):
            rest = len(first) - 1
            # Bytes between the bounds lead the same way: one of them is enough.
            inner = max(low, first[0] + 1)
            for byte in {first[0], last[0], inner}:
                if one and other and low <= byte <= high and first[0] <= byte <= last[0]:
                    yield from self._after_character(
                        (one, other),
                        first[1:] if byte == first[0] else b"\x80" * rest,
                        last[1:] if byte == last[0] else b"\xbf" * rest,
                    )
