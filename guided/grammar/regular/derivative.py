"""Brzozowski derivatives: which bytes may come first in a language, and what language remains after each.

`edges` is the whole interface: a lazily built deterministic automaton whose states are the interned expressions
themselves.  Targets with an empty language never appear, so every path can be completed.  The tables that kernels
walk are filled from here by `guided.automata`; this file knows no arrays.

Source: Brzozowski, "Derivatives of Regular Expressions", JACM 1964; Owens, Reppy, Turon, "Regular-expression
derivatives re-examined", JFP 2009 (byte classes instead of single symbols).
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from operator import itemgetter
from typing import TypeAlias, cast

from guided.errors import LimitError
from guided.grammar.regular.combinations import UndecidedError, remembered_edges
from guided.grammar.regular.condensed import (
    condensed,
    decided_by_length,
    is_bounded,
    is_large,
    leaves_words_out,
    stay_large,
    the_register,
    without_runs,
)
from guided.grammar.regular.expr import (
    ALL,
    EMPTY,
    EPSILON,
    Edge,
    Expr,
    Kind,
    alternation,
    complement,
    concat,
    intersection,
    literal,
    repeat,
    untrack_edges,
)
from guided.grammar.regular.json_text import json_escape_edges, json_string_edges
from guided.grammar.regular.least import least_length as least_length
from guided.grammar.regular.overapproximation import overapproximation
from guided.grammar.regular.product import begin_apart, has_member

EMPTINESS_STEPS = 30_000
"""States that one emptiness search may visit, unless the caller says otherwise."""
MOST_STEPS = 1_000_000
"""The same for what is read in a text: `guided.grammar.regular.settled` has seen to it that none takes so many."""
SOON = 256
"""States after which a search tries an over-approximation: 3 ms, and it keeps the states that it has."""
LATER = 4096
"""States after which alternatives are walked apart where many may be taken up."""
MAX_UNDECIDED = 4096
"""Languages that are remembered to have taken too long."""

_undecided: dict[Expr, int] = {}


_TRANSIENT = frozenset({Kind.CONCAT, Kind.INTERSECTION, Kind.LITERAL, Kind.JSON_STRING, Kind.JSON_ESCAPE})
"""Kinds whose edges follow cheaply from their parts' and are asked for once, by a state table: remembering them would
make twenty objects an expression, and the garbage collector's pauses were a third of the time of a mask."""


def edges(expr: Expr, limit: int = MOST_STEPS) -> tuple[Edge, ...]:
    """Sorted, disjoint ``(low, high, target)`` for every first byte that leads to a non-empty language.

    Computed once per expression; raises `LimitError` when deciding emptiness of an intersection takes more than
    ``limit`` steps.
    """
    found = expr.edges
    if found is None:
        bounded = is_bounded(expr, _raw_edges)
        if not bounded and (expr.kind is Kind.INTERSECTION or expr.kind is Kind.ALTERNATION):
            small = condensed(expr, _raw_edges)
            if small is not expr:
                return edges(small, limit)
        raw = _raw_edges(expr)
        if expr.edges is not None:
            return expr.edges
        if is_large(expr):
            raw = stay_large(raw, _less_apart, _raw_edges)
        elif bounded:
            # Together with a bound on the length, many patterns rarely make a small automaton.
            raw = [(low, high, without_runs(target, _raw_edges)) for low, high, target in raw]
        found = tuple(edge for edge in raw if edge[2].inhabited or inhabited(edge[2], limit))
        if expr.kind not in _TRANSIENT:
            untrack_edges(found)
            expr.edges = found
        expr.raw = None
    return found


def possible_edges(expr: Expr) -> Sequence[Edge]:
    """As `edges`, of which some may lead to an empty language."""
    return remembered_edges(expr, _raw_edges)


@lru_cache(maxsize=1)
def prepare_combinations() -> None:
    """Load what walks over combinations of languages, 8 ms once in a process, which no mask should take."""
    from guided.grammar.regular.walks import the_walk

    the_walk(_raw_edges)
    the_register(_raw_edges)


def derivative(expr: Expr, byte: int) -> Expr | None:
    """The language that remains after ``byte``, or None when no string of ``expr`` starts with it."""
    for low, high, target in edges(expr):
        if low <= byte <= high:
            return target
    return None


