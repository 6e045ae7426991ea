"""The texts that may still come inside a JSON string, where these are few: all paths of its lexer states, in order."""

from __future__ import annotations

import numpy as np

from guided.kernels.data import views
from guided.kernels.data.layout import CLOSES
from guided.kernels.data.local_arrays import local_longs
from guided.kernels.jit import entry

__all__ = ["LONGEST_TEXT", "texts_from"]

LONGEST_TEXT = 256
"""Bytes of a text that is listed; names and words have some twelve."""

_DEPTHS = LONGEST_TEXT + 1


@entry("long, long, long, bytes, longs")
def texts_from(table, start, most, data, ends):
    """Write the texts from a lexer state to ``data``, and where each ends to ``ends``; their number.

    ``most`` where they are at least as many, as where a state leads back to itself; ``most + 1`` where that is not
    told, since there is no room for them; ``-state`` where its edges are not known yet.  Depth first; a target always
    goes on to an end.
    """
    automaton = views.automaton(table)
    states, edges, bytes_at = local_longs(_DEPTHS), local_longs(_DEPTHS), local_longs(_DEPTHS)
    number, used, depth = np.int64(0), np.int64(0), np.int64(0)
    state = np.int64(start)
    while True:
        # The state is new on the way; ``depth`` bytes were read before it.
        if automaton.owes[state] or depth == LONGEST_TEXT:
            return np.int64(most + 1)
        for before in range(depth):
            if states[before] == state:
                return np.int64(most)
        first = np.int64(automaton.first[state])
        if first < 0:
            return -state
        if automaton.mode[state] & CLOSES:
            if number + 1 == most:
                return np.int64(most)
            if used + depth > data.shape[0]:
                return np.int64(most + 1)
            for before in range(depth):
                data[used + before] = bytes_at[before]
            used += depth
            ends[number] = used
            number += 1
        states[depth], edges[depth], bytes_at[depth] = state, first - 1, -1
        # The next byte of the innermost state that has one.
        state = np.int64(0)
        while state == 0:
            if depth < 0:
                return number
            at = edges[depth]
            first = np.int64(automaton.first[states[depth]])
            if at >= first and bytes_at[depth] < automaton.high[at]:
                bytes_at[depth] += 1
            elif at + 1 < first + automaton.count[states[depth]]:
                edges[depth], bytes_at[depth] = at + 1, automaton.low[at + 1]
            else:
                depth -= 1
                continue
            state = np.int64(automaton.target[edges[depth]])
        depth += 1
