"""Is a boolean combination of languages empty?  A search over tuples of its operands' states.

Operands are walked apart, each by derivatives of its own, which are few and remembered; a state of the combination is
the tuple of theirs.  That takes a few microseconds a state, where making an interned expression of every state takes a
hundred times as long.  `guided.grammar.regular.derivative.inhabited` is the question to ask; this file only answers it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias, cast

from guided.grammar.regular.expr import Edge, Expr, Kind, untrack_edges

RawEdges: TypeAlias = "Callable[[Expr], Sequence[Edge]]"
States: TypeAlias = "tuple[Expr, ...]"
Cuts: TypeAlias = "frozenset[int]"

MAX_ROWS = 10_000
"""Operand states whose edges are remembered; about 1 KB each."""
MAX_CASES = 128
"""Conjunctions that a combination is taken apart to, which are searched one by one."""

_rows: dict[Expr, Sequence[Edge]] = {}
_cuts: dict[Expr, Cuts | None] = {}
lock = threading.RLock()
"""Held where walks are used: their arrays are written to by kernels that hold no interpreter lock."""


class UndecidedError(Exception):
    """The search would take more states than it may."""


class Program(NamedTuple):
    """A combination of operands as `guided.kernels.product` reads it."""

    ops: tuple[int, ...]
    size: int
    """Of how many operands."""
    wanted: int
    """Of a conjunction, how many operands must accept; they come before those that must not.  -1 for others."""


class Formula:
    """A combination as a tree over its operands: `TRUE` leaves must accept, others must not."""

    __slots__ = ("leaf", "parts", "wanted")

    def __init__(self, leaf: int, wanted: bool, parts: tuple[Formula, ...] = ()) -> None:
        self.leaf = leaf
        self.wanted = wanted
        """Of an operand, must it accept?  Else, must all parts hold (or any)?"""
        self.parts = parts

    def program(self, leaves: States) -> tuple[Program, States]:
        """The combination for kernels, and its operands in the order that it has them in."""
        parts = self.parts if self.parts and self.wanted else (self,)
        wanted: list[Expr] = []
        unwanted: list[Expr] = []
        for part in parts:
            if part.parts:
                break
            (wanted if part.wanted else unwanted).append(leaves[part.leaf])
        else:
            return conjunction(len(wanted), len(unwanted)), (*wanted, *unwanted)
        ops: list[int] = []
        self._append(ops)
        return Program(tuple(ops), len(leaves), -1), leaves

    def _append(self, ops: list[int]) -> None:
        if not self.parts:
            ops.append(2 * self.leaf + self.wanted)
            return
        for part in self.parts:
            part._append(ops)
        ops.append(-2 * len(self.parts) - self.wanted)


@lru_cache(maxsize=512)
def conjunction(wanted: int, unwanted: int) -> Program:
    """All of the first so many operands, and none of the others."""
    size = wanted + unwanted
    ops = [2 * i + (i < wanted) for i in range(size)]
    return Program((*ops, -2 * size - 1), size, wanted)


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


def operands_of(expr: Expr, apart: bool = False) -> tuple[Formula, States]:
    """What a combination asks of its operands, and these; ``apart``: it is a union, and its parts are its operands."""
    operands = _Operands()
    if apart:
        parts = tuple([operands.formula(part, True) for part in cast("tuple[Expr, ...]", expr.parts)])
        return Formula(-1, False, parts), tuple(operands.found)
    formula = operands.formula(expr, True)
    return formula, tuple(operands.found)


def has_member(expr: Expr, limit: int, raw_edges: RawEdges) -> bool | None:
    """Does a combination hold any string?  None when its operands are not read byte by byte (JSON strings).

    Raises `UndecidedError` when more than ``limit`` states would have to be taken up.
    """
    # Numba is loaded where it is first needed.
    from guided.grammar.regular.walks import walk_of

    searches = _searches(expr)
    undecided = False
    with lock:
        for program, operands in searches:
            walk = walk_of(operands, raw_edges)
            if walk is None:
                return None
            try:
                if walk.leads_on(program, operands, limit):
                    return True
            except UndecidedError:
                undecided = True
    if undecided:
        raise UndecidedError
    return False


def _searches(expr: Expr) -> list[tuple[Program, States]]:
    """Conjunctions of which one must hold, or the combination as it is where they are too many."""
    formula, leaves = operands_of(expr)
    whole = formula.program(leaves)
    cases = None if whole[0].wanted >= 0 else _cases(formula)
    if cases is None:
        return [whole]
    searches = [
        (conjunction(len(wanted), len(unwanted)), tuple([leaves[i] for i in (*sorted(wanted), *sorted(unwanted))]))
        for wanted, unwanted in cases
    ]
    return sorted(searches, key=_weight)


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


def _weight(search: tuple[Program, States]) -> tuple[int, list[int]]:
    program, operands = search
    return program.size, [item.serial for item in operands]


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


def boundaries(expr: Expr) -> Cuts | None:
    """Where ranges of bytes begin in anything that can be left of an expression, or behind where they end; remembered.

    None for what is not read byte by byte.
    """
    if expr not in _cuts:
        _cuts[expr] = _boundaries(expr)
    return _cuts[expr]


def _boundaries(expr: Expr) -> Cuts | None:
    found: set[int] = set()
    seen = {expr}
    work = [expr]
    while work:
        item = work.pop()
        parts: Sequence[object] = ()
        if item in _cuts:
            known = _cuts[item]
            if known is None:
                return None
            found |= known
        elif item.kind is Kind.LITERAL:
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
