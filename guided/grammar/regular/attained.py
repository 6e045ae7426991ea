"""Lengths in characters that some texts of a language surely have, read off its structure.

Whether a pattern leaves any text between two lengths is mostly plain from that; a search goes through a state for every
length and every place in the pattern.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, cast

from guided.grammar.regular.expr import EMPTY, Edge, Expr, Kind, is_listed, listed_words
from guided.grammar.regular.lengths import CONTINUING, begins, n_begun

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from guided.grammar.regular.minimal import Lengths

__all__ = ["has_length_between", "surely_attained"]

Span: TypeAlias = "tuple[int, int | None]"
"""From one length to another (None: endless), with all between them."""

MAX_DEPTH = 60
"""Nested expressions that are looked into."""
MAX_REMEMBERED = 20_000
_FEW_EDGES = 8
"""Of what begins in many ways, the ways that are looked at."""

_known: dict[Expr, Span | None] = {}


def has_length_between(expr: Expr, low: int, high: int | None, automata: Callable[[Expr], Lengths | None]) -> bool:
    """Is it plain that some text has ``low`` to ``high`` characters?  ``automata`` tells what is known of states."""
    found = surely_attained(expr, automata)
    if found is None:
        return False
    return (high is None or found[0] <= high) and (found[1] is None or low <= found[1])


def surely_attained(expr: Expr, automata: Callable[[Expr], Lengths | None], depth: int = MAX_DEPTH) -> Span | None:
    """Lengths of which there is a text each, in bytes that do not continue a character; None where none is seen."""
    if expr not in _known:
        if len(_known) >= MAX_REMEMBERED:
            _known.clear()
        if not depth:
            return None
        _known[expr] = None  # what leads to itself again tells nothing
        _known[expr] = _attained(expr, automata, depth - 1)
    return _known[expr]


def _attained(expr: Expr, automata: Callable[[Expr], Lengths | None], depth: int) -> Span | None:
    known = automata(expr)
    if known is not None:
        if known.infinite and known.around is not None:
            return known.around, None
        return known.near, known.near
    match expr.kind:
        case Kind.EPSILON:
            return 0, 0
        case Kind.LITERAL:
            return _length(cast(bytes, expr.parts[0]))
        case Kind.BYTES:
            n = int(cast(int, expr.parts[0]) & ~CONTINUING != 0)
            return n, n
        case Kind.CONCAT:
            low, high = 0, cast("int | None", 0)
            while expr.kind is Kind.CONCAT:
                head, expr = cast("tuple[Expr, Expr]", expr.parts)
                found = surely_attained(head, automata, depth)
                if found is None:
                    return None
                low, high = low + found[0], None if high is None or found[1] is None else high + found[1]
            found = surely_attained(expr, automata, depth)
            if found is None:
                return None
            return low + found[0], None if high is None or found[1] is None else high + found[1]
        case Kind.REPEAT:
            body, fewest, most = cast("tuple[Expr, int, int | None]", expr.parts)
            found = surely_attained(body, automata, depth)
            return ((0, 0) if fewest == 0 else None) if found is None else _repeated(found, fewest, most)
        case Kind.ALTERNATION:
            return _joined([surely_attained(cast(Expr, part), automata, depth) for part in expr.parts])
        case Kind.SWITCH if is_listed(expr):
            return _joined([_length(word) for word in listed_words(expr)[:_FEW_EDGES]])
        case Kind.SWITCH:
            ways: list[Span | None] = [(0, 0)] if expr.nullable else []
            for low, _, target in cast("tuple[Edge, ...]", expr.parts[0])[:_FEW_EDGES]:
                found = None if target is EMPTY else surely_attained(target, automata, depth)
                if found is not None:
                    n = int(begins(low))
                    ways.append((found[0] + n, None if found[1] is None else found[1] + n))
            return _joined(ways)
    return None


def _length(text: bytes) -> Span:
    n = n_begun(text)
    return n, n


def _repeated(span: Span, fewest: int, most: int | None) -> Span:
    """Lengths of repetitions, from a number on of which those of one more begin where those before end."""
    low, high = span
    if high is None:
        return (0, None) if low <= 1 and not fewest else (max(fewest, 1) * low, None)
    if low > 1:
        joined = fewest if high == low else max(fewest, -(-(low - 1) // (high - low)))
        if high == low or (most is not None and joined > most):
            return fewest * low, fewest * high
        fewest = joined
    elif high == 0:
        return 0, 0
    return fewest * low, None if most is None else most * high


def _joined(spans: Sequence[Span | None]) -> Span | None:
    """The longest stretch of lengths that some of them make up."""
    best: Span | None = None
    at: Span | None = None
    for span in sorted((span for span in spans if span is not None), key=lambda span: span[0]):
        if at is None or at[1] is None or span[0] > at[1] + 1:
            if at is not None and at[1] is None:
                break
            at = span
        elif span[1] is None or span[1] > at[1]:
            at = at[0], span[1]
        if best is None or at[1] is None or (best[1] is not None and at[1] - at[0] >= best[1] - best[0]):
            best = at
    return best
