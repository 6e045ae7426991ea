"""Lower bounds on the length of a language's texts, read off its structure."""

from __future__ import annotations

from typing import cast

from guided.grammar.regular.expr import Edge, Expr, Kind


def least_length(expr: Expr) -> int:
    """A lower bound on the length of every string of the language, in bytes; remembered."""
    if expr.least is None:
        expr.least = _least_length(expr)
    return expr.least


def _least_length(expr: Expr) -> int:
    if expr.nullable:
        return 0
    match expr.kind:
        case Kind.LITERAL:
            return len(cast(bytes, expr.parts[0]))
        case Kind.CONCAT:
            total = 0
            while expr.kind is Kind.CONCAT and expr.least is None:
                head, expr = cast("tuple[Expr, Expr]", expr.parts)
                total += least_length(head)
            return total + least_length(expr)
        case Kind.REPEAT:
            body, low, _ = cast("tuple[Expr, int, int | None]", expr.parts)
            return low * least_length(body)
        case Kind.ALTERNATION:
            return min(map(least_length, cast("tuple[Expr, ...]", expr.parts)))
        case Kind.INTERSECTION:
            return max(map(least_length, cast("tuple[Expr, ...]", expr.parts)))
        case Kind.SWITCH:
            # One level only: tries nest as deep as words are long.
            return 1 + min(not target.nullable for _, _, target in cast("tuple[Edge, ...]", expr.parts[0]))
        case _:
            return 1
