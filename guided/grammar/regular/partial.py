"""Partial derivatives: what may be left of a text after each first byte, one expression for each way of reading it.

Where `guided.grammar.regular.derivative` gives one language for a byte, the union of all ways, here they stay apart.
There are no more of them than a pattern has letters, whatever sets of them a text comes by; which sets those are is
found by a kernel (`guided.kernels.determinise`).  Intersections and complements are read as they are there, whole.

Source: Antimirov, "Partial Derivatives of Regular Expressions and Finite Automaton Constructions", 1996.
"""

from __future__ import annotations

from typing import TypeAlias, cast

from guided.grammar.regular.derivative import edges, inhabited
from guided.grammar.regular.expr import EPSILON, Expr, Kind, concat, repeat

__all__ = ["PartialEdge", "alternatives", "partial_edges"]

PartialEdge: TypeAlias = "tuple[int, int, Expr, Expr]"


def alternatives(expr: Expr) -> list[Expr]:
    """The expressions, none of which is a union or empty, whose union a language is.

    >>> from guided.grammar.regular.expr import alternation, literal
    >>> len(alternatives(alternation([literal(b"a"), literal(b"b1"), literal(b"c2")])))
    3
    """
    parts = cast("tuple[Expr, ...]", expr.parts) if expr.kind is Kind.ALTERNATION else (expr,)
    return [part for part in parts if part.inhabited or inhabited(part)]


def partial_edges(expr: Expr) -> list[PartialEdge]:
    """``(low, high, begun, tail)`` in no order, any number of them a byte: what is left is ``begun``, then ``tail``.

    Where a character or a word has begun, its rest and what follows are kept apart, since rests are few.
    """
    match expr.kind:
        case Kind.ALTERNATION:
            return [edge for part in cast("tuple[Expr, ...]", expr.parts) for edge in partial_edges(part)]
        case Kind.CONCAT:
            found: list[PartialEdge] = []
            while expr.kind is Kind.CONCAT:
                head, expr = cast("tuple[Expr, Expr]", expr.parts)
                found += _followed(partial_edges(head), expr)
                if not head.nullable:
                    return found
            return [*found, *partial_edges(expr)]
        case Kind.REPEAT:
            body, low, high = cast("tuple[Expr, int, int | None]", expr.parts)
            rest = repeat(body, max(low - 1, 0), None if high is None else high - 1)
            return _followed(partial_edges(body), rest)
        case _:
            return [(low, high, target, EPSILON) for low, high, target in edges(expr)]


def _followed(row: list[PartialEdge], tail: Expr) -> list[PartialEdge]:
    if tail is EPSILON:
        return row
    made: dict[Expr, Expr] = {EPSILON: tail}
    found: list[PartialEdge] = []
    for low, high, begun, first in row:
        whole = made.get(first)
        if whole is None:
            whole = made[first] = concat(first, tail)
        found.append((low, high, begun, whole))
    return found
