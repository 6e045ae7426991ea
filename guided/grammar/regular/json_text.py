"""How the text of a JSON string is spelled: first bytes of `json_string` languages, raw characters and escapes.

The content of a string is a language of UTF-8 texts; this file puts RFC 8259's spelling on top of it, so that nothing
else needs to know escapes.  Compiled constraints read strings by `guided.kernels.lexing.strings`; this is the same in
terms of expressions, for questions that are asked without tables.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, cast

from guided.grammar.regular.expr import EPSILON, Edge, Expr, json_escape, json_string

Edges: TypeAlias = "Callable[[Expr], tuple[Edge, ...]]"

SHORT_ESCAPES = {0x22: b'"', 0x5C: b"\\", 0x2F: b"/", 8: b"b", 12: b"f", 10: b"n", 13: b"r", 9: b"t"}
RAW_BYTES = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0xFF))
"""Bytes of a text that stand for themselves in a JSON string."""
LONG_ESCAPES = ((0, 7), (11, 11), (14, 31))
"""The characters that ``json.dumps`` writes as ``\\u00xx``."""
UTF8_BLOCKS = ((0, 0x7F), (0x80, 0x7FF), (0x800, 0xFFFF), (0x10000, 0x10FFFF))
"""Code points by the length of their UTF-8."""


def json_string_edges(expr: Expr, edges: Edges) -> list[Edge]:
    """The first bytes of a `json_string`."""
    content, canonical = cast("tuple[Expr, bool]", expr.parts)
    result: list[Edge] = []
    for low, high, target in edges(content):
        rest = json_string(target, canonical=canonical)
        result += [(max(low, a), min(high, b), rest) for a, b in RAW_BYTES if max(low, a) <= min(high, b)]
    if content.nullable:
        result.append((0x22, 0x22, EPSILON))
    escape = json_escape(content, canonical, "")
    if json_escape_edges(escape, edges):
        result.append((0x5C, 0x5C, escape))
    return sorted(result, key=_first)


def json_escape_edges(expr: Expr, edges: Edges) -> list[Edge]:
    """The first bytes of a `json_escape`."""
    content, canonical, begun = cast("tuple[Expr, bool, str]", expr.parts)
    result: list[Edge] = []
    if not begun:
        for code, letter in SHORT_ESCAPES.items():
            after = None if canonical and code == 0x2F else _after(content, code, edges)
            if after is not None:
                result.append((letter[0], letter[0], json_string(after, canonical=canonical)))
        candidates = "u"
    elif len(begun) == 5:
        candidates = "\\"
    elif begun.endswith("\\"):
        candidates = "u"
    else:
        candidates = "0123456789abcdef"
    for letter_text in candidates:
        target = _step(content, canonical, begun + letter_text, edges)
        if target is not None:
            cases = {letter_text} if canonical or letter_text == "u" else {letter_text, letter_text.upper()}
            result += [(ord(case), ord(case), target) for case in cases]
    return sorted(result, key=_first)


def _step(content: Expr, canonical: bool, begun: str, edges: Edges) -> Expr | None:
    """What remains after ``begun``; None when no character of ``content`` is spelled so."""
    if len(begun) == 5 or len(begun) == 11:
        code = int(begun[1:5], 16)
        if len(begun) == 11:
            code = 0x10000 + ((code & 0x3FF) << 10) + (int(begun[7:], 16) & 0x3FF)
        if not 0xD800 <= code < 0xE000:
            if canonical and not any(low <= code <= high for low, high in LONG_ESCAPES):
                return None
            after = _after(content, code, edges)
            return None if after is None else json_string(after, canonical=canonical)
    ranges = spelled_ranges(begun)
    if canonical:
        ranges = [(max(low, a), min(high, b)) for low, high in ranges for a, b in LONG_ESCAPES]
    reachable = any(low <= high and _reaches(content, low, high, edges) for low, high in ranges)
    return json_escape(content, canonical, begun) if reachable else None


def spelled_ranges(begun: str) -> list[tuple[int, int]]:
    """The characters whose escape begins with a backslash and ``begun`` (``u``, digits, second half)."""
    digits = begun[1:5]
    low, high = int(digits.ljust(4, "0"), 16), int(digits.ljust(4, "f"), 16)
    if len(digits) == 4:
        trail = begun[7:]
        first, last = int(trail.ljust(4, "0"), 16), int(trail.ljust(4, "f"), 16)
        first, last = max(first, 0xDC00), min(last, 0xDFFF)
        base = 0x10000 + ((low & 0x3FF) << 10)
        return [(base + (first & 0x3FF), base + (last & 0x3FF))] if first <= last and 0xD800 <= low < 0xDC00 else []
    result = [(max(low, a), min(high, b)) for a, b in ((0, 0xD7FF), (0xE000, 0xFFFF))]
    lead_low, lead_high = max(low, 0xD800), min(high, 0xDBFF)
    if lead_low <= lead_high:
        result.append((0x10000 + ((lead_low & 0x3FF) << 10), 0x10000 + ((lead_high & 0x3FF) << 10) + 0x3FF))
    return [pair for pair in result if pair[0] <= pair[1]]


def _after(content: Expr, code: int, edges: Edges) -> Expr | None:
    """The content that remains after one character."""
    for byte in chr(code).encode():
        for low, high, target in edges(content):
            if low <= byte <= high:
                content = target
                break
        else:
            return None
    return content


def _reaches(content: Expr, low: int, high: int, edges: Edges) -> bool:
    """Can ``content`` begin with a character between two?"""
    for start, stop in UTF8_BLOCKS:
        first, last = max(low, start), min(high, stop)
        if first <= last and _between(content, chr(first).encode(), chr(last).encode(), edges):
            return True
    return False


def _between(content: Expr, first: bytes, last: bytes, edges: Edges) -> bool:
    """Is there a way through bytes between two of equal length?  Targets always go on, so inner bytes need no look."""
    if not first:
        return True
    for low, high, target in edges(content):
        if low < last[0] and high > first[0] and max(low, first[0] + 1) <= min(high, last[0] - 1):
            return True
        at_first, at_last = low <= first[0] <= high, low <= last[0] <= high
        if first[0] == last[0]:
            if at_first and _between(target, first[1:], last[1:], edges):
                return True
            continue
        if at_first and _between(target, first[1:], b"\xbf" * (len(first) - 1), edges):
            return True
        if at_last and _between(target, b"\x80" * (len(last) - 1), last[1:], edges):
            return True
    return False


def _first(edge: Edge) -> int:
    return edge[0]
