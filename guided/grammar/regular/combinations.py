"""Boolean combinations of languages as formulas over their operands, and what is remembered of operands.

Nothing here searches: `guided.grammar.regular.product` asks whether a combination is empty, and
`guided.grammar.regular.walks` steps its operands.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias, cast

from guided.grammar.regular.any_text import any_text
from guided.grammar.regular.expr import Edge, Expr, Kind, untrack_edges

RawEdges: TypeAlias = "Callable[[Expr], Sequence[Edge]]"
States: TypeAlias = "tuple[Expr, ...]"

MAX_ROWS = 10_000
"""Operand states whose edges are remembered; about 1 KB each."""

_rows: dict[Expr, Sequence[Edge]] = {}
lock = threading.RLock()
"""Held where walks are used: their arrays are written to by kernels that hold no interpreter lock."""


class UndecidedError(Exception):
    """The search would take more states than it may."""


class Program(NamedTuple):
    """A combination of operands as `guided.kernels.lexing.product` reads it."""

    ops: tuple[int, ...]
    size: int
    """Of how many operands."""
    wanted: int
    """Of a conjunction, how many operands must accept; they come before those that must not.  -1 for others, or ``-2 -
    operand`` for those that hold texts only, by that operand."""


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
        text = any_text()[1]
        within = next((i for i in self._needed() if leaves[i] is text), -1)
        return Program(tuple(ops), len(leaves), -1 if within < 0 else -2 - within), leaves

    def _needed(self) -> frozenset[int]:
        """Operands that must accept, whatever the others do."""
        if not self.parts:
            return frozenset((self.leaf,)) if self.wanted else frozenset()
        each = [part._needed() for part in self.parts]
        return frozenset().union(*each) if self.wanted else each[0].intersection(*each[1:])

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


_by_bytes: dict[Expr, bool] = {}


def is_read_by_bytes(expr: Expr) -> bool:
    """Is a language read byte by byte?  JSON strings are not: they are asked about by their texts."""
    found = _by_bytes.get(expr)
    if found is None:
        if len(_by_bytes) >= MAX_ROWS:
            _by_bytes.clear()
        found = _by_bytes[expr] = _holds_no_string(expr)
    return found


def _holds_no_string(expr: Expr) -> bool:
    """Looked through as far as it is not made of what was looked through before."""
    seen = {expr}
    work = [expr]
    for item in work:
        if item.kind in (Kind.JSON_STRING, Kind.JSON_ESCAPE):
            return False
        if item.kind in _MADE_OF_OTHERS:
            for part in item.parts:
                if isinstance(part, Expr) and part not in seen:
                    seen.add(part)
                    known = _by_bytes.get(part)
                    if known is False:
                        return False
                    if known is None:
                        work.append(part)
    # Nor does anything in it.
    _by_bytes.update(dict.fromkeys(work, True))
    return True


_MADE_OF_OTHERS = frozenset((Kind.CONCAT, Kind.ALTERNATION, Kind.INTERSECTION, Kind.COMPLEMENT, Kind.REPEAT))
