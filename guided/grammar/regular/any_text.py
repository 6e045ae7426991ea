"""Any text: any number of characters in UTF-8, and what is left of that inside a character; what is seen to be text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias, cast

from guided.grammar.regular.characters import ANY_CHARACTER, utf8
from guided.grammar.regular.expr import Edge, Expr, Kind, is_listed, repeat

RawEdges: TypeAlias = "Callable[[Expr], Sequence[Edge]]"

MAX_DEPTH = 60
"""Nested expressions that are looked into to see that they are text."""
MAX_REMEMBERED = 20_000
"""Parts of expressions that are remembered to be characters or not."""


@lru_cache(maxsize=1)
def any_text() -> tuple[Expr, Expr]:
    """One character, and any number of them; shared with all who write texts so."""
    character = utf8(ANY_CHARACTER)
    return character, repeat(character)


_states: dict[Expr, tuple[Edge, ...]] = {}


def text_states(raw_edges: RawEdges) -> dict[Expr, tuple[Edge, ...]]:
    """Any text, first, and all that can be left of it, with their edges."""
    if not _states:
        found: dict[Expr, tuple[Edge, ...]] = {}
        work = [any_text()[1]]
        for item in work:
            if item not in found:
                found[item] = tuple(raw_edges(item))
                work.extend(target for _, _, target in found[item])
        _states.update(found)
    return _states


_after: dict[tuple[Expr, Expr], Expr | None] = {}


def is_text(expr: Expr, text: Expr, raw_edges: RawEdges) -> bool:
    """Is it plain from its structure that what is left of any text, ``text``, holds all of a language?"""
    if len(_after) >= MAX_REMEMBERED:
        _after.clear()
    return _read(expr, text, text_states(raw_edges), 0) is any_text()[1]


def _read(expr: Expr, text: Expr, states: dict[Expr, tuple[Edge, ...]], depth: int) -> Expr | None:
    """What is left of any text after whichever string of a language; None if that differs, or is not to be seen."""
    key = (expr, text)
    if key not in _after:
        # What leads to itself again reads nothing meanwhile.
        _after[key] = None
        _after[key] = _read_parts(expr, text, states, depth + 1) if depth < MAX_DEPTH else None
    return _after[key]


def _read_parts(expr: Expr, text: Expr, states: dict[Expr, tuple[Edge, ...]], depth: int) -> Expr | None:
    found: Expr | None = text
    match expr.kind:
        case Kind.EPSILON:
            return text
        case Kind.LITERAL:
            for byte in cast(bytes, expr.parts[0]):
                found = _one(_range(found, byte, byte, states)) if found else None
            return found
        case Kind.BYTES:
            mask = cast(int, expr.parts[0])
            inside = 0
            for low, high, _ in states[text]:
                inside |= (1 << (high + 1)) - (1 << low)
            if mask & ~inside:
                return None
            return _one({target for low, high, target in states[text] if mask & ((1 << (high + 1)) - (1 << low))})
        case Kind.CONCAT:
            while expr.kind is Kind.CONCAT and found:
                head, expr = cast("tuple[Expr, Expr]", expr.parts)
                found = _read(head, found, states, depth)
            return _read(expr, found, states, depth) if found else None
        case Kind.ALTERNATION:
            return _one({_read(part, text, states, depth) for part in cast("tuple[Expr, ...]", expr.parts)})
        case Kind.REPEAT:
            return text if _read(cast(Expr, expr.parts[0]), text, states, depth) is text else None
        case Kind.SWITCH if not is_listed(expr):
            ends: set[Expr | None] = {text} if expr.nullable else set()
            for low, high, target in cast("tuple[Edge, ...]", expr.parts[0]):
                ends |= {_read(target, at, states, depth) if at else None for at in _range(text, low, high, states)}
                if None in ends:
                    return None
            return _one(ends)
    return None


def _one(found: set[Expr | None]) -> Expr | None:
    return found.pop() if len(found) == 1 else None


def _range(text: Expr, low: int, high: int, states: dict[Expr, tuple[Edge, ...]]) -> set[Expr | None]:
    """What is left after one of these bytes; with None where one of them does not come next."""
    found: set[Expr | None] = set()
    for first, last, target in states[text]:
        if first <= low <= last:
            found.add(target)
            low = last + 1
            if low > high:
                return found
    found.add(None)
    return found
