"""How many bytes end a text of a language at the most, from anywhere inside it: read off an expression's structure.

Behind any beginning of a text some part of the expression is open, and what it and all behind it take at least is
enough.  Of languages that must hold together with others, or must not hold, structure does not tell.
"""

from __future__ import annotations

from functools import lru_cache, reduce
from operator import and_, or_
from typing import TypeAlias, cast

from guided.grammar.regular.any_text import any_text
from guided.grammar.regular.expr import Expr, Kind, sequence
from guided.grammar.regular.json_text import RAW_BYTES
from guided.kernels.data.layout import FAR

__all__ = [
    "any_escape_left", "between", "bytes_of", "closing_left", "escape_left", "fewest_bytes", "most_left", "most_within",
    "tell_most_left",
]  # fmt: skip

Lengths: TypeAlias = "tuple[int, int]"
"""Bytes that are enough for a text, and for the rest of any."""

REMEMBERED = 1 << 14
"""Expressions whose lengths are remembered: some 100 bytes each."""

ANY_ESCAPE_LEFT = 8
"""Bytes that end an escape in a string of any text: behind ``\\ud8`` two, and the second half of the pair."""

ESCAPE_LEFT = 11
"""The same where only some character may come: a pair of escapes behind the first backslash."""

CANONICAL_ESCAPE_LEFT = 5
"""The same of the canonical spelling, which escapes quotation marks, backslashes and control characters."""

_SHORT = b'"\\\b\f\n\r\t'
"""Characters that a JSON string must escape and can in two bytes."""


def most_left(expr: Expr) -> int:
    """Bytes that are enough to end a text of a language that has begun, `FAR` where structure does not tell.

    >>> from guided.grammar.regular.expr import byte_range, concat, literal, repeat
    >>> most_left(concat(literal(b"ab"), repeat(byte_range(0x30, 0x39), 2, 4)))
    4
    """
    return most_within(expr, False)


def most_within(expr: Expr, spelled: bool) -> int:
    """The same; with ``spelled`` in bytes of a JSON string whose text the expression describes."""
    try:
        return _within(expr, spelled)[1]
    except RecursionError:
        return FAR


def fewest_bytes(expr: Expr, spelled: bool) -> int:
    """Bytes in which some text of a language is surely written, `FAR` where structure does not tell.

    With ``spelled`` in bytes of a JSON string whose text the expression describes.

    >>> from guided.grammar.regular.expr import byte_range, concat, literal, repeat
    >>> fewest_bytes(concat(literal(b'"ab'), repeat(byte_range(0x30, 0x39), 2, 4)), spelled=True)
    6
    """
    try:
        return _fewest(expr, spelled)
    except RecursionError:
        return FAR


@lru_cache(REMEMBERED)
def _fewest(expr: Expr, spelled: bool) -> int:
    if expr.nullable:
        return 0
    match expr.kind:
        case Kind.BYTES | Kind.LITERAL:
            return _found(expr, spelled)[0]
        case Kind.CONCAT:
            return min(sum([_fewest(item, spelled) for item in sequence(expr)]), FAR)
        case Kind.ALTERNATION:
            return min([_fewest(cast(Expr, part), spelled) for part in expr.parts])
        case Kind.REPEAT:
            body, low, _ = cast("tuple[Expr, int, int | None]", expr.parts)
            return min(low * _fewest(body, spelled), FAR)
        case Kind.SWITCH:
            edges = cast("tuple[tuple[int, int, Expr], ...]", expr.parts[0])
            steps = [(between(low, high) if spelled else 1) + _fewest(to, spelled) for low, high, to in edges]
            return min(min(steps), FAR)
        case Kind.JSON_STRING:
            return min(_fewest(cast(Expr, expr.parts[0]), True) + 1, FAR)
    return FAR


_told: dict[Expr, int] = {}


def tell_most_left(expr: Expr, most: int) -> Expr:
    """Remember of a language of ASCII texts, whose structure does not tell, how many bytes end one; the language."""
    _told[expr] = most
    return expr


