"""From sets of Unicode code points to byte languages: plain UTF-8, and the inside of a JSON string.

A set of characters is a tuple of inclusive code point ranges, sorted and disjoint; surrogates (U+D800..U+DFFF) are
not characters and are dropped.  An `Encoding` says how one character is written; a character may have several
spellings (JSON escapes), but every written text reads as one sequence of characters only, so boolean operations on
character languages carry over to byte languages unchanged as long as complements stay inside ``encoding.text``.
Encodings of one class are equal, so results can be remembered by encoding.
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
    byte_set,
    concat,
    literal,
    repeat,
    spelling,
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


SHORT_ESCAPES = {0x22: b'"', 0x5C: b"\\", 0x2F: b"/", 8: b"b", 12: b"f", 10: b"n", 13: b"r", 9: b"t"}
_RAW_JSON: CharacterSet = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0xD7FF), (0xE000, MAX_CODE_POINT))
_DIGITS = "0123456789abcdef"


def _hex_digit(low: int, high: int) -> Expr:
    mask = 0
    for value in range(low, high + 1):
        mask |= 1 << ord(_DIGITS[value]) | 1 << ord(_DIGITS[value].upper())
    return byte_set(mask)


def _hex_block(low: int, high: int, digits: int) -> Expr:
    """``digits`` hexadecimal digits, either case, of a value between two."""
    if digits == 1:
        return _hex_digit(low, high)
    unit = 16 ** (digits - 1)
    parts: list[Expr] = []
    top_low, top_high = low // unit, high // unit
    if top_low == top_high:
        return concat(_hex_digit(top_low, top_low), _hex_block(low % unit, high % unit, digits - 1))
    if low % unit:
        parts.append(concat(_hex_digit(top_low, top_low), _hex_block(low % unit, unit - 1, digits - 1)))
        top_low += 1
    if high % unit != unit - 1:
        parts.append(concat(_hex_digit(top_high, top_high), _hex_block(0, high % unit, digits - 1)))
        top_high -= 1
    if top_low <= top_high:
        parts.append(concat(_hex_digit(top_low, top_high), _hex_block(0, unit - 1, digits - 1)))
    return alternation(parts)


@lru_cache(maxsize=4096)
def _json_escapes(ranges: CharacterSet) -> Expr:
    """The part after the backslash, for one character of the set: short escapes, ``uXXXX``, surrogate pairs."""
    short = 0
    parts: list[Expr] = []
    for low, high in ranges:
        for code, letter in SHORT_ESCAPES.items():
            if low <= code <= high:
                short |= 1 << letter[0]
        if low <= 0xFFFF:
            parts.append(concat(literal(b"u"), _hex_block(low, min(high, 0xFFFF), 4)))
        if high > 0xFFFF:
            parts.append(_surrogate_pairs(max(low, 0x10000) - 0x10000, high - 0x10000))
    return _join([byte_set(short), *parts])


def _surrogate_pairs(low: int, high: int) -> Expr:
    parts: list[Expr] = []

    def add(lead_low: int, lead_high: int, trail_low: int, trail_high: int) -> None:
        lead = _hex_block(0xD800 + lead_low, 0xD800 + lead_high, 4)
        trail = _hex_block(0xDC00 + trail_low, 0xDC00 + trail_high, 4)
        parts.append(concat(literal(b"u"), lead, literal(b"\\u"), trail))

    lead_low, lead_high = low >> 10, high >> 10
    if lead_low == lead_high:
        add(lead_low, lead_high, low & 0x3FF, high & 0x3FF)
    else:
        if low & 0x3FF:
            add(lead_low, lead_low, low & 0x3FF, 0x3FF)
            lead_low += 1
        if high & 0x3FF != 0x3FF:
            add(lead_high, lead_high, 0, high & 0x3FF)
            lead_high -= 1
        if lead_low <= lead_high:
            add(lead_low, lead_high, 0, 0x3FF)
    return alternation(parts)


@lru_cache(maxsize=4096)
def _json_character(ranges: CharacterSet) -> Expr:
    return _join([utf8(intersect(ranges, _RAW_JSON)), concat(literal(b"\\"), _json_escapes(ranges))])


@dataclass(frozen=True, slots=True)
class JsonString:
    """The inside of a JSON string, without its quotes: every character in every spelling that RFC 8259 allows.

    Lone surrogate escapes are not characters and are not accepted.
    """

    def characters(self, ranges: CharacterSet) -> Expr:
        """One character of the set, raw or escaped."""
        return _json_character(ranges)

    def string(self, text: str) -> Expr:
        """Exactly this text, each character raw or escaped."""
        return spelling(self, (text,))

    def raw(self, character: str) -> bytes:
        """The character as itself, or no bytes when it must be escaped."""
        code = ord(character)
        return b"" if code < 0x20 or code in (0x22, 0x5C) or 0xD800 <= code < 0xE000 else character.encode()

    def escaped(self, character: str) -> Expr:
        """All escapes of the character, without the backslash that begins them."""
        return _json_escapes(((ord(character), ord(character)),))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(JsonString)

    @property
    def text(self) -> Expr:
        """Any sequence of characters."""
        return repeat(_json_character(ANY_CHARACTER))


@dataclass(frozen=True, slots=True)
class CanonicalJsonString:
    """The inside of a JSON string in its one shortest spelling: only what must be escaped is (as ``json.dumps`` does).

    Control characters take the short escape where there is one and lower-case ``\\u00xx`` otherwise.
    """

    def characters(self, ranges: CharacterSet) -> Expr:
        """One character of the set."""
        return _canonical_character(ranges)

    def string(self, text: str) -> Expr:
        """Exactly this text."""
        return concat(*(_canonical_character(((code, code),)) for code in map(ord, text)))

    @property
    def text(self) -> Expr:
        """Any sequence of characters."""
        return repeat(_canonical_character(ANY_CHARACTER))


@lru_cache(maxsize=4096)
def _canonical_character(ranges: CharacterSet) -> Expr:
    parts = [utf8(intersect(ranges, _RAW_JSON))]
    for low, high in intersect(ranges, ((0, 0x1F), (0x22, 0x22), (0x5C, 0x5C))):
        for code in range(low, high + 1):
            letter = SHORT_ESCAPES.get(code)
            parts.append(literal(b"\\" + letter) if letter else literal(b"\\u%04x" % code))
    return _join(parts)
