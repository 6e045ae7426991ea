"""Two lexer states at once: obligations that both hold, and a state that goes on under an obligation."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TypeAlias

from guided.automata.lexer.spelling import written_edges
from guided.automata.lexer.table import Table

Row: TypeAlias = "list[tuple[int, int, int]]"
"""Sorted, disjoint ``(low, high, target state)``."""


_NOWHERE = (256, 256, 0)
"""Behind all bytes."""

MOST_PAIRS = 128
"""Pairs of states that are looked at to compare two obligations, some 50 us each; most are decided by a few."""


class Both:
    """Several obligations at once: a match of any is a match."""

    __slots__ = ("parts",)

    def __init__(self, parts: tuple[int, ...]) -> None:
        self.parts = parts
        """States that are none of several, ascending."""

    def tag(self, table: Table) -> int:
        """Non-negative when any of the obligations is violated."""
        return max(int(table.arrays.tag[part]) for part in self.parts)

    def edges(self, table: Table) -> Row:
        """The bytes on which any of them goes on."""
        rows = [written_edges(table, part) for part in self.parts]
        cuts = sorted({cut for row in rows for low, high, _ in row for cut in (low, high + 1)})
        places = [0] * len(rows)
        found: Row = []
        for low, stop in itertools.pairwise(cuts):
            targets = []
            for which, row in enumerate(rows):
                while places[which] < len(row) and row[places[which]][1] < low:
                    places[which] += 1
                if places[which] < len(row) and row[places[which]][0] <= low:
                    targets.append(row[places[which]][2])
            if targets:
                found.append((low, stop - 1, table.joined(*targets)))
        return found


def forbids_as_much(table: Table, more: int, less: int) -> bool:
    """Does one obligation forbid whatever another does?  "No" is also said where that takes long to find out."""
    parts = parts_of(table, more)
    return all(part in parts or any(_forbids(table, other, part) for other in parts) for part in parts_of(table, less))


def parts_of(table: Table, obligation: int) -> tuple[int, ...]:
    """The obligations that one is made of."""
    key = table.keys[obligation]
    return key.parts if isinstance(key, Both) else (obligation,)


def _forbids(table: Table, more: int, less: int) -> bool:
    found = table.compared.get((more, less))
    if found is None:
        pairs = _simulated(table, more, less)
        found = bool(pairs)
        # What the one forbids in any of the pairs, the other does.
        table.compared.update(dict.fromkeys(pairs or [(more, less)], found))
    return found


def _simulated(table: Table, more: int, less: int) -> list[tuple[int, int]]:
    """The pairs of states that a text leads two obligations to; none where the one need not forbid what the other does.

    An obligation that is dead forbids nothing, one that is violated everything.
    """
    rows: dict[int, Row] = {}

    def read(state: int) -> Row:
        return rows.get(state) or rows.setdefault(state, written_edges(table, state))

    pairs = [(more, less)]
    seen = {(more, less)}
    for one, other in pairs:
        if len(pairs) > MOST_PAIRS or (table.forbids_end(other) and not table.forbids_end(one)):
            return []
        for _, _, ahead, beside in segments(read(one), read(other)):
            tags = table.arrays.tag
            if not beside or ahead == beside or (ahead and tags[ahead] >= 0):
                continue
            known = table.compared.get((ahead, beside))
            if not ahead or tags[beside] >= 0 or known is False:
                return []
            if known is None and (ahead, beside) not in seen:
                seen.add((ahead, beside))
                pairs.append((ahead, beside))
    return pairs


class Under:
    """A lexer state that goes on while a match before it must not turn out to have been longer."""

    __slots__ = ("obligation", "state")

    def __init__(self, state: int, obligation: int) -> None:
        self.state, self.obligation = state, obligation

    def edges(self, table: Table) -> Row:
        """The bytes on which the state goes on and the obligation is not violated, nor followed once it is settled."""
        row: Row = []
        owing = iter(written_edges(table, self.obligation))
        first, last, owed = next(owing, _NOWHERE)
        for low, high, state in written_edges(table, self.state):
            while low <= high:
                while last < low:
                    first, last, owed = next(owing, _NOWHERE)
                stop = min(high, last if first <= low else first - 1)
                if first > low:
                    row.append((low, stop, table.under(state, 0)))
                elif int(table.arrays.tag[owed]) < 0:
                    row.append((low, stop, table.under(state, owed)))
                low = stop + 1
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
