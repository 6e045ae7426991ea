"""How far a lexer state is from the end of a match, where all states on the way have their edges: Dijkstra's algorithm.

`guided.automata.lexer.distances` is the same for any state.  Inside names and words all states are written at once, and
to ask Python for each of them took a third of a millisecond.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data import views
from guided.kernels.data.layout import CLOSES, FAR, STRING
from guided.kernels.data.local_arrays import local_ints
from guided.kernels.jit import inner

__all__ = ["UNTOLD", "least_left"]

UNTOLD = -2
"""In the place of a state's ``minimum``: Python must be asked."""

_STATES = 64
"""States that are looked at: each is looked for among the others, 10 ns each time."""


@inner
def _price(low, high):
    """Bytes of the shortest spelling of one of the bytes of a string's text, as of `distances`."""
    low, high = np.int64(low), np.int64(high)
    if low <= 0x21 and high >= 0x20:
        return np.int64(1)
    if low <= 0x5B and high >= 0x23:
        return np.int64(1)
    if high >= 0x5D:
        return np.int64(1)
    if low <= 0x5C and high >= 0x5C:
        return np.int64(2)
    if low <= 0x22 and high >= 0x22:
        return np.int64(2)
    short = (low <= 10 and high >= 8) or (low <= 13 and high >= 12)
    return np.int64(2 if short else 6)


@inner
def least_left(table, start):
    """Fewest bytes from a state to the end of a match; negative where that is not known, and Python must be asked."""
    automaton = views.automaton(table)
    if automaton.minimum[start] != -1:
        return np.int64(automaton.minimum[start])
    states, least, before = local_ints(_STATES), local_ints(_STATES), local_ints(_STATES)
    states[0], least[0], before[0] = start, 0, -1
    n = np.int64(1)
    done = np.uint64(0)
    best, last = np.int64(FAR), np.int64(-1)
    while True:
        at = np.int64(-1)
        for i in range(n):
            if not done >> np.uint64(i) & np.uint64(1) and (at < 0 or least[i] < least[at]):
                at = np.int64(i)
        if at < 0 or least[at] >= best:
            break
        done |= np.uint64(1) << np.uint64(at)
        state = np.int64(states[at])
        known = np.int64(0 if automaton.tag[state] >= 0 else automaton.minimum[state])
        if known >= 0:
            if least[at] + known < best:
                best, last = least[at] + known, at
            continue
        if automaton.first[state] < 0 or automaton.base[state] != state:
            break
        is_string = automaton.mode[state] & STRING
        if automaton.mode[state] & CLOSES and least[at] + 1 < best:
            best, last = np.int64(least[at] + 1), at
        for edge in range(automaton.first[state], automaton.first[state] + automaton.count[state]):
            distance = least[at] + (_price(automaton.low[edge], automaton.high[edge]) if is_string else 1)
            target = automaton.target[edge]
            if distance >= best:
                continue
            place = np.int64(0)
            while place < n and states[place] != target:
                place += 1
            if place == n:
                if n == _STATES:
                    automaton.minimum[start] = UNTOLD
                    return np.int64(UNTOLD)
                states[n], least[n], before[n] = target, distance, at
                n += 1
            elif distance < least[place]:
                least[place], before[place] = distance, at
    if last < 0 or (at >= 0 and least[at] < best):
        automaton.minimum[start] = UNTOLD
        return np.int64(UNTOLD)
    while last >= 0:
        if automaton.minimum[states[last]] < 0:
            automaton.minimum[states[last]] = best - least[last]
        last = np.int64(before[last])
    return best
