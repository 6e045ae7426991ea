"""The classes of bytes that every text has on which a string's state fails.

A string that must not contain the word ``github`` fails only on texts with all its letters.  So a walk skips the tokens
that lack one of them.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data.layout import EXAMINED, STRING
from guided.kernels.data.local_arrays import local_long_rows, local_longs
from guided.kernels.jit import inner
from guided.kernels.lexing.byte_classes import PLAIN_PHASES, class_of_byte, flat_phases

__all__ = ["classes_of_rejected"]

PAIRS = 64
"""States, with the phase of UTF-8 that each is in, that are looked at: a word of 8 letters comes to 40."""

WAYS = 1024
"""Ways between them that there is room for."""

_FIRST, _LOW, _HIGH, _AFTER = flat_phases(PLAIN_PHASES)
_CLASS = class_of_byte()


@inner
def _class_of(low, high):
    """The class of all bytes between two; 0 where they are of several."""
    found = _CLASS[low]
    for byte in range(low + 1, high + 1):
        if _CLASS[byte] != found:
            return np.int64(0)
    return found


@inner
def classes_of_rejected(automaton, state):
    """The classes of bytes (`byte_classes`) all of which each text has that a string refuses or owes.

    Of texts whose characters stand for themselves (`PLAIN_PHASES`); 0 where there is no such class, or this is not
    seen: what is not known yet, or more than `PAIRS`, counts as a refusal.  All bits of classes where none is refused.
    """
    if not automaton.mode[state] & STRING:
        return np.int64(0)
    states, phases = local_longs(PAIRS), local_longs(PAIRS)
    ways = local_long_rows(WAYS, 3)
    states[0] = state
    phases[0] = 0
    n = 1
    n_ways = 0
    at = 0
    soon = np.int64(EXAMINED - 1)
    while at < n:
        if n_ways == WAYS:
            return np.int64(0)
        edge = np.int64(automaton.first[states[at]])
        if edge < 0:
            ways[n_ways, 0], ways[n_ways, 1], ways[n_ways, 2] = at, -1, 0
            n_ways += 1
        end = edge + automaton.count[states[at]]
        for i in range(_FIRST[phases[at]], _FIRST[phases[at] + 1] if edge >= 0 else 0):
            byte = np.int64(_LOW[i])
            while byte <= _HIGH[i]:
                while edge < end and automaton.high[edge] < byte:
                    edge += 1
                to = -1
                last = np.int64(_HIGH[i])
                if edge < end and automaton.low[edge] > byte:
                    last = min(last, np.int64(automaton.low[edge]) - 1)
                elif edge < end:
                    last = min(last, np.int64(automaton.high[edge]))
                    target = np.int64(automaton.target[edge])
                    if not automaton.owes[target] and automaton.tag[target] < 0:
                        to = 0
                        while to < n and not (states[to] == target and phases[to] == _AFTER[i]):
                            to += 1
                        if to == PAIRS:
                            to = -1
                        elif to == n:
                            states[n] = target
                            phases[n] = _AFTER[i]
                            n += 1
                if to != at:
                    if n_ways == WAYS:
                        return np.int64(0)
                    holds = _class_of(byte, last)
                    if at == 0 and to < 0:
                        soon &= holds
                        if not soon:
                            return soon
                    ways[n_ways, 0], ways[n_ways, 1], ways[n_ways, 2] = at, to, holds
                    n_ways += 1
                byte = last + 1
        at += 1
    found = local_longs(PAIRS)
    found[:] = EXAMINED - 1
    changed = True
    while changed:
        changed = False
        for i in range(n_ways - 1, -1, -1):
            holds = ways[i, 2]
            if ways[i, 1] >= 0:
                holds |= found[ways[i, 1]]
            here = ways[i, 0]
            if found[here] & ~holds:
                found[here] &= holds
                changed = True
    return found[0]
