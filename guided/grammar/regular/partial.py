"""Partial derivatives: what may be left of a text after each first byte, one expression for each way of reading it.

`guided.grammar.regular.derivative` gives one language for a byte, the union of all ways; here the ways stay apart.  A
pattern has no more of them than symbols, whatever sets of them its texts reach; a kernel finds these sets
(`guided.kernels.lexing.determinise`).  Intersections and complements are read whole, as there.

Source: Antimirov, "Partial Derivatives of Regular Expressions and Finite Automaton Constructions", 1996.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, cast

from guided.grammar.regular.condensed import together
from guided.grammar.regular.derivative import MOST_STEPS, edges, inhabited, possible_edges
from guided.grammar.regular.expr import EPSILON, Expr, Kind, concat, is_listed, literal, repeat

__all__ = ["Symbol", "alternatives", "begins_with", "is_begun", "symbol_of", "without_one"]


def alternatives(expr: Expr) -> list[Expr]:
    """The expressions, none of which is a union or empty, whose union a language is.

    >>> from guided.grammar.regular.expr import alternation, literal
    >>> len(alternatives(alternation([literal(b"a"), literal(b"b1"), literal(b"c2")])))
    3
    """
    if expr.kind is not Kind.ALTERNATION:
        parts: Sequence[Expr] = (expr,)
    else:
        parts = cast("tuple[Expr, ...]", expr.parts)
        if sum([part.kind is Kind.INTERSECTION for part in parts]) > 1:
            parts = together(parts, possible_edges)
    return [part for part in parts if part.inhabited or inhabited(part, MOST_STEPS)]


def begins_with(expr: Expr) -> list[tuple[Expr, Expr]]:
    """What a language begins with, symbols and what is read as a whole, and what follows each of them.

    >>> from guided.grammar.regular.expr import byte_range
    >>> digit = byte_range(0x30, 0x39)
    >>> begins_with(repeat(digit, 2, 9)) == [(digit, repeat(digit, 1, 8))]
    True
    """
    match expr.kind:
        case Kind.ALTERNATION:
            return [found for part in cast("tuple[Expr, ...]", expr.parts) for found in begins_with(part)]
        case Kind.CONCAT:
            found: list[tuple[Expr, Expr]] = []
            while expr.kind is Kind.CONCAT:
                head, expr = cast("tuple[Expr, Expr]", expr.parts)
                found += [(first, concat(after, expr)) for first, after in begins_with(head)]
                if not head.nullable:
                    return found
            return [*found, *begins_with(expr)]
        case Kind.REPEAT:
            rest = without_one(expr)
            return [(first, concat(after, rest)) for first, after in begins_with(cast(Expr, expr.parts[0]))]
        case _:
            return [(expr, EPSILON)]


def without_one(expr: Expr) -> Expr:
    """What is left of a repetition after its first time."""
    body, low, high = cast("tuple[Expr, int, int | None]", expr.parts)
    if high is None and not low:
        return expr
    return repeat(body, low - 1 if low else 0, None if high is None else high - 1)


class Symbol(NamedTuple):
    """One character, in several bytes perhaps, or a short word: what may be left of it after some bytes, their edges.

    Rows are ``(low, high, rest)``, the last by its number, -1 where nothing of the character is left.
    """

    rests: tuple[Expr, ...]
    first: tuple[tuple[int, int, int], ...]
    rows: tuple[tuple[tuple[int, int, int], ...], ...]
    """Of each of the rests."""


_symbols: dict[Expr, Symbol | None] = {}


def symbol_of(expr: Expr) -> Symbol | None:
    """The symbol that an expression is, if it is one; remembered."""
    if expr not in _symbols:
        _symbols[expr] = _symbol(expr)
    return _symbols[expr]


def _symbol(expr: Expr) -> Symbol | None:
    if expr.kind is Kind.LITERAL:
        return _word(cast(bytes, expr.parts[0]))
    if expr.kind not in (Kind.SWITCH, Kind.BYTES) or is_listed(expr):
        return None
    numbers: dict[Expr, int] = {EPSILON: -1}
    rests = [expr]
    rows: list[tuple[tuple[int, int, int], ...]] = []
    for item in rests:
        row = edges(item)
        for _, _, target in row:
            if target not in numbers:
                if not is_begun(target) or is_listed(target) or len(rests) > MAX_RESTS:
                    return None
                numbers[target] = len(rests) - 1
                rests.append(target)
        rows.append(tuple([(low, high, numbers[target]) for low, high, target in row]))
    return Symbol(tuple(rests[1:]), rows[0], tuple(rows[1:]))


def _word(data: bytes) -> Symbol | None:
    if len(data) > MAX_RESTS:
        return None
    last = len(data) - 1
    first, *rows = [((byte, byte, i if i < last else -1),) for i, byte in enumerate(data)]
    return Symbol(tuple([literal(data[i:]) for i in range(1, len(data))]), first, tuple(rows))


MAX_RESTS = 32
"""Rests of a symbol; UTF-8 has seven of any character, and twice as many of most classes.  Few words are longer."""


def is_begun(expr: Expr) -> bool:
    """Is this the rest of a character, or of a word?"""
    return (expr.kind is Kind.SWITCH or expr.kind is Kind.BYTES) and not expr.nullable
