"""From sets of Unicode code points to byte languages in UTF-8.

A set of characters is a tuple of inclusive code point ranges, sorted and disjoint; surrogates (U+D800..U+DFFF) are
not characters and are dropped.  An `Encoding` says how one character is written; every written text reads as one
sequence of characters only, so boolean operations on character languages carry over to byte languages unchanged as
long as complements stay inside ``encoding.text``.  Encodings of one class are equal, so results can be remembered by
encoding.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeAlias

from guided.grammar.regular.expr import (
    EMPTY,
    EPSILON,
    Edge,
    Expr,
    alternation,
    byte_range,
    literal,
    repeat,
    switch,
)
from guided.special_bytes import special_bytes

CharacterSet: TypeAlias = "tuple[tuple[int, int], ...]"

MAX_CODE_POINT = 0x10FFFF
ANY_CHARACTER: CharacterSet = ((0, 0xD7FF), (0xE000, MAX_CODE_POINT))


def normalise(ranges: Iterable[tuple[int, int]]) -> CharacterSet:
    """Sort, merge and clip ranges, and drop the surrogates.

    >>> normalise([(98, 99), (97, 97), (120, 120)])
    ((97, 99), (120, 120))
    """
    clipped: list[tuple[int, int]] = []
    for low, high in ranges:
        low, high = max(low, 0), min(high, MAX_CODE_POINT)
        if low < 0xD800:
            clipped.append((low, min(high, 0xD7FF)))
        if high > 0xDFFF:
            clipped.append((max(low, 0xE000), high))
    result: list[tuple[int, int]] = []
    for low, high in sorted(pair for pair in clipped if pair[0] <= pair[1]):
        if result and low <= result[-1][1] + 1:
            result[-1] = (result[-1][0], max(result[-1][1], high))
        else:
            result.append((low, high))
    return tuple(result)


def negate(characters: CharacterSet) -> CharacterSet:
    """All characters that are not in the set."""
    result: list[tuple[int, int]] = []
    at = 0
    for low, high in characters:
        if at < low:
            result.append((at, low - 1))
        at = high + 1
    if at <= MAX_CODE_POINT:
        result.append((at, MAX_CODE_POINT))
    return normalise(result)


def intersect(left: CharacterSet, right: CharacterSet) -> CharacterSet:
    """The characters in both sets."""
    result: list[tuple[int, int]] = []
    i = j = 0
    while i < len(left) and j < len(right):
        low, high = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if low <= high:
            result.append((low, high))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return tuple(result)


class Encoding(Protocol):
    """How characters are written as bytes."""

    def __hash__(self) -> int:
        """Equal encodings are interchangeable."""

    @property
    def text(self) -> Expr:
        """All texts: any sequence of any characters."""

    def characters(self, ranges: CharacterSet) -> Expr:
        """One character of the set, in any of its spellings."""

    def string(self, text: str) -> Expr:
        """Exactly this text, in any of its spellings."""


_special_names: list[str] = []
_special_codes: dict[str, int] = {}
_special_lock = threading.Lock()


def special_character(name: str) -> CharacterSet:
    """A special token as one character beyond Unicode, for lexers, whose patterns are over characters.

    No set made of Unicode characters holds it, `normalise` and `negate` drop it, and `utf8` writes it as
    `special_bytes`.  The code point is good for this process only.
    """
    with _special_lock:
        code = _special_codes.get(name)
        if code is None:
            code = _special_codes[name] = MAX_CODE_POINT + 1 + len(_special_names)
            _special_names.append(name)
    return ((code, code),)


@lru_cache(maxsize=4096)
def utf8(ranges: CharacterSet) -> Expr:
    """One character of the set, in UTF-8; a `special_character` as its `special_bytes`."""
    parts: list[Expr] = []
    for low, high in ranges:
        for code in range(max(low, MAX_CODE_POINT + 1), high + 1):
            parts.append(literal(special_bytes(_special_names[code - MAX_CODE_POINT - 1])))
        for start, stop, length in ((0, 0x7F, 1), (0x80, 0x7FF, 2), (0x800, 0xFFFF, 3), (0x10000, MAX_CODE_POINT, 4)):
            first, last = max(low, start), min(high, stop)
            if first <= last:
                parts.append(_utf8_block(chr(first).encode(), chr(last).encode(), length))
    return _join(parts)


def _utf8_block(first: bytes, last: bytes, length: int) -> Expr:
    """All encodings of equal length between two, in byte order (which is code point order in UTF-8)."""
    if length == 1:
        return byte_range(first[0], last[0])
    lowest, highest = b"\x80" * (length - 1), b"\xbf" * (length - 1)
    if first[0] == last[0]:
        return switch([(first[0], first[0], _utf8_block(first[1:], last[1:], length - 1))], False)
    edges: list[Edge] = []
    low, high = first[0], last[0]
    if first[1:] != lowest:
        edges.append((low, low, _utf8_block(first[1:], highest, length - 1)))
        low += 1
    tail: list[Edge] = []
    if last[1:] != highest:
        tail.append((high, high, _utf8_block(lowest, last[1:], length - 1)))
        high -= 1
    if low <= high:
        edges.append((low, high, _utf8_block(lowest, highest, length - 1)))
    return switch(edges + tail, False)


def _join(parts: list[Expr]) -> Expr:
    """Union of one-character languages as one switch, so that a class is a small acyclic automaton."""
    from guided.grammar.regular.derivative import edges

    union = alternation(parts)
    return _expand(union, edges) if len(parts) > 1 else union


def _expand(expr: Expr, edges: object) -> Expr:
    if expr is EPSILON or expr is EMPTY:
        return expr
    return switch([(low, high, _expand(target, edges)) for low, high, target in edges(expr)], expr.nullable)  # type: ignore[operator]


@dataclass(frozen=True, slots=True)
class Utf8:
    """Plain UTF-8 text, one spelling per character."""

    def characters(self, ranges: CharacterSet) -> Expr:
        """One character of the set."""
        return utf8(ranges)

    def string(self, text: str) -> Expr:
        """Exactly this text."""
        return literal(text.encode())

    @property
    def text(self) -> Expr:
        """Any sequence of characters."""
        return repeat(utf8(ANY_CHARACTER))
