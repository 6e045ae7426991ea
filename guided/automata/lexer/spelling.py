"""How JSON strings are read: places between the bytes that spell a character, and the edges of a state as written.

Inside a string a state's edges are those of its text.  A place is a state and what was read of an escape,
``decode << 32 | state``; where a thread ends inside of one, it becomes a state of its own.
"""

from __future__ import annotations

import numpy as np

from guided.automata.lexer.table import Table
from guided.grammar.regular.json_text import RAW_BYTES
from guided.kernels.data.addresses import REPLACED
from guided.kernels.data.layout import CANONICAL, STRING
from guided.kernels.lexing.strings import place_after, state_at

__all__ = ["move", "place_of", "state_inside", "written_edges"]

_IN_ESCAPES = b'"\\/0123456789ABCDEFabcdefnrtu'


def written_edges(states: Table, state: int) -> list[tuple[int, int, int]]:
    """The bytes that lead on from a state, as they are written, and where to."""
    state = states.whole(state)
    if not states.arrays.mode[state] & STRING:
        return states.edges(state)
    place = place_of(states, state)
    row: list[tuple[int, int, int]] = []
    if place >> 32:
        candidates = _IN_ESCAPES
    else:
        candidates = b'"\\'
        row += [
            (max(low, a), min(high, b), target)
            for low, high, target in states.edges(state)
            for a, b in RAW_BYTES
            if max(low, a) <= min(high, b)
        ]
    for byte in candidates:
        after = move(states, place, byte)
        if after:
            row.append((byte, byte, state_inside(states, after) if after >> 32 else after))
    return sorted(row)


def place_of(states: Table, state: int) -> int:
    """Where a state is in the spelling of a string."""
    return int(states.arrays.decode[state]) << 32 | int(states.arrays.base[state])


def move(states: Table, place: int, byte: int) -> int:
    """The place after one byte, 0 when none."""
    while (after := int(place_after(states.table_address(), place, byte))) < 0:
        states.expand(-after)
    return after


def state_inside(states: Table, place: int) -> int:
    """The state inside an escape at a place."""
    with states.lock:
        found = int(state_at(states.table_address(), place))
        if found >= 0:
            return found
        state = states.allocate(None)
        base = place & 0xFFFFFFFF
        states.arrays.base[state] = base
        states.arrays.decode[state] = place >> 32
        states.arrays.mode[state] = int(states.arrays.mode[base]) & (STRING | CANONICAL)
        states.n_partials += 1
        if 2 * states.n_partials > states.arrays.partials.size:
            states.arrays = states.arrays._replace(partials=np.zeros(4 * states.n_partials, np.int32))
            REPLACED.note()
            for other in np.flatnonzero(states.arrays.decode[:state]).tolist():
                _enter(states, other)
        _enter(states, state)
        return state


def _enter(states: Table, state: int) -> None:
    """Make a state inside an escape visible; the hash is that of `guided.kernels.lexing.strings.partial`."""
    partials = states.arrays.partials
    slot = ((place_of(states, state) * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF) >> 32) % partials.size
    while partials[slot]:
        slot = (slot + 1) % partials.size
    partials[slot] = state
