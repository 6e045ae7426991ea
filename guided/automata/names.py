"""The lexer states of JSON strings with one text, one of several, or any but some: every spelling, no expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from guided.grammar.regular.any_text import any_text
from guided.grammar.regular.expr import EPSILON, Expr, json_string
from guided.kernels.determinise import lay_names
from guided.kernels.jit import direct
from guided.kernels.layout import STRING

if TYPE_CHECKING:
    from guided.automata.states import StateTable

__all__ = ["state_besides", "state_of_texts", "states_of_names"]

K = TypeVar("K")

_CLOSING: Expr = json_string(EPSILON)
"""The end of a string."""


def states_of_names(states: StateTable, names: Sequence[bytes]) -> list[int]:
    """The states before the quotes of JSON strings with these texts, each a piece of UTF-8; remembered by the text."""
    known = states.names
    found = [known.get(name, 0) for name in names]
    if 0 in found:
        with states.lock:
            _lay(states, [name for name in dict.fromkeys(names) if name not in known])
        found = [known[name] for name in names]
    return found


def state_of_texts(states: StateTable, texts: tuple[bytes, ...]) -> int:
    """The state before the quote of JSON strings with one of these texts, sorted and none twice; remembered."""
    if len(texts) == 1:
        return states_of_names(states, texts)[0]
    return _laid(states, states.lists, texts, _lay_list)


def state_besides(states: StateTable, names: Sequence[bytes]) -> int:
    """The state before the quote of JSON strings with any text but these, each a piece of UTF-8; remembered."""
    return _laid(states, states.besides, frozenset(names), _lay_besides)


@lru_cache(maxsize=1)
def _any_string() -> Expr:
    """The inside of any string."""
    return json_string(any_text()[1])


def _laid(states: StateTable, known: dict[K, int], key: K, lay: Callable[[StateTable, K], int]) -> int:
    """What is known, or is laid down now: once, whichever thread comes first."""
    found = known.get(key)
    if found is None:
        with states.lock:
            found = known.get(key)
            if found is None:
                found = known[key] = lay(states, key)
    return found


def _lay_list(states: StateTable, texts: tuple[bytes, ...]) -> int:
    """A quote, behind which one of the texts comes."""
    begin = states._allocate(None)
    states._lay(begin, tuple([b'"' + text for text in texts]), states.target(_CLOSING), STRING)
    # The quote is no part of the text.
    states.arrays.mode[begin] = 0
    return begin


def _lay_besides(states: StateTable, names: frozenset[bytes]) -> int:
    """A quote, behind which any text may come that is none of a list."""
    words = tuple(sorted(names))
    closing = states.target(_CLOSING)
    listed = closing
    if words != (b"",):
        listed = states._allocate(None)
        states._lay(listed, words, closing, STRING)
    begin = states._allocate(None)
    states._lay(begin, (b'"',), states._less(names, states.target(_any_string()), listed), 0)
    return begin


def _lay(states: StateTable, names: list[bytes]) -> None:
    """A state for each quote and letter, with one edge each, all in a row."""
    data = b"\xff" + b"\xff".join(names)
    closing = states.target(_CLOSING)
    n = len(data)
    states.reserve_states(n)
    at, state = states.reserve_edges(n), len(states)
    direct(lay_names)(states._addresses(), np.frombuffer(data, np.uint8), state, at, closing)
    states.keys.extend([None] * n)
    known = states.names
    for name in names:
        known[name] = state
        state += len(name) + 1