def remainder(expr: Expr, byte: int) -> Expr | None:
    """`derivative` without the search that proves it non-empty: an expression, or None when nothing starts so.

    For automata that find their dead states all at once afterwards.  Not cached.
    """
    for low, high, target in _raw_edges(expr):
        if low <= byte <= high:
            return None if target is EMPTY else target
    return None


def matches(expr: Expr, data: bytes) -> bool:
    """Is ``data`` in the language?  One derivative per byte.

    >>> from guided.grammar.regular.expr import literal, repeat
    >>> matches(repeat(literal(b"ab")), b"abab")
    True
    """
    for byte in data:
        # Whether anything can come of what is left need not be known: an empty language never accepts.
        for low, high, target in remembered_edges(expr, _raw_edges):
            if low <= byte <= high:
                expr = target
                break
        else:
            return False
    return expr.nullable


def inhabited(expr: Expr, limit: int = EMPTINESS_STEPS) -> bool:
    """Does the language hold any string?  Remembers both answers.

    `LimitError` when that takes a search of more than ``limit`` states; that is remembered, too.
    """
    if expr.inhabited is not None:
        return expr.inhabited
    if _undecided.get(expr, -1) >= limit:
        raise _too_long(limit)
    try:
        expr.inhabited = _decide(expr, limit)
    except UndecidedError:
        if len(_undecided) >= MAX_UNDECIDED:
            _undecided.clear()
        _undecided[expr] = limit
        raise _too_long(limit) from None
    return expr.inhabited


def _decide(expr: Expr, limit: int) -> bool:
    match expr.kind:
        case Kind.JSON_STRING | Kind.JSON_ESCAPE:
            # Every character can be written, and an escape is made only where a character is spelled so.
            return inhabited(cast(Expr, expr.parts[0]), limit)
        case Kind.CONCAT:
            while expr.kind is Kind.CONCAT:
                head, expr = cast("tuple[Expr, Expr]", expr.parts)
                if not inhabited(head, limit):
                    return False
            return inhabited(expr, limit)
        case Kind.REPEAT:
            return inhabited(cast(Expr, expr.parts[0]), limit)
        case Kind.ALTERNATION:
            return _any_inhabited(cast("tuple[Expr, ...]", expr.parts), limit)
        case Kind.INTERSECTION | Kind.COMPLEMENT:
            found = _combination(expr, limit)
            if found is not None:
                return found
    return _search(expr, limit)


def _any_inhabited(parts: tuple[Expr, ...], limit: int) -> bool:
    if any(part.inhabited for part in parts):
        return True
    undecided = False
    for part in parts:
        try:
            if inhabited(part, limit):
                return True
        except LimitError:
            undecided = True
    if undecided:
        raise UndecidedError
    return False


def _combination(expr: Expr, limit: int) -> bool | None:
    """Is anything in an intersection?  None when its operands are not read byte by byte."""
    found = decided_by_length(expr, _raw_edges)
    if found is not None:
        return found
    if expr.kind is Kind.INTERSECTION and begin_apart(expr, _raw_edges):
        return False
    if leaves_words_out(expr) and is_bounded(expr, _raw_edges):
        return _beside_words(expr, limit)
    if limit > SOON:
        try:
            return has_member(expr, SOON, _raw_edges)
        except UndecidedError:
            rough = overapproximation(expr)
            if rough is not expr and not _may_be_inhabited(rough, limit):
                return False
        try:
            return has_member(expr, LATER if limit == MOST_STEPS else limit, _raw_edges)
        except UndecidedError:
            # Of alternatives there may be very many combinations, and few by themselves.
            try:
                return has_member(expr, limit, _raw_edges, True)
            except UndecidedError:
                if limit != MOST_STEPS:
                    raise
    return has_member(expr, limit, _raw_edges)


def _beside_words(expr: Expr, limit: int) -> bool:
    """Is there more in a bounded language than the words that are left out?  Looks at no more than their beginnings."""
    seen = {expr}
    work = [expr]
    for item in work:
        if item.nullable:
            return True
        for _, _, target in _raw_edges(item):
            if target not in seen:
                seen.add(target)
                if leaves_words_out(target):
                    work.append(target)
                elif inhabited(target, limit):
                    return True
    return False


