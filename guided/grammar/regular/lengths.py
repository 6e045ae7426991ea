"""Bounds on a text's length in characters, and how many characters the texts of a language have.

Beside a pattern a bound is a language of its own, and every state of the two together one more.  Where the pattern
says as much by itself (``[0-9]{4}`` beside four characters at most), or ends in the run that the bound is about, one
language without the other is enough.
"""

from __future__ import annotations

from typing import cast

from guided.grammar.regular.expr import (
    EMPTY,
    EPSILON,
    Edge,
    Expr,
    Kind,
    alternation,
    concat,
    intersection,
    is_listed,
    repeat,
    sequence,
)

__all__ = ["CONTINUING", "begins", "character_counts", "farthest_end", "n_begun", "n_symbols", "with_length"]

MAX_DEPTH = 60
"""Nested expressions that are looked into."""

Counts = tuple[int, int | None]
"""No text has fewer characters, nor more (None: not known, or any number)."""

_known: dict[Expr, Counts] = {}


def character_counts(expr: Expr, depth: int = MAX_DEPTH) -> Counts:
    """Bounds on how many characters of UTF-8 the texts of a language have, as far as its structure shows; remembered.

    Bytes that continue a character do not count, so this is additive also where a character has begun.
    """
    found = _known.get(expr)
    if found is None:
        if not depth:
            return 0, None
        found = _counts(expr, depth - 1)
        if expr.kind is not Kind.RECURSION:
            _known[expr] = found
    return found


def _counts(expr: Expr, depth: int) -> Counts:
    match expr.kind:
        case Kind.EPSILON:
            return 0, 0
        case Kind.LITERAL:
            n = n_begun(cast(bytes, expr.parts[0]))
            return n, n
        case Kind.BYTES:
            mask = cast(int, expr.parts[0])
            return (0, 1) if mask & CONTINUING and mask & ~CONTINUING else (int(not mask & CONTINUING),) * 2
        case Kind.CONCAT:
            least, most = 0, cast("int | None", 0)
            while expr is not EPSILON:
                head, expr = cast("tuple[Expr, Expr]", expr.parts) if expr.kind is Kind.CONCAT else (expr, EPSILON)
                fewest, greatest = character_counts(head, depth)
                least, most = least + fewest, None if most is None or greatest is None else most + greatest
            return least, most
        case Kind.REPEAT:
            body, low, high = cast("tuple[Expr, int, int | None]", expr.parts)
            least, most = character_counts(body, depth)
            return low * least, 0 if most == 0 else None if most is None or high is None else high * most
        case Kind.ALTERNATION:
            return _either([character_counts(cast(Expr, part), depth) for part in expr.parts])
        case Kind.INTERSECTION:
            all_of = [character_counts(cast(Expr, part), depth) for part in expr.parts]
            return max(least for least, _ in all_of), min((m for _, m in all_of if m is not None), default=None)
        case Kind.SWITCH if not is_listed(expr):
            ways: list[Counts] = [(0, 0)] if expr.nullable else []
            for low, high, target in cast("tuple[Edge, ...]", expr.parts[0]):
                least, most = character_counts(target, depth)
                ways_in = (low, high, *(byte for byte in (0x80, 0xC0) if low <= byte <= high))
                first = [begins(byte) for byte in ways_in]
                ways.append((least + min(first), None if most is None else most + max(first)))
            return _either(ways)
        case _:
            return 0, None


def _either(ways: list[Counts]) -> Counts:
    most = [most for _, most in ways if most is not None]
    return min(least for least, _ in ways), max(most) if len(most) == len(ways) else None


CONTINUING = ((1 << 64) - 1) << 0x80
"""The set of bytes that continue a character of UTF-8."""


def begins(byte: int) -> bool:
    """Does a byte begin a character of UTF-8?"""
    return byte & 0xC0 != 0x80


def n_begun(text: bytes) -> int:
    """How many characters begin in a text."""
    return sum(map(begins, text))


_symbols: dict[Expr, int] = {}


def n_symbols(expr: Expr, depth: int = MAX_DEPTH) -> int:
    """How many characters and bytes a pattern is written with, where repetitions are written out; remembered.

    Less where expressions are nested deeper than is looked.
    """
    found = _symbols.get(expr)
    if found is None:
        found = _symbols[expr] = _n_symbols(expr, depth - 1) if depth else 0
    return found


def _n_symbols(expr: Expr, depth: int) -> int:
    match expr.kind:
        case Kind.LITERAL:
            return len(cast(bytes, expr.parts[0]))
        case Kind.BYTES | Kind.SWITCH:
            return 1
        case Kind.CONCAT:
            found = 0
            while expr.kind is Kind.CONCAT:
                head, expr = cast("tuple[Expr, Expr]", expr.parts)
                found += n_symbols(head, depth)
            return found + n_symbols(expr, depth)
        case Kind.REPEAT:
            body, low, high = cast("tuple[Expr, int, int | None]", expr.parts)
            return n_symbols(body, depth) * (max(low, 1) if high is None else high)
        case Kind.ALTERNATION | Kind.INTERSECTION | Kind.COMPLEMENT:
            return sum([n_symbols(part, depth) for part in cast("tuple[Expr, ...]", expr.parts)])
        case _:
            return 0


Ends = tuple[int, int]

_ends: dict[Expr, Ends | None] = {}


def farthest_end(expr: Expr, depth: int = MAX_DEPTH) -> Ends | None:
    """Characters with which a text surely can end: at first, and wherever in the language it is; remembered.

    Both are upper bounds on the fewest; None where the structure does not tell.

    >>> from guided.grammar.regular.expr import literal
    >>> farthest_end(concat(repeat(literal(b"abc")), literal(b"x")))
    (1, 4)
    """
    if expr not in _ends:
        _ends[expr] = _farthest_end(expr, depth - 1) if depth else None
    return _ends[expr]


