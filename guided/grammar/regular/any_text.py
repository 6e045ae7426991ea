"""Runs of characters, any text above all, and what is left of them inside a character; what is seen to lie in a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TypeAlias, cast

from guided.grammar.regular.characters import ANY_CHARACTER, utf8
from guided.grammar.regular.expr import Edge, Expr, Kind, difference, is_listed, repeat, words

RawEdges: TypeAlias = "Callable[[Expr], Sequence[Edge]]"

MAX_DEPTH = 60
"""Nested expressions that are looked into to see that they are text."""
MAX_REMEMBERED = 20_000
"""Parts of expressions that are remembered to be characters or not, and runs."""
MAX_RUN_STATES = 64
"""What may be left of a run; UTF-8 has eight of any character, and a class seldom twice as many."""


@lru_cache(maxsize=1)
def any_text() -> tuple[Expr, Expr]:
    """One character, and any number of them; shared with all who write texts so."""
    character = utf8(ANY_CHARACTER)
    return character, repeat(character)


def text_excluding(texts: Iterable[bytes]) -> Expr:
    """Any text but these."""
    return difference(any_text()[1], words(texts))


States: TypeAlias = "dict[Expr, tuple[Edge, ...]]"

_states: dict[Expr, States | None] = {}


def text_states(raw_edges: RawEdges) -> States:
    """Any text, first, and all that can be left of it, with their edges."""
    return cast(States, _run_states(any_text()[1], raw_edges))


def is_run(expr: Expr) -> bool:
    """Is this a repetition without bounds, or what is left of one after the beginning of a character?"""
    if expr.kind is Kind.CONCAT:
        head, expr = cast("tuple[Expr, Expr]", expr.parts)
        if head.kind is not Kind.SWITCH and head.kind is not Kind.BYTES:
            return False
    return expr.kind is Kind.REPEAT and expr.parts[1:] == (0, None)


def _run_states(run: Expr, raw_edges: RawEdges) -> States | None:
    """A run and all that can be left of it, with their edges; None where that is much.  Remembered."""
    if run not in _states:
        if len(_states) >= MAX_REMEMBERED:
            _states.clear()
        found: States = {}
        work = [run]
        for item in work:
            if item not in found and len(found) <= MAX_RUN_STATES:
                found[item] = tuple(raw_edges(item))
                work.extend(target for _, _, target in found[item])
        _states[run] = None if len(found) > MAX_RUN_STATES else found
    return _states[run]


_after: dict[tuple[Expr, Expr], Expr | None] = {}


def is_text(expr: Expr, text: Expr, raw_edges: RawEdges) -> bool:
    """Is it plain from its structure that what is left of any text, ``text``, holds all of a language?"""
    return _read_all(expr, text, text_states(raw_edges)) is any_text()[1]


def is_within(expr: Expr, run: Expr, raw_edges: RawEdges) -> bool:
    """Is it plain from its structure that a run, or what is left of one, holds all of a language?

    >>> from guided.grammar.regular.derivative import possible_edges
    >>> from guided.grammar.regular.expr import byte_range, literal
    >>> is_within(literal(b"abc"), repeat(byte_range(0x61, 0x7A)), possible_edges)
    True
    """
    states = _run_states(run, raw_edges)
    if states is None:
        return False
    end = _read_all(expr, run, states)
    return end is not None and end.nullable


def _read_all(expr: Expr, text: Expr, states: States) -> Expr | None:
    if len(_after) >= MAX_REMEMBERED:
        _after.clear()
    return _read(expr, text, states, 0)


def _read(expr: Expr, text: Expr, states: States, depth: int) -> Expr | None:
    """What is left of a run, ``text``, after any string of a language; None if that differs, or is not to be seen."""
    key = (expr, text)
    if key not in _after:
        # What leads to itself again reads nothing meanwhile.
        _after[key] = None
        _after[key] = _read_parts(expr, text, states, depth + 1) if depth < MAX_DEPTH else None
    return _after[key]


def _read_parts(expr: Expr, text: Expr, states: States, depth: int) -> Expr | None:
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


def _range(text: Expr, low: int, high: int, states: States) -> set[Expr | None]:
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