@lru_cache(REMEMBERED)
def _found(expr: Expr, spelled: bool) -> Lengths:
    """With ``spelled`` in bytes of a JSON string whose text the expression describes."""
    if expr in _told:
        return _told[expr], _told[expr]
    match expr.kind:
        case Kind.BYTES:
            mask = cast(int, expr.parts[0])
            size = next(size for size, some in _SIZES if mask & some) if spelled else 1
            return size, size
        case Kind.LITERAL:
            data = cast(bytes, expr.parts[0])
            size = sum(map(_SPELLED.__getitem__, data)) if spelled else len(data)
            return size, size
        case Kind.CONCAT:
            least = most = 0
            for item in reversed(sequence(expr)):
                short, rest = _within(item, spelled)
                most = max(most, rest + least)
                least += short
            return min(least, FAR), min(most, FAR)
        case Kind.ALTERNATION:
            found = [_within(cast(Expr, part), spelled) for part in expr.parts]
            return min(short for short, _ in found), max(rest for _, rest in found)
        case Kind.REPEAT:
            body, low, _ = cast("tuple[Expr, int, int | None]", expr.parts)
            short, rest = _within(body, spelled)
            return min(low * short, FAR), min(rest + max(low - 1, 0) * short, FAR)
        case Kind.SWITCH:
            edges, nullable = cast("tuple[tuple[tuple[int, int, Expr], ...], bool]", expr.parts)
            steps = [(between(low, high) if spelled else 1, *_within(to, spelled)) for low, high, to in edges]
            short = 0 if nullable else min(step + ahead for step, ahead, _ in steps)
            return min(short, FAR), min(max(step + rest for step, _, rest in steps), FAR)
        case Kind.INTERSECTION:
            parts = cast("tuple[Expr, ...]", expr.parts)
            widest = max((size for size, some in _WIDEST[spelled] if bytes_of(expr) & some), default=1)
            # All that lies within so many characters ends within them.
            most = min((widest * high for part in parts if (high := _high(part)) is not None), default=FAR)
            others = [part for part in parts if not _only_bounds(part)]
            if len(others) != 1:
                return most, most
            # Beside a bound from above alone: if any end keeps it, then the one of fewest characters.
            short, rest = _within(others[0], spelled)
            return min(widest * short, most), min(widest * rest, most)
        case Kind.JSON_STRING:
            content, canonical = cast("tuple[Expr, bool]", expr.parts)
            if content is any_text()[1]:
                return 1, 1 + any_escape_left(canonical)
            short, rest = _within(content, True)
            return min(short + 1, FAR), min(rest + closing_left(content, canonical), FAR)
    return FAR, FAR


def any_escape_left(canonical: bool) -> int:
    """Bytes that end an escape in a string of any text."""
    return CANONICAL_ESCAPE_LEFT if canonical else ANY_ESCAPE_LEFT


def escape_left(canonical: bool) -> int:
    """Bytes that end an escape in a string where only some character may come."""
    return CANONICAL_ESCAPE_LEFT if canonical else ESCAPE_LEFT


def closing_left(content: Expr, canonical: bool) -> int:
    """Bytes that end a string behind what is left of its text: the quotation mark's, and those of an escape."""
    try:
        has_escapes = not canonical or bool(bytes_of(content) & _ESCAPED)
    except RecursionError:
        has_escapes = True
    return 1 + (escape_left(canonical) if has_escapes else 0)


@lru_cache(REMEMBERED)
def bytes_of(expr: Expr) -> int:
    """The set of bytes, as bits, of which all texts of a language are made; or more."""
    match expr.kind:
        case Kind.EPSILON:
            return 0
        case Kind.BYTES:
            return cast(int, expr.parts[0])
        case Kind.LITERAL:
            return reduce(or_, [1 << byte for byte in cast(bytes, expr.parts[0])])
        case Kind.CONCAT:
            return reduce(or_, map(bytes_of, sequence(expr)))
        case Kind.ALTERNATION:
            return reduce(or_, map(bytes_of, cast("tuple[Expr, ...]", expr.parts)))
        case Kind.INTERSECTION:
            return reduce(and_, map(bytes_of, cast("tuple[Expr, ...]", expr.parts)))
        case Kind.REPEAT:
            return bytes_of(cast(Expr, expr.parts[0]))
        case Kind.SWITCH:
            edges = cast("tuple[tuple[int, int, Expr], ...]", expr.parts[0])
            return reduce(or_, [(2 << high) - (1 << low) | bytes_of(to) for low, high, to in edges])
    return _ALL


def _within(expr: Expr, spelled: bool) -> Lengths:
    return (0, 0) if expr.kind is Kind.EPSILON else _found(expr, spelled)


def _only_bounds(expr: Expr) -> bool:
    """Is it any text up to a number of characters?"""
    return _high(expr) is not None and expr.parts[1] == 0


def _high(expr: Expr) -> int | None:
    """Of any text between two numbers of characters the greater one."""
    if expr.kind is not Kind.REPEAT or expr.parts[0] is not any_text()[0]:
        return None
    return cast("int | None", expr.parts[2])


@lru_cache(1 << 16)
def between(low: int, high: int) -> int:
    """Bytes in which a JSON string spells that of some bytes of its text which takes least."""
    if any(max(low, a) <= min(high, b) for a, b in RAW_BYTES):
        return 1
    return 2 if any(low <= byte <= high for byte in _SHORT) else 6


_SPELLED = tuple(between(byte, byte) for byte in range(256))
"""Bytes in which a JSON string spells each byte of its text."""

_ALL = (1 << 256) - 1
_ASCII = (1 << 128) - 1
_SIZES = tuple((size, sum(1 << byte for byte in range(256) if _SPELLED[byte] == size)) for size in (1, 2, 6))
"""The sizes, and the bit set of those that have each."""

_ESCAPED = _SIZES[1][1] | _SIZES[2][1]
_WIDEST = (
    ((1, _ALL), (4, _ALL & ~_ASCII)),
    (*_SIZES, (4, _ALL & ~_ASCII)),
)
"""Bytes that one character takes at the most if it has one of some: of UTF-8, and as a JSON string spells it."""