def _farthest_end(expr: Expr, depth: int) -> Ends | None:
    match expr.kind:
        case Kind.EPSILON:
            return 0, 0
        case Kind.LITERAL:
            return (len(cast(bytes, expr.parts[0])),) * 2
        case Kind.BYTES:
            return 1, 1
        case Kind.CONCAT:
            *heads, last = sequence(expr)
            found = farthest_end(last, depth)
            for head in reversed(heads):
                ends = farthest_end(head, depth)
                if found is None or ends is None:
                    return None
                found = ends[0] + found[0], max(ends[1] + found[0], found[1])
            return found
        case Kind.REPEAT:
            body, low, _ = cast("tuple[Expr, int, int | None]", expr.parts)
            ends = farthest_end(body, depth)
            return None if ends is None else (low * ends[0], ends[1] + max(low - 1, 0) * ends[0])
        case Kind.ALTERNATION:
            return _any_of([farthest_end(part, depth) for part in cast("tuple[Expr, ...]", expr.parts)])
        case Kind.SWITCH if not is_listed(expr):
            # Bytes for characters, which are no more.
            ways: list[Ends | None] = [(0, 0)] if expr.nullable else []
            for _, _, target in cast("tuple[Edge, ...]", expr.parts[0]):
                ends = farthest_end(target, depth)
                ways.append(None if ends is None else (ends[0] + 1, ends[1] + 1))
            return _any_of(ways)
        case _:
            return None


def _any_of(ways: list[Ends | None]) -> Ends | None:
    known = [way for way in ways if way is not None]
    if len(known) < len(ways):
        return None
    return min(first for first, _ in known), max(anywhere for _, anywhere in known)


def with_length(language: Expr, character: Expr, low: int, high: int | None) -> Expr:
    """The texts of a language, all of them valid, that have ``low`` to ``high`` characters.

    >>> from guided.grammar.regular.expr import byte_range, repeat
    >>> from guided.grammar.regular.any_text import any_text
    >>> digit = byte_range(0x30, 0x39)
    >>> with_length(repeat(digit), any_text()[0], 2, 9) is repeat(digit, 2, 9)
    True
    """
    if language.kind is Kind.INTERSECTION:
        parts = cast("tuple[Expr, ...]", language.parts)
        bounds = [part for part in parts if part.kind is Kind.REPEAT and part.parts[0] is character]
        others = [part for part in parts if part not in bounds]
        if bounds and bounds[0].parts[1:] != (0, None) and any(part.kind is not Kind.COMPLEMENT for part in others):
            # Of two bounds one is a language too many.
            fewest, most = cast("tuple[int, int | None]", bounds[0].parts[1:])
            high = most if high is None or (most is not None and most < high) else high
            return with_length(intersection((*others, *bounds[1:])), character, max(low, fewest), high)
    settled = _settled(language, low, high)
    if settled is not None:
        return settled
    least, most = character_counts(language)
    # Of an exact length few texts fit, and both bounds keep them few.
    low = low if low > least or low == high else 0
    high = high if high is not None and (most is None or high < most) else None
    return intersection((language, repeat(character, low, high)))


def _of_least(language: Expr, depth: int) -> Expr | None:
    """The texts of as many characters as `character_counts` says that none has fewer; None where that is not seen."""
    least, most = character_counts(language)
    if least == most:
        return language
    if not depth:
        return None
    match language.kind:
        case Kind.CONCAT:
            items = [_of_least(item, depth - 1) for item in sequence(language)]
            return None if None in items else concat(*cast("list[Expr]", items))
        case Kind.REPEAT:
            body, low, _ = cast("tuple[Expr, int, int | None]", language.parts)
            shortest = _of_least(body, depth - 1) if character_counts(body)[0] else None
            return None if shortest is None else repeat(shortest, low, low)
        case Kind.ALTERNATION:
            parts = cast("tuple[Expr, ...]", language.parts)
            few = [_of_least(part, depth - 1) for part in parts if character_counts(part)[0] == least]
            return None if None in few else alternation(cast("list[Expr]", few))
        case _:
            return None


def _settled(language: Expr, low: int, high: int | None) -> Expr | None:
    """The texts of a length without a language beside the first; None where that cannot be said."""
    least, most = character_counts(language)
    if low <= least and (high is None or (most is not None and most <= high)):
        return language
    if (high is not None and least > high) or (most is not None and most < low):
        return EMPTY
    if high == least:
        shortest = _of_least(language, MAX_DEPTH)
        if shortest is not None:
            return shortest
    if language.kind is Kind.ALTERNATION:
        parts = [_settled(cast(Expr, part), low, high) for part in language.parts]
        return None if None in parts else alternation(cast("list[Expr]", parts))
    # A run at the end takes up the bounds, less what is before it: there its states are known as those of a run.
    before: list[Expr] = []
    while language.kind is Kind.CONCAT:
        head, language = cast("tuple[Expr, Expr]", language.parts)
        before.append(head)
    if language.kind is not Kind.REPEAT:
        return None
    body, fewest, greatest = cast("tuple[Expr, int, int | None]", language.parts)
    start = concat(*before) if before else EPSILON
    least, most = character_counts(start)
    if character_counts(body) != (1, 1) or least != most:
        return None
    if high is not None:
        greatest = high - least if greatest is None else min(greatest, high - least)
    return concat(start, repeat(body, max(fewest, low - least), greatest))
