"""Is a boolean combination of languages empty?  A search over tuples of its operands' states.

Operands are walked apart, each by derivatives of its own, which are few and remembered; a state of the combination is
the tuple of theirs.  That takes a few microseconds a state, where making an interned expression of every state takes a
hundred times as long.  `guided.grammar.regular.derivative.inhabited` is the question to ask; this file only answers it.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

from guided.collection import untrack
from guided.grammar.regular.expr import ALL, EMPTY, Edge, Expr, Kind, untrack_edges

RawEdges: TypeAlias = "Callable[[Expr], Sequence[Edge]]"
Least: TypeAlias = "Callable[[Expr], int]"
States: TypeAlias = "tuple[Expr, ...]"
Key: TypeAlias = "tuple[frozenset[Expr], frozenset[Expr]]"
Cuts: TypeAlias = "frozenset[int]"

MAX_ROWS = 10_000
"""Operand states whose edges are remembered; about 1 KB each."""
MAX_KNOWN = 50_000
"""Combined states remembered to lead to a string, or nowhere; about 500 bytes each."""
MAX_WALKS = 4
"""Walks whose rows are kept for questions about what is left of their operands."""
MAX_CASES = 128
"""Conjunctions that a combination is taken apart to, which are searched one by one."""

_rows: dict[Expr, Sequence[Edge]] = {}
_cuts: dict[Expr, Cuts | None] = {}
_walks: deque[Walk] = deque(maxlen=MAX_WALKS)
_alive: set[Key] = set()
_dead: set[Key] = set()


class UndecidedError(Exception):
    """The search would take more states than it may."""


class Formula:
    """A combination as a tree over its operands: `TRUE` leaves must accept, others must not."""

    __slots__ = ("leaf", "parts", "wanted")

    def __init__(self, leaf: int, wanted: bool, parts: tuple[Formula, ...] = ()) -> None:
        self.leaf = leaf
        self.wanted = wanted
        """Of an operand, must it accept?  Else, must all parts hold (or any)?"""
        self.parts = parts

    def accepts(self, states: States) -> bool:
        """Does the combination hold the empty string?"""
        if not self.parts:
            return states[self.leaf].nullable is self.wanted
        return (all if self.wanted else any)([part.accepts(states) for part in self.parts])

    def possible(self, states: States) -> bool:
        """May it hold any string, as far as single operands tell?"""
        if not self.parts:
            return states[self.leaf] is not (EMPTY if self.wanted else ALL)
        return (all if self.wanted else any)([part.possible(states) for part in self.parts])

    def outlook(self, states: States, least: Least) -> int:
        """How far from an end it looks: what all operands together ask for."""
        if not self.parts:
            return least(states[self.leaf]) if self.wanted else 0
        found = [part.outlook(states, least) for part in self.parts]
        return sum(found) if self.wanted else min(found)


class _Operands:
    """Numbers the operands of a formula while it is built."""

    def __init__(self) -> None:
        self.found: dict[Expr, int] = {}

    def formula(self, expr: Expr, wanted: bool) -> Formula:
        while expr.kind is Kind.COMPLEMENT:
            expr, wanted = cast(Expr, expr.parts[0]), not wanted
        # A union that is not wanted is an intersection; one that is, and holds no intersections, is a single operand.
        if expr.kind is Kind.INTERSECTION or (expr.kind is Kind.ALTERNATION and (not wanted or combines(expr))):
            conjunction = (expr.kind is Kind.INTERSECTION) is wanted
            parts: list[Formula] = []
            for part in cast("tuple[Expr, ...]", expr.parts):
                found = self.formula(part, wanted)
                parts.extend(found.parts if found.parts and found.wanted is conjunction else (found,))
            return Formula(-1, conjunction, tuple(parts))
        return Formula(self.found.setdefault(expr, len(self.found)), wanted)


def combines(expr: Expr) -> bool:
    """Does an alternation hold intersections or complements?  Its parts are no alternations."""
    for part in cast("tuple[Expr, ...]", expr.parts):
        if part.kind is Kind.INTERSECTION or part.kind is Kind.COMPLEMENT:
            return True
    return False


def operands_of(expr: Expr) -> tuple[Formula, States]:
    """What a combination asks of its operands, and these."""
    operands = _Operands()
    formula = operands.formula(expr, True)
    return formula, tuple(operands.found)


def has_member(expr: Expr, limit: int, raw_edges: RawEdges, least: Least) -> bool | None:
    """Does a combination hold any string?  None when its operands are not read byte by byte (JSON strings).

    Raises `UndecidedError` when more than ``limit`` states would have to be left.
    """
    formula, leaves = operands_of(expr)
    cases = _cases(formula)
    if cases is None:
        walk = walk_of(leaves, raw_edges)
        return None if walk is None else _search(formula, leaves, walk, limit, least)
    searches = [
        ([leaves[i] for i in sorted(wanted)], [leaves[i] for i in sorted(unwanted)]) for wanted, unwanted in cases
    ]
    searches = [case for case in searches if (frozenset(case[0]), frozenset(case[1])) not in _dead]
    if any((frozenset(wanted), frozenset(unwanted)) in _alive for wanted, unwanted in searches):
        return True
    undecided = False
    for wanted, unwanted in sorted(searches, key=_weight):
        walk = walk_of((*wanted, *unwanted), raw_edges)
        if walk is None:
            return None
        try:
            if _conjunction(wanted, unwanted, walk, limit, least):
                return True
        except UndecidedError:
            undecided = True
    if undecided:
        raise UndecidedError
    return False


Case: TypeAlias = "tuple[frozenset[int], frozenset[int]]"
"""Operands that must accept, and such as must not."""


def _cases(formula: Formula) -> set[Case] | None:
    """The formula as a union of conjunctions, without those that contradict themselves; None when they are too many."""
    if not formula.parts:
        own, none = frozenset((formula.leaf,)), frozenset[int]()
        return {(own, none) if formula.wanted else (none, own)}
    found: set[Case] = {(frozenset(), frozenset())} if formula.wanted else set()
    for part in formula.parts:
        cases = _cases(part)
        if cases is None:
            return None
        if formula.wanted:
            found = {(a | c, b | d) for a, b in found for c, d in cases if a.isdisjoint(d) and b.isdisjoint(c)}
        else:
            found |= cases
        if len(found) > MAX_CASES:
            return None
    return found


def _weight(case: tuple[list[Expr], list[Expr]]) -> tuple[int, list[int], list[int]]:
    wanted, unwanted = case
    return len(wanted) + len(unwanted), [item.serial for item in wanted], [item.serial for item in unwanted]


def _conjunction(wanted: list[Expr], unwanted: list[Expr], walk: Walk, limit: int, least: Least) -> bool:
    """All of some operands and none of others, which is nearly every question: `_search` written out for it."""
    count = len(wanted)
    start = (*wanted, *unwanted)
    before: dict[States, States | None] = {start: None}
    queue = [(0, 0, start)]
    keys: list[Key] = []
    while queue:
        states = heapq.heappop(queue)[2]
        positive, negative = states[:count], states[count:]
        key = (frozenset(positive), frozenset(negative))
        ends = all(state.nullable for state in positive) and not any(state.nullable for state in negative)
        if ends or key in _alive:
            _remember_path(states, before, count)
            return True
        if key in _dead or not key[0].isdisjoint(key[1]):
            continue
        keys.append(key)
        if len(keys) > limit:
            raise UndecidedError
        for after in walk.following(states):
            if after not in before:
                before[after] = states
                if EMPTY not in after[:count] and ALL not in after[count:]:
                    heapq.heappush(queue, (sum(map(least, after[:count])), len(before), after))
    _remember(_dead, keys)
    return False


def _remember_path(states: States, before: dict[States, States | None], count: int) -> None:
    """What leads to a string is remembered, since what is left after its first bytes is often asked about next."""
    keys = []
    at: States | None = states
    while at is not None:
        keys.append((frozenset(at[:count]), frozenset(at[count:])))
        at = before[at]
    _remember(_alive, keys)


def _remember(known: set[Key], keys: list[Key]) -> None:
    if len(known) + len(keys) > MAX_KNOWN:
        known.clear()
    for key in keys:
        untrack(key[0])
        untrack(key[1])
        untrack(key)
    known.update(keys)


def _search(formula: Formula, start: States, walk: Walk, limit: int, least: Least) -> bool:
    seen: set[States] = {start}
    queue = [(0, 0, start)]
    taken = 0
    while queue:
        states = heapq.heappop(queue)[2]
        if formula.accepts(states):
            return True
        taken += 1
        if taken > limit:
            raise UndecidedError
        for after in walk.following(states):
            if after not in seen:
                seen.add(after)
                if formula.possible(after):
                    heapq.heappush(queue, (formula.outlook(after, least), len(seen), after))
    return False


class Walk:
    """Steps of several operands at once, over the ranges of bytes that none of them tells apart."""

    def __init__(self, cuts: list[int], leaves: States, raw_edges: RawEdges) -> None:
        self.cuts = cuts
        """Where ranges of bytes begin, ascending, 0 first."""
        self._index = {cut: position for position, cut in enumerate(cuts)}
        self._index[256] = self._size = len(cuts)
        self._raw_edges = raw_edges
        self._rows: dict[Expr, list[Expr]] = {}
        self.known = set(leaves)
        """Expressions that tell no more bytes apart: the operands, and all that was met."""

    def tells_apart(self, cuts: set[int]) -> bool:
        """Are these among the places where ranges begin?"""
        return self._index.keys() >= cuts

    def rows(self, states: States) -> list[list[Expr]]:
        """Of each state, what it leads to by each range."""
        rows = []
        for state in states:
            row = self._rows.get(state)
            rows.append(self._row(state) if row is None else row)
        return rows

    def following(self, states: States) -> set[States]:
        """All states after one byte."""
        return set(zip(*self.rows(states), strict=True))

    def _row(self, state: Expr) -> list[Expr]:
        row = [EMPTY] * self._size
        index = self._index
        for low, high, target in remembered_edges(state, self._raw_edges):
            first, last = index[low], index[high + 1]
            row[first:last] = [target] * (last - first)
            self.known.add(target)
        self._rows[state] = row
        return row


def walk_of(leaves: States, raw_edges: RawEdges) -> Walk | None:
    """A walk that knows these operands, an earlier one if there is one; None for operands not read byte by byte."""
    for walk in _walks:
        if walk.known.issuperset(leaves):
            return walk
    cuts: set[int] = {0}
    for leaf in leaves:
        found = _cuts[leaf] if leaf in _cuts else _cuts.setdefault(leaf, _boundaries(leaf))
        if found is None:
            return None
        cuts |= found
    cuts.discard(256)
    for walk in _walks:
        if walk.tells_apart(cuts):
            walk.known.update(leaves)
            return walk
    walk = Walk(sorted(cuts), leaves, raw_edges)
    _walks.appendleft(walk)
    return walk


def remember_cuts(expr: Expr, cuts: Cuts) -> None:
    """Note where ranges of bytes begin or have ended in all that can be left of an expression."""
    _cuts[expr] = cuts


def remembered_edges(state: Expr, raw_edges: RawEdges) -> Sequence[Edge]:
    """The edges of a state, of which the last few thousand are kept; some may lead to empty languages."""
    found = _rows.get(state)
    if found is None:
        if len(_rows) >= MAX_ROWS:
            _rows.clear()
        found = _rows[state] = tuple(raw_edges(state))
        untrack_edges(found)
        state.raw = None
    return found


def _boundaries(expr: Expr) -> Cuts | None:
    """Where ranges of bytes begin in anything that can be left of an expression, or behind where they end."""
    found: set[int] = set()
    seen = {expr}
    work = [expr]
    while work:
        item = work.pop()
        parts: Sequence[object] = ()
        if item.kind is Kind.LITERAL:
            for byte in set(cast(bytes, item.parts[0])):
                found.update((byte, byte + 1))
        elif item.kind is Kind.BYTES:
            # Bits that differ from the one below are where a range begins or has just ended.
            mask = cast(int, item.parts[0])
            edges = mask ^ mask << 1
            while edges:
                lowest = edges & -edges
                found.add(lowest.bit_length() - 1)
                edges ^= lowest
        elif item.kind is Kind.SWITCH:
            for low, high, target in cast("tuple[Edge, ...]", item.parts[0]):
                found.update((low, high + 1))
                if target not in seen:
                    seen.add(target)
                    work.append(target)
        elif item.kind in (Kind.JSON_STRING, Kind.JSON_ESCAPE):
            return None
        else:
            parts = item.parts[:1] if item.kind is Kind.REPEAT else item.parts
        for part in parts:
            if part not in seen:
                seen.add(cast(Expr, part))
                work.append(cast(Expr, part))
    return frozenset(found)
