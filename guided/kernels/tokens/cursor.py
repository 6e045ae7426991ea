"""A cursor over token tries: the node that a walk is at, and its level, the bytes read before that node's own.

Of each level of the path to it `Scratch` holds the place in which its bytes are read (``walk_state``) and the end of
its range (``walk_end``).  A walk goes on from a node to `below` it or, by the node's end, beside it; `settled` leaves
the levels that are done.  Where few bytes lead on from a place, only the children for these are looked at: then
``walk_fan`` is the table of the range's children, ``walk_way`` the number of the next byte, and ``walk_behind`` the end
of the range, while ``walk_end`` is that of the child.  A walk may keep more of each level by its number.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data import views
from guided.kernels.data.layout import STRING
from guided.kernels.jit import inlined, inner
from guided.kernels.lexing.strings import ESCAPE

__all__ = ["below", "settled", "start"]

ESCAPES = (0x22, 0x2F, 0x5C, 0x62, 0x66, 0x6E, 0x72, 0x74, 0x75)
"""What may come after a backslash."""

FEW = 24
"""Bytes that may come up to which the children for just these are looked up, where a table has them; else all 200 or so
are looked at one after the other, each a miss of the cache."""


@inner
def _ways(automaton, tokens, place, low):
    """The table of a range's children, if few bytes lead on from a place and it has one; else 0."""
    fan = np.int64(tokens.fan[low])
    if fan == 0 or place >> 32 == ESCAPE:
        return fan
    if place >> 32:
        return np.int64(0)
    first = automaton.first[place]
    if first < 0:
        return np.int64(0)
    width = np.int64(0)
    for at in range(first, first + automaton.count[place]):
        width += np.int64(automaton.high[at]) - np.int64(automaton.low[at]) + 1
    return fan if width <= FEW else np.int64(0)


@inner
def _way(automaton, place, index):
    """The byte of number ``index`` that may lead on from a place, -1 after the last."""
    if place >> 32:
        return np.int64(ESCAPES[index]) if index < len(ESCAPES) else np.int64(-1)
    state = place
    if automaton.mode[state] & STRING:
        if index < 2:
            return np.int64(0x22 if index == 0 else 0x5C)
        index -= 2
    first = automaton.first[state]
    for at in range(first, first + automaton.count[state]):
        width = np.int64(automaton.high[at]) - np.int64(automaton.low[at]) + 1
        if index < width:
            return np.int64(automaton.low[at]) + index
        index -= width
    return np.int64(-1)


@inner
def start(table, low, high, place, level, every):
    """Begin to read a range in a place, at a level: the first node.  With ``every`` all children are looked at."""
    automaton = views.automaton(table)
    scratch = views.scratch(table)
    scratch.walk_state[level] = place
    scratch.walk_end[level] = scratch.walk_behind[level] = high
    fan = np.int64(0) if every else _ways(automaton, views.tokens(table), place, low)
    scratch.walk_fan[level] = fan
    if fan:
        scratch.walk_way[level] = scratch.walk_end[level] = 0
    return np.int64(low)


@inlined
def below(table, node, level, place, every):
    """Go on below a node that has children, in the place behind its byte; the node and its level.

    No token has more bytes than there are levels.
    """
    start(table, node + 1, views.tokens(table).end[node], place, level + 1, every)
    return np.int64(node) + 1, np.int64(level) + 1


@inlined
def settled(table, node, level):
    """The node to look at, and its level, of a walk that has come to ``node``, perhaps an end; -1 behind the last."""
    automaton = views.automaton(table)
    scratch = views.scratch(table)
    tokens = views.tokens(table)
    while node >= scratch.walk_end[level]:
        fan = np.int64(scratch.walk_fan[level])
        if fan:
            byte = _way(automaton, scratch.walk_state[level], scratch.walk_way[level])
            if byte >= 0:
                scratch.walk_way[level] += 1
                child = np.int64(tokens.children[fan - 1, byte])
                if child > 0:
                    node = child
                    scratch.walk_end[level] = tokens.end[child]
                continue
            node = np.int64(scratch.walk_behind[level])
        if level == 0:
            return np.int64(-1), np.int64(0)
        level -= 1
    return np.int64(node), np.int64(level)