def _less_apart(expr: Expr) -> Expr:
    """An intersection without the alternatives whose over-approximations are disjoint from the other operands.

    The states of what is left are few where those of an alternative were many.
    """
    if expr.kind is not Kind.INTERSECTION:
        return expr
    parts = cast("tuple[Expr, ...]", expr.parts)
    for part in parts:
        if part.kind is Kind.ALTERNATION:
            others = [other for other in parts if other is not part]
            ways = cast("tuple[Expr, ...]", part.parts)
            kept = [way for way in ways if not _lies_apart(way, others)]
            if len(kept) < len(ways):
                return intersection((alternation(kept), *others))
    return expr


def _lies_apart(way: Expr, others: Sequence[Expr]) -> bool:
    rough = overapproximation(way) if way.kind is Kind.RECURSION else way
    return rough is not way and not _may_be_inhabited(intersection((rough, *others)), SOON)


def _may_be_inhabited(expr: Expr, limit: int) -> bool:
    try:
        return inhabited(expr, limit)
    except LimitError:
        return True


def _too_long(limit: int) -> LimitError:
    return LimitError(
        f"deciding whether an intersection of patterns is empty took more than {limit} steps",
        remedy="Simplify the patterns or shorten the counted repeats that are combined here.",
    )


def _search(expr: Expr, limit: int) -> bool:
    """Searches derivatives as they are, nearest to an end first."""
    parents: dict[Expr, Expr | None] = {expr: None}
    queue = [(0, 0, expr)]
    while queue:
        item = heapq.heappop(queue)[2]
        if item.nullable or item.inhabited:
            walk: Expr | None = item
            while walk is not None:
                walk.inhabited = True
                walk = parents[walk]
            return True
        if len(parents) > limit:
            raise UndecidedError
        if item.kind in (Kind.JSON_STRING, Kind.JSON_ESCAPE):
            # Decided on the text alone: its spelling would be twenty states for every one.
            following = [EPSILON] if inhabited(item, limit) else []
        else:
            following = [target for _, _, target in _raw_edges(item)]
        for target in following:
            if target.inhabited is not False and target not in parents:
                parents[target] = item
                heapq.heappush(queue, (_outlook(target), len(parents), target))
    for item in parents:
        item.inhabited = False
    return False


def _outlook(expr: Expr) -> int:
    """How far from an end a language looks: for an intersection the sum over operands, each of which must get there.

    Without it, ``.{8,99}`` intersected with three look-aheads visits all texts of eight characters breadth first.
    """
    if expr.kind is Kind.INTERSECTION:
        return sum(map(least_length, cast("tuple[Expr, ...]", expr.parts)))
    if expr.kind is Kind.ALTERNATION:
        return min(map(_outlook, cast("tuple[Expr, ...]", expr.parts)))
    if expr.kind is Kind.CONCAT:
        head, tail = cast("tuple[Expr, Expr]", expr.parts)
        return _outlook(head) + least_length(tail)
    return least_length(expr)


def _raw_edges(expr: Expr) -> Sequence[Edge]:
    """Edges before targets with an empty language are dropped."""
    if expr.edges is not None:
        return expr.edges
    if expr.raw is not None:
        return expr.raw
    match expr.kind:
        case Kind.BYTES:
            return _mask_edges(cast(int, expr.parts[0]))
        case Kind.LITERAL:
            data = cast(bytes, expr.parts[0])
            return [(data[0], data[0], literal(data[1:]))]
        case Kind.SWITCH:
            return cast("tuple[Edge, ...]", expr.parts[0])
        case Kind.CONCAT:
            lists: list[Sequence[Edge]] = []
            tail = expr
            while tail.kind is Kind.CONCAT and tail.edges is None:
                head, tail = cast("tuple[Expr, Expr]", tail.parts)
                lists.append([(low, high, concat(target, tail)) for low, high, target in _raw_edges(head)])
                if not head.nullable:
                    return _union(lists)
            return _union([*lists, _raw_edges(tail)])
        case Kind.REPEAT:
            body, low_count, high_count = cast("tuple[Expr, int, int | None]", expr.parts)
            rest = repeat(body, max(low_count - 1, 0), None if high_count is None else high_count - 1)
            return [(low, high, concat(target, rest)) for low, high, target in _raw_edges(body)]
        case Kind.ALTERNATION:
            # Parts go on from state to state, while others come and go.
            expr.raw = _union([remembered_edges(part, _raw_edges) for part in cast("tuple[Expr, ...]", expr.parts)])
            return expr.raw
        case Kind.INTERSECTION:
            expr.raw = _intersect([_raw_edges(cast(Expr, part)) for part in expr.parts])
            return expr.raw
        case Kind.COMPLEMENT:
            expr.raw = _negate(_raw_edges(cast(Expr, expr.parts[0])))
            return expr.raw
        case Kind.JSON_STRING:
            return json_string_edges(expr, edges)
        case Kind.JSON_ESCAPE:
            return json_escape_edges(expr, edges)
        case Kind.RECURSION:
            # A recursion that reaches itself before reading a byte adds nothing to its least solution.
            expr.edges = ()
            try:
                return _raw_edges(cast(Expr, expr.parts[0]))
            finally:
                expr.edges = None
        case _:
            return ()


