"""Is a boolean combination of languages empty?  A search over tuples of its operands' states.

Operands are walked apart, each by derivatives of its own, which are few and remembered; a state of the combination is
the tuple of theirs.  That takes a few microseconds a state, where making an interned expression of every state takes a
hundred times as long.  `guided.grammar.regular.derivative.inhabited` is the question to ask; this file only answers it.
"""

from __future__ import annotations

from typing import TypeAlias, cast

from guided.grammar.regular.any_text import is_text, text_states
from guided.grammar.regular.combinations import (
    MAX_ROWS,
    Formula,
    Program,
    RawEdges,
    States,
    UndecidedError,
    combines,
    conjunction,
    is_read_by_bytes,
    lock,
    operands_of,
    remembered_edges,
)
from guided.grammar.regular.expr import Expr, Kind

MAX_CASES = 128
"""Conjunctions that a combination is taken apart to, which are searched one by one."""
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
