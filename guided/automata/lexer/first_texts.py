"""The shortest text of a language, the first in byte order among equals: read off an expression's structure.

Of parts in a row each gives its own: those of one part that are as short have equally many bytes.  Of languages that
must hold together the first of one is it where it lies in all the others.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, cast

from guided.grammar.regular.any_text import any_text
from guided.grammar.regular.derivative import matches
from guided.grammar.regular.expr import Expr, Kind, sequence
from guided.grammar.regular.json_text import RAW_BYTES

__all__ = ["first_text"]

LONGEST = 1024
"""Bytes of a text up to which it is written out."""

MATCHED = 64
"""Bytes up to which a text is read by an expression, 10 microseconds each, to see whether it lies in it."""

REMEMBERED = 1 << 14
"""Expressions whose texts are remembered."""

_ESCAPES = {34: b'\\"', 92: b"\\\\", 8: b"\\b", 12: b"\\f", 10: b"\\n", 13: b"\\r", 9: b"\\t"}
"""What is escaped in two bytes, in the order of how it is written."""


class _Text(NamedTuple):
    """Compared by what is written."""

    size: int
    written: bytes
    meant: bytes
    """The same, where a string spells it."""
    is_told: bool = True
    """Is it known how a byte in it is written?  If not, it is no longer than this says."""


_NOTHING = _Text(0, b"", b"")
_QUOTE = _Text(1, b'"', b'"')


def first_text(expr: Expr, spelled: bool) -> bytes | None:
    """The text, with ``spelled`` as a JSON string writes it; None where structure does not tell.

    >>> from guided.grammar.regular.expr import byte_range, concat, literal, repeat
    >>> first_text(concat(literal(b'"a'), repeat(byte_range(0x30, 0x39), 2, 4)), spelled=True)
    b'\\\\"a00'
    """
    try:
        found = _first(expr, spelled)
    except RecursionError:
        return None
    return found.written if found is not None and found.is_told else None


@lru_cache(REMEMBERED)
def _first(expr: Expr, spelled: bool) -> _Text | None:
    if expr.nullable:
        return _NOTHING
    match expr.kind:
        case Kind.BYTES:
            return _of_bytes(cast(int, expr.parts[0]), spelled)
        case Kind.LITERAL:
            return _joined([_of_bytes(1 << byte, spelled) for byte in cast(bytes, expr.parts[0])])
        case Kind.CONCAT:
            return _joined([_first(item, spelled) for item in sequence(expr)])
        case Kind.ALTERNATION:
            return _least([_first(part, spelled) for part in cast("tuple[Expr, ...]", expr.parts)])
        case Kind.REPEAT:
            body, low, _ = cast("tuple[Expr, int, int | None]", expr.parts)
            return _joined([_first(body, spelled)] * low) if low <= LONGEST else None
        case Kind.SWITCH:
            edges = cast("tuple[tuple[int, int, Expr], ...]", expr.parts[0])
            ways = [(_of_bytes((2 << high) - (1 << low), spelled), _first(to, spelled)) for low, high, to in edges]
            return _least([_joined(list(way)) for way in ways])
        case Kind.INTERSECTION:
            return _in_all(cast("tuple[Expr, ...]", expr.parts), spelled)
        case Kind.JSON_STRING:
            text = _first(cast(Expr, expr.parts[0]), True)
            return None if text is None else _joined([text._replace(meant=text.written), _QUOTE])
    return None


def _of_bytes(mask: int, spelled: bool) -> _Text:
    """The first of some bytes; not told where all take an escape of their number, in letters of either case."""
    if not spelled or mask & _RAW:
        mask = mask & _RAW if spelled else mask
        byte = bytes(((mask & -mask).bit_length() - 1,))
        return _Text(1, byte, byte)
    for code, written in _ESCAPES.items():
        if mask >> code & 1:
            return _Text(2, written, bytes((code,)))
    return _Text(6, b"", b"", is_told=False)


_RAW = sum((2 << high) - (1 << low) for low, high in RAW_BYTES)


def _joined(texts: list[_Text | None]) -> _Text | None:
    known = [text for text in texts if text is not None]
    size = sum([text.size for text in known])
    if len(known) < len(texts) or size > LONGEST:
        return None
    written, meant = b"".join([text.written for text in known]), b"".join([text.meant for text in known])
    return _Text(size, written, meant, all(text.is_told for text in known))


def _least(texts: list[_Text | None]) -> _Text | None:
    known = [text for text in texts if text is not None]
    if len(known) < len(texts):
        return None
    size = min(known).size
    # What is not told comes first among those of its size: it is not told then which is.
    return min([text for text in known if text.size == size], key=lambda text: (text.is_told, text.written))


def _in_all(parts: tuple[Expr, ...], spelled: bool) -> _Text | None:
    """The first of one part that lies in all the others."""
    for part in parts:
        text = _first(part, spelled)
        if text is not None and text.is_told and all(other is part or _holds(other, text.meant) for other in parts):
            return text
    return None


def _holds(expr: Expr, text: bytes) -> bool:
    if expr.kind is Kind.REPEAT and expr.parts[0] is any_text()[0]:
        _, low, high = cast("tuple[Expr, int, int | None]", expr.parts)
        try:
            size = len(text.decode())
        except UnicodeDecodeError:
            return False
        return low <= size and (high is None or size <= high)
    return len(text) <= MATCHED and matches(expr, text)
