"""The lexer states of JSON strings with one text, one of several, or any but some: no expressions.

In every spelling, or in the canonical one alone, as `guided.grammar.regular.expr.json_string` has it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np

from guided.automata.lexer.other_texts import OtherTexts
from guided.automata.lexer.states import StateTable
from guided.grammar.regular.any_text import any_text
from guided.grammar.regular.expr import EPSILON, Expr, json_string
from guided.kernels.data.layout import CANONICAL, STRING
from guided.kernels.jit import direct
from guided.kernels.lexing.determinise import write_names

__all__ = ["spelled_texts", "state_excluding", "state_of_texts", "states_of_names"]

K = TypeVar("K", bound="OtherTexts | tuple[tuple[bytes, ...], bool]")


_ESCAPED = re.compile(rb'[\x00-\x1f"\\]')
"""What a string must escape."""

_CLOSING: tuple[Expr, Expr] = json_string(EPSILON), json_string(EPSILON, canonical=True)
"""The end of a string in every spelling, and of one in the canonical one."""


def states_of_names(states: StateTable, names: Sequence[bytes], canonical: bool) -> list[int]:
    """The states before the quotes of JSON strings with these texts, each a piece of UTF-8; remembered by the text."""
    known = states.names[canonical]
    found = [known.get(name, 0) for name in names]
    if 0 in found:
        with states.lock:
            _write_names(states, [name for name in dict.fromkeys(names) if name not in known], canonical)
        found = [known[name] for name in names]
    return found


def state_of_texts(states: StateTable, texts: tuple[bytes, ...], canonical: bool) -> int:
    """The state before the quote of JSON strings with one of these texts, sorted and none twice; remembered."""
    if len(texts) == 1:
        return states_of_names(states, texts, canonical)[0]
    return _written(states, states.lists, (texts, canonical), _write_list)


def state_excluding(states: StateTable, names: Sequence[bytes], canonical: bool) -> int:
    """The state before the quote of JSON strings with any text but these, each a piece of UTF-8; remembered."""
    return _written(states, states.excluding, OtherTexts(frozenset(names), canonical), _write_excluding)


@lru_cache(maxsize=2)
def _any_string(canonical: bool) -> Expr:
    """The inside of any string."""
    return json_string(any_text()[1], canonical=canonical)


def spelled_texts(states: StateTable, state: int) -> tuple[bytes, ...]:
    """All strings with one of several texts, as they are written, or the shortest with any but some.

    By the state before the quote; none of another state, nor where some text must be escaped.
    """
    found = states.written.get(state)
    if isinstance(found, OtherTexts):
        if b"" not in found.texts:
            return (b'""',)
        single = (bytes((byte,)) for byte in range(0x20, 0x7F) if byte not in b'"\\')
        return tuple([b'"' + text + b'"' for text in single if text not in found.texts][:1])
    if found is None or any(_ESCAPED.search(text) for text in found[0]):
        return ()
    return tuple([b'"' + text + b'"' for text in found[0]])


def _written(states: StateTable, known: dict[K, int], key: K, write: Callable[[StateTable, K], int]) -> int:
    """What is known, or is written now: once, whichever thread comes first."""
    found = known.get(key)
    if found is None:
        with states.lock:
            found = known.get(key)
            if found is None:
                found = known[key] = write(states, key)
                states.written[found] = key
    return found


def _mode(canonical: bool) -> int:
    return STRING | CANONICAL if canonical else STRING


def _write_list(states: StateTable, key: tuple[tuple[bytes, ...], bool]) -> int:
    """A quote, behind which one of the texts comes."""
    texts, canonical = key
    begin = states.allocate(None)
    states._write_texts(
        begin, tuple([b'"' + text for text in texts]), states.target(_CLOSING[canonical]), _mode(canonical)
    )
    # The quote is no part of the text.
    states.arrays.mode[begin] = 0
    return begin


def _write_excluding(states: StateTable, others: OtherTexts) -> int:
    """A quote, behind which any text may come that is none of a list."""
    words = tuple(sorted(others.texts))
    closing = states.target(_CLOSING[others.canonical])
    listed = closing
    if words != (b"",):
        listed = states.allocate(None)
        states._write_texts(listed, words, closing, _mode(others.canonical))
    begin = states.allocate(None)
    states._write_texts(begin, (b'"',), states._less(others, states.target(_any_string(others.canonical)), listed), 0)
    return begin


def _write_names(states: StateTable, names: list[bytes], canonical: bool) -> None:
    """A state for each quote and letter, with one edge each, all in a row."""
    data = b"\xff" + b"\xff".join(names)
    closing = states.target(_CLOSING[canonical])
    n = len(data)
    states.reserve_states(n)
    at, state = states.reserve_edges(n), len(states)
    direct(write_names)(states.table_address(), np.frombuffer(data, np.uint8), state, at, closing, _mode(canonical))
    states.keys.extend([None] * n)
    known = states.names[canonical]
    for name in names:
        known[name] = state
        state += len(name) + 1
