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

from guided.grammar.regular.any_text import any_text, is_text, text_states
from guided.grammar.regular.expr import Edge, Expr, Kind, untrack_edges

RawEdges: TypeAlias = "Callable[[Expr], Sequence[Edge]]"
States: TypeAlias = "tuple[Expr, ...]"

MAX_ROWS = 10_000
"""Operand states whose edges are remembered; about 1 KB each."""
MAX_CASES = 128
"""Conjunctions that a combination is taken apart to, which are searched one by one."""

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


MOST_PARTED = 16
"""Operands whose alternatives are taken apart: of a hundred words in any order that took 2.6 s, and decided nothing."""


def has_member(expr: Expr, limit: int, raw_edges: RawEdges, parting: bool = False) -> bool | None:
    """Does a combination hold any string?  None when its operands are not read byte by byte (JSON strings).

    Raises `UndecidedError` when more than ``limit`` states would have to be taken up, or twice as many for all cases
    that a combination is taken apart to; with ``parting`` of alternatives each by itself.
    """
    # Numba is loaded where it is first needed.
    from guided.grammar.regular.walks import the_walk

    searches = _searches(expr)
    undecided = False
    with lock:
        walk = the_walk(raw_edges)
        left = 2 * limit
        for program, operands in searches:
            if left <= 0:
                raise UndecidedError
            if not all(map(is_read_by_bytes, operands)):
                return None
            if 0 < program.wanted < program.size:
                program, operands = _beside_text(program, operands, raw_edges)
            if parting and program.wanted > MOST_PARTED:
                raise UndecidedError
            try:
                if walk.leads_on(program, operands, min(limit, left), parting and program.wanted > 0):
                    return True
            except UndecidedError:
                undecided = True
            left -= walk.taken
    if undecided:
        raise UndecidedError
    return False


def _beside_text(program: Program, operands: States, raw_edges: RawEdges) -> tuple[Program, States]:
    """A conjunction of texts with any text beside them, which holds them all.

    So the search sees that there is nothing where any text is not wanted: behind a look-ahead that must not be met and
    is, with a bound of a thousand characters still to be read.
    """
    texts = text_states(raw_edges)
    wanted = operands[: program.wanted]
    if not any(item in texts for item in wanted):
        for text in texts:
            if any(is_text(item, text, raw_edges) for item in wanted):
                return conjunction(program.wanted + 1, program.size - program.wanted), (text, *operands)
    return program, operands


def n_parted(expr: Expr, most: int, raw_edges: RawEdges) -> int | None:
    """How many states a combination has where alternatives are walked apart; None if more than ``most``.

    No search of `has_member` with ``parting`` for what is left of it takes up more.
    """
    from guided.grammar.regular.walks import the_walk

    total = 0
    with lock:
        walk = the_walk(raw_edges)
        for program, operands in _searches(expr):
            if not all(map(is_read_by_bytes, operands)):
                return None
            found = walk.n_parted(program, operands, most - total)
            if found is None:
                return None
            total += found
    return total


def begin_apart(expr: Expr, raw_edges: RawEdges) -> bool:
    """Is an intersection seen to be empty by what its texts would begin with?  It does not hold the empty text."""
    longest = b""
    possible = -1
    for part in cast("tuple[Expr, ...]", expr.parts):
        head = cast(Expr, part.parts[0]) if part.kind is Kind.CONCAT else part
        if head.kind is Kind.LITERAL:
            begun = cast(bytes, head.parts[0])
            if not (longest.startswith(begun) or begun.startswith(longest)):
                return True
            longest = max(longest, begun, key=len)
        elif part.kind not in _NOT_LOOKED_AT:
            possible &= _first_bytes(part, raw_edges)
    return not possible & (1 << longest[0] if longest else -1)


_NOT_LOOKED_AT = frozenset((Kind.INTERSECTION, Kind.COMPLEMENT, Kind.JSON_STRING, Kind.JSON_ESCAPE))
_firsts: dict[Expr, int] = {}


def _first_bytes(expr: Expr, raw_edges: RawEdges) -> int:
    """The set of bytes that its texts may begin with; remembered."""
    found = _firsts.get(expr)
    if found is None:
        if len(_firsts) >= MAX_ROWS:
            _firsts.clear()
        found = 0
        for low, high, _ in remembered_edges(expr, raw_edges):
            found |= (1 << (high + 1)) - (1 << low)
        _firsts[expr] = found
    return found


def _searches(expr: Expr) -> list[tuple[Program, States]]:
    """Conjunctions of which one must hold, or the combination as it is where they are too many."""
    plain = _plain(expr)
    if plain is not None:
        return [plain]
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


def _plain(expr: Expr) -> tuple[Program, States] | None:
    """As most are: an intersection of operands and of complements of operands, or of unions of them."""
    if expr.kind is not Kind.INTERSECTION:
        return None
    wanted: dict[Expr, None] = {}
    unwanted: dict[Expr, None] = {}
    for part in cast("tuple[Expr, ...]", expr.parts):
        if part.kind is not Kind.COMPLEMENT:
            if part.kind is Kind.ALTERNATION and combines(part):
                return None
            wanted[part] = None
            continue
        body = cast(Expr, part.parts[0])
        if body.kind is Kind.INTERSECTION or (body.kind is Kind.ALTERNATION and combines(body)):
            return None
        parts = cast("tuple[Expr, ...]", body.parts) if body.kind is Kind.ALTERNATION else (body,)
        unwanted.update(dict.fromkeys(parts))
    return conjunction(len(wanted), len(unwanted)), (*wanted, *unwanted)


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
