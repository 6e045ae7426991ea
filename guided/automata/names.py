"""The lexer states of names: JSON strings with one text, in every spelling; many laid down at once, no expressions."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING

from guided.grammar.regular.expr import EPSILON, json_string
from guided.kernels.layout import STRING

if TYPE_CHECKING:
    from guided.automata.states import StateTable

__all__ = ["states_of_names"]


def states_of_names(states: StateTable, names: Sequence[bytes]) -> list[int]:
    """The states before the quotes of JSON strings with these texts, each a piece of UTF-8; remembered by the text."""
    known = states.names
    found = [known.get(name, 0) for name in names]
    if 0 in found:
        with states.lock:
            _lay(states, [name for name in dict.fromkeys(names) if name not in known])
        found = [known[name] for name in names]
    return found


def _lay(states: StateTable, names: list[bytes]) -> None:
    """A state for each quote and letter, with one edge each, all in a row."""
    quote = b'"'
    data = quote + quote.join(names)
    closing = states.target(json_string(EPSILON))
    n = len(data)
    states.reserve_states(n)
    at, state = states.reserve_edges(n), len(states)
    targets = array("i", range(state + 1, state + n + 1))
    modes = bytearray((STRING,)) * n
    begin, begins = 0, []
    for name in names:
        begins.append(begin)
        modes[begin] = 0
        begin += len(name) + 1
        targets[begin - 1] = closing
    arrays = states.arrays
    arrays.low.data[at : at + n] = data
    arrays.high.data[at : at + n] = data
    arrays.target.data[at : at + n] = targets
    arrays.mode.data[state : state + n] = modes
    arrays.count.data[state : state + n] = array("i", (1,)) * n
    arrays.first.data[state : state + n] = array("i", range(at, at + n))
    states.keys.extend([None] * n)
    states.names.update(zip(names, [state + begin for begin in begins], strict=True))
