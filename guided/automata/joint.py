"""Two lexer states at once: obligations that both hold, and pairs of states that read the same text."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeAlias

from guided.automata.spelling import written_edges

if TYPE_CHECKING:
    from guided.automata.states import StateTable

Row: TypeAlias = "list[tuple[int, int, int]]"
"""Sorted, disjoint ``(low, high, target state)``."""


class Both:
    """Two obligations at once: a match of either is a match."""

    __slots__ = ("first", "second")

    def __init__(self, first: int, second: int) -> None:
        self.first, self.second = first, second

    def tag(self, table: StateTable) -> int:
        """Non-negative when either obligation is violated."""
        return max(int(table.arrays.tag[self.first]), int(table.arrays.tag[self.second]))

    def edges(self, table: StateTable) -> Row:
        """The bytes on which either goes on."""
        row: Row = []
        for low, high, first, second in segments(written_edges(table, self.first), written_edges(table, self.second)):
            target = table.joined(first, second)
            if target:
                row.append((low, high, target))
        return row


def segments(left: Row, right: Row) -> Iterator[tuple[int, int, int, int]]:
    """``(low, high, target of left, target of right)`` for maximal ranges on which neither changes."""
    cuts = sorted({cut for low, high, _ in (*left, *right) for cut in (low, high + 1)})
    i = j = 0
    for low, stop in itertools.pairwise(cuts):
        while i < len(left) and left[i][1] < low:
            i += 1
        while j < len(right) and right[j][1] < low:
            j += 1
        first = left[i][2] if i < len(left) and left[i][0] <= low else 0
        second = right[j][2] if j < len(right) and right[j][0] <= low else 0
        yield low, stop - 1, first, second
