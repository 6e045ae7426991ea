"""From sets of Unicode code points to byte languages in UTF-8.

A set of characters is a tuple of inclusive code point ranges, sorted and disjoint; surrogates (U+D800..U+DFFF) are
not characters and are dropped.  An `Encoding` says how one character is written; every written text reads as one
sequence of characters only, so boolean operations on character languages carry over to byte languages unchanged as
long as complements stay inside ``encoding.text``.  Encodings of one class are equal, so results can be remembered by
encoding.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol, TypeAlias

from guided.grammar.regular.expr import Expr, byte_range, literal, repeat, switch
from guided.special_bytes import SENTINEL, special_bytes

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
    """One character of the set, in UTF-8; a `special_character` as its `special_bytes`.

    One switch of switches, so that a class is a small acyclic automaton.
    """
    spans: list[Span] = []
    for low, high in ranges:
        for code in range(max(low, MAX_CODE_POINT + 1), high + 1):
            name = special_bytes(_special_names[code - MAX_CODE_POINT - 1])
            spans.append((name, name))
        for start, stop in ((0, 0x7F), (0x80, 0x7FF), (0x800, 0xFFFF), (0x10000, MAX_CODE_POINT)):
            first, last = max(low, start), min(high, stop)
            if first <= last:
                spans.append((chr(first).encode(), chr(last).encode()))
    if len(spans) == 1:
        [span] = spans
        return literal(span[0]) if span[0].startswith(SENTINEL) else _block(*span)
    return _spanned(tuple(sorted(spans)))


Span: TypeAlias = "tuple[bytes, bytes]"
"""The encodings of one length between two, in byte order, which is that of code points in UTF-8."""


def _block(first: bytes, last: bytes) -> Expr:
    """The strings of one span."""
    if len(first) == 1:
        return byte_range(first[0], last[0])
    return switch([(low, high, _block(*rest)) for low, high, rest in _steps(first, last)], False)


def _spanned(spans: tuple[Span, ...]) -> Expr:
    """The strings of all spans, which are sorted and have none in common."""
    edges: list[tuple[int, int, tuple[Span, ...]]] = []
    nullable = False
    for first, last in spans:
        if not first:
            nullable = True
            continue
        for low, high, rest in _steps(first, last):
            if edges and edges[-1][1] == low:
                # Only a byte by itself can be the end of one span and the beginning of the next.
                edges[-1] = (low, high, (*edges[-1][2], rest))
            else:
                edges.append((low, high, (rest,)))
    return switch([(low, high, _spanned(rests)) for low, high, rests in edges], nullable)


def _steps(first: bytes, last: bytes) -> Iterator[tuple[int, int, Span]]:
    """The first bytes of a span, and what of it stands behind them."""
    low, high = first[0], last[0]
    if low == high:
        yield low, high, (first[1:], last[1:])
        return
    lowest, highest = b"\x80" * (len(first) - 1), b"\xbf" * (len(first) - 1)
    begins, ends = first[1:] == lowest, last[1:] == highest
    if not begins:
        yield low, low, (first[1:], highest)
    if low + (not begins) <= high - (not ends):
        yield low + (not begins), high - (not ends), (lowest, highest)
    if not ends:
        yield high, high, (lowest, last[1:])


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