def _mask_edges(mask: int) -> list[Edge]:
    result: list[Edge] = []
    low = 0
    while mask:
        skip = (mask & -mask).bit_length() - 1
        low += skip
        mask >>= skip
        run = (~mask & (mask + 1)).bit_length() - 1
        result.append((low, low + run - 1, EPSILON))
        low += run
        mask >>= run
    return result


def _merge(result: list[Edge], low: int, high: int, target: Expr) -> None:
    if result and result[-1][2] is target and result[-1][1] + 1 == low:
        result[-1] = (result[-1][0], high, target)
    else:
        result.append((low, high, target))


def _union(lists: list[Sequence[Edge]]) -> list[Edge]:
    # What looks for a pattern has the row of any text, and of what it has found a byte or two beside it.
    lists = sorted([items for items in lists if items], key=len, reverse=True)
    if len(lists) < 2:
        return list(lists[0]) if lists else []
    row: list[_Ways] = [*lists[0]]
    for items in lists[1:]:
        row = _beside(row, items)
    result: list[Edge] = []
    # What begins a word parts what does not in many ranges, all with the same targets.
    known: dict[tuple[Expr, ...], Expr] = {}
    for low, high, ways in row:
        if type(ways) is tuple:
            target = known.get(ways) or known.setdefault(ways, alternation(ways))
        else:
            target = cast(Expr, ways)
        _merge(result, low, high, target)
    return result


_Ways: TypeAlias = "tuple[int, int, Expr | tuple[Expr, ...]]"
"""A range of bytes, and all that it leads to."""
_LAST = itemgetter(1)


def _beside(row: list[_Ways], items: Sequence[Edge]) -> list[_Ways]:
    """A row with more edges; what none of them touches is not looked at."""
    found: list[_Ways] = []
    at, n = 0, len(row)
    for low, high, target in items:
        stop = bisect_left(row, low, at, key=_LAST)
        found += row[at:stop]
        at = stop
        while at < n and row[at][0] <= high:
            first, last, ways = row[at]
            if first < low:
                found.append((first, low - 1, ways))
            elif low < first:
                found.append((low, first - 1, target))
                low = first
            both = (*ways, target) if type(ways) is tuple else (cast(Expr, ways), target)
            if high < last:
                row[at] = (high + 1, last, ways)
                last = high
            else:
                at += 1
            found.append((low, last, both))
            low = last + 1
        if low <= high:
            found.append((low, high, target))
    found += row[at:]
    return found


def _intersect(lists: Sequence[Sequence[Edge]]) -> list[Edge]:
    result: list[Edge] = []
    if not all(lists):
        return result
    rows = [iter(items) for items in lists]
    heads = [next(row) for row in rows]
    # What begins a word parts what does not in many ranges, all with the same targets.
    known: dict[tuple[Expr, ...], Expr] = {}
    while True:
        low, high = max([head[0] for head in heads]), min([head[1] for head in heads])
        if low <= high:
            targets = tuple([head[2] for head in heads])
            target = known.get(targets) or known.setdefault(targets, intersection(targets))
            if target.inhabited is not False:
                _merge(result, low, high, target)
        for at, head in enumerate(heads):
            if head[1] == high:
                following = next(rows[at], None)
                if following is None:
                    return result
                heads[at] = following


def _negate(items: Sequence[Edge]) -> list[Edge]:
    result: list[Edge] = []
    at = 0
    for low, high, target in items:
        if at < low:
            _merge(result, at, low - 1, ALL)
        opposite = complement(target)
        if opposite.inhabited is not False:
            _merge(result, low, high, opposite)
        at = high + 1
    if at <= 255:
        _merge(result, at, 255, ALL)
    return result
