"""What languages are like that lexer states are made of: how they begin, and whether they repeat."""

from __future__ import annotations

from typing import TypeAlias, cast

from guided.automata.lexer.runs import begins_run
from guided.grammar.regular.any_text import any_text
from guided.grammar.regular.condensed import place_of
from guided.grammar.regular.expr import ALL, EPSILON, Expr, Kind, is_listed, json_string
from guided.kernels.data.layout import CANONICAL, STRING
from guided.kernels.lexing.part_pairs import (
    ABSORBS,
    ANY_BYTE,
    ANY_CHARACTER,
    AT_HEAD,
    COMMON,
    EXPENSIVE,
    LOOPS,
    NULLABLE,
    SPELLED_ONCE,
    TEXTUAL,
    WIDE_SYMBOL,
    WORD,
    WORDS,
)

__all__ = [
    "Reading",
    "begins",
    "is_read_whole",
    "is_wide",
    "is_word_list",
    "loops",
    "reading",
    "symbol_flags",
    "terminal",
    "traits_of",
]

Reading: TypeAlias = "tuple[Expr, int]"
"""A language, and whether it is read as bytes (0) or as the text of a JSON string (its mode)."""


def reading(key: Expr) -> Reading:
    """What of a terminal's language edges read."""
    if key.kind is not Kind.JSON_STRING:
        return key, 0
    content, canonical = cast("tuple[Expr, bool]", key.parts)
    return content, STRING | CANONICAL if canonical else STRING


def terminal(content: Expr, mode: int) -> Expr:
    """The language of bytes that a reading is of."""
    return json_string(content, canonical=bool(mode & CANONICAL)) if mode else content


def begins(content: Expr) -> tuple[Expr, Expr]:
    """The first item of a concatenation, and the rest."""
    return cast("tuple[Expr, Expr]", content.parts) if content.kind is Kind.CONCAT else (content, EPSILON)


def is_word_list(content: Expr) -> bool:
    """Does a language begin with one of several words, none of them empty where something follows?"""
    head, tail = begins(content)
    return is_listed(head) and (tail is EPSILON or not head.nullable)


_DEAR = frozenset({Kind.INTERSECTION, Kind.COMPLEMENT, Kind.RECURSION, Kind.JSON_STRING, Kind.JSON_ESCAPE})


def is_read_whole(content: Expr) -> bool:
    """Does a language begin with what is read as a whole, its edges not known?"""
    while content.kind is Kind.CONCAT:
        content = cast(Expr, content.parts[0])
    return content.kind in _DEAR and place_of(content) is None and content.edges is None


def traits_of(content: Expr, mode: int) -> int:
    """The traits of a part that is an expression, as `guided.kernels.lexing.part_pairs` has them."""
    head = begins(content)[0]
    kind = head.kind
    found = NULLABLE if content.nullable else 0
    if kind is Kind.RECURSION and head is content:
        # The states of an automaton are many.
        spelled = (TEXTUAL | SPELLED_ONCE if mode & CANONICAL else TEXTUAL) if mode else 0
        return found | EXPENSIVE | LOOPS | spelled
    if kind is Kind.REPEAT:
        if head.parts[2] is None:
            found |= AT_HEAD
            if head is content:
                found |= COMMON
    elif kind is Kind.LITERAL or (kind is Kind.SWITCH and is_word_list(content)):
        found |= WORDS
    elif kind in _DEAR:
        found |= EXPENSIVE
    if mode:
        found |= TEXTUAL | SPELLED_ONCE if mode & CANONICAL else TEXTUAL
        if content is _TEXT:
            found |= ABSORBS
    elif content is ALL:
        found |= ABSORBS
    if loops(content) or (mode and begins_run(content)):
        found |= LOOPS
    return found


def symbol_flags(symbol: Expr) -> int:
    """What traits of runs of a symbol follow from, as `guided.kernels.lexing.part_pairs` has it."""
    found = WIDE_SYMBOL if is_wide(symbol) else 0
    if symbol.kind is Kind.LITERAL:
        found |= WORD
    if symbol is _CHARACTER:
        found |= ANY_CHARACTER
    if symbol is ALL.parts[0]:
        found |= ANY_BYTE
    return found


_CHARACTER, _TEXT = any_text()

_looping: dict[Expr, bool] = {}


def loops(expr: Expr) -> bool:
    """Does the language repeat without a small bound, so that its states are met again and effects worth keeping?

    Or is it read by two characters in a row that may be nearly any?
    """
    # Sequences are pairs of pairs, as deep as they are long.
    sequence: list[Expr] = []
    while expr.kind is Kind.CONCAT and expr not in _looping:
        sequence.append(expr)
        expr = cast(Expr, expr.parts[1])
    found = _looping.get(expr)
    if found is None:
        match expr.kind:
            case Kind.REPEAT:
                body, _, high = cast("tuple[Expr, int, int | None]", expr.parts)
                found = high is None or high >= 8 or (high > 1 and is_wide(body)) or loops(body)
            case Kind.COMPLEMENT | Kind.RECURSION:
                found = True
            case Kind.ALTERNATION | Kind.INTERSECTION:
                found = any(loops(cast(Expr, part)) for part in expr.parts)
            case Kind.SWITCH if not is_listed(expr):
                found = any(loops(target) for _, _, target in cast("tuple[tuple[int, int, Expr], ...]", expr.parts[0]))
            case _:
                found = False
        _looping[expr] = found
    for pair in reversed(sequence):
        head, tail = cast("tuple[Expr, Expr]", pair.parts)
        found = _looping[pair] = found or loops(head) or (is_wide(head) and is_wide(begins(tail)[0]))
    return found


def is_wide(body: Expr) -> bool:
    """May most ASCII bytes come?  Tokens of such characters are tens of thousands, too many to walk with the parser."""
    if body.kind is Kind.BYTES:
        return cast(int, body.parts[0]).bit_count() >= WIDE_CLASS
    if body.kind is not Kind.SWITCH or is_listed(body):
        return False
    return (
        sum([high - low + 1 for low, high, _ in cast("tuple[tuple[int, int, Expr], ...]", body.parts[0])]) >= WIDE_CLASS
    )


WIDE_CLASS = 64
"""Bytes that such a class of characters begins with; symbols and digits are 62, and four of them take 1 ms."""
