"""What tokens do from a state, told from another with whose effect it has most in common.

States of one pattern lead, with most characters, to the same state: behind ``ab-`` as behind ``ab`` all that is not a
hyphen is read alike.  So tokens are walked along only where two states lead elsewhere, some hundred nodes of a hundred
thousand; below all others they do what they do from the other.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data import views
from guided.kernels.data.asking import ask
from guided.kernels.data.local_arrays import local_ints
from guided.kernels.data.requests import EXPAND_STATE, GROW_EXITS
from guided.kernels.jit import entry, inner
from guided.kernels.lexing.strings import SPELLED, enter, glance, move
from guided.kernels.masking.effects import OWING, fetch, note_exits, tell_bytes

_MASK32 = 0xFFFFFFFF

LIKE = 128
"""Of 256 nodes below bytes by which a state leads on: those by which another leads to the same, from which on it is
told from that.  A node that is compared takes twice as long as one that is read; with a third or three quarters walks
take as long, all in all."""

_UNTOLD = -1
"""A place of the other state of which its walk has told nothing."""


@inner
def _after(automaton, place, byte):
    found = glance(automaton, place, byte)
    if found == SPELLED:
        found = move(automaton, place, byte)
    return found


@inner
def _leads_back(automaton, place, classes):
    """Do all characters of some classes lead from a place back to it, and no match ends there?"""
    return place <= _MASK32 and automaton.tag[place] < 0 and not classes & ~automaton.closed[place]


@inner
def _put(table, row, begin, stop, kept):
    """Set the tokens of the nodes from ``begin`` to ``stop`` in a row, or clear them."""
    tokens = views.tokens(table)
    masks = views.effects(table).masks
    for i in range(tokens.token_offset[begin], tokens.token_offset[stop]):
        token = tokens.token_ids[i]
        bit = np.uint32(1) << np.uint32(token & 31)
        if kept:
            masks[row, token >> 5] |= bit
        else:
            masks[row, token >> 5] &= ~bit


@entry
def most_like(table, state, others, n_others, weights):
    """Which of some states leads with most bytes to where ``state`` leads; -1 where none does with half.

    Bytes count by ``weights``, the nodes at and below each child of the trie.  All edges must be known.
    """
    automaton = views.automaton(table)
    mine = local_ints(256)
    tell_bytes(automaton, np.int64(automaton.base[state]), mine)
    theirs = local_ints(256)
    best = np.int64(-1)
    most = np.int64(0)
    for byte in range(256):
        if mine[byte]:
            most += weights[byte]
    most = most * LIKE >> 8
    for i in range(n_others):
        other = np.int64(others[i])
        tell_bytes(automaton, np.int64(automaton.base[other]), theirs)
        alike = np.int64(0)
        for byte in range(256):
            if mine[byte] and mine[byte] == theirs[byte]:
                alike += weights[byte]
        if alike > most:
            most = alike
            best = other
    return best


@entry
def differ(table, low, high, state, other, near, like, row, told, exits):
    """Write to ``row`` of `Effects.masks` the tokens of ``[low, high)`` that stay inside or end from ``state``.

    Those from ``other`` are in the row ``like``, and its exits, as `survey` notes them, are ``told``.  Tokens of up to
    ``near`` bytes are known to do the same from both, whatever states they lead to.  Writes ``exits`` and returns how
    many; -1 with a request, as `survey`; `OWING` where tokens come to owe something.
    """
    automaton = views.automaton(table)
    scratch = views.scratch(table)
    tokens = views.tokens(table)
    masks = views.effects(table).masks
    places = scratch.walk_state
    ends = scratch.walk_end
    beside = scratch.walk_beside
    mine = local_ints(256)
    theirs = local_ints(256)
    for word in range(masks.shape[1]):
        masks[row, word] = masks[like, word]
    level = 0
    places[0] = enter(automaton, np.int64(state))
    beside[0] = enter(automaton, np.int64(other))
    ends[0] = high
    tell_bytes(automaton, places[0], mine)
    tell_bytes(automaton, beside[0], theirs)
    n_exits = np.int64(0)
    requests = views.requests(table)
    at_told = 0
    node = np.int64(low)
    fetch(table, node)
    while True:
        while node >= ends[level]:
            if level == 0:
                return -1 if requests.count[0] else n_exits
            level -= 1
        here = places[level]
        there = beside[level]
        end = np.int64(tokens.end[node])
        byte = np.int64(tokens.byte[node])
        place = then = there
        if level + tokens.height[node] > near:
            if level == 0:
                place = np.int64(mine[byte])
                then = np.int64(theirs[byte])
            if level or place < 0 or then < 0:
                place = _after(automaton, here, byte)
                if there > 0:
                    # Where its walk has not looked, below what was kept as a whole, edges need not be known.
                    then = max(_after(automaton, there, byte), np.int64(_UNTOLD))
            if place < 0:
                if not ask(table, EXPAND_STATE, np.int64(-place), 0, 0):
                    return -1
                node = end
                continue
        if place == then:
            while at_told < told.shape[0] and told[at_told, 0] < node:
                at_told += 1
            while at_told < told.shape[0] and told[at_told, 0] < end:
                if n_exits == exits.shape[0]:
                    ask(table, GROW_EXITS, 0, 0, 0)
                    return -1
                for column in range(4):
                    exits[n_exits, column] = told[at_told, column]
                n_exits += 1
                at_told += 1
            node = end
            continue
        classes = tokens.classes[node]
        if _leads_back(automaton, here, classes):
            if there <= 0 or not _leads_back(automaton, there, classes):
                _put(table, row, node, end, True)
            node = end
            continue
        if place == 0:
            _put(table, row, node, end, False)
            node = end
            continue
        after = np.int32(place & _MASK32)
        if automaton.owes[after]:
            return OWING
        inside = True
        if automaton.tag[after] >= 0:
            if automaton.first[after] < 0:
                if not ask(table, EXPAND_STATE, np.int64(after), 0, 0):
                    return -1
                node = end
                continue
            inside = automaton.count[after] > 0
            if end > node + 1:
                n_exits = note_exits(table, exits, n_exits, node, np.int64(after), np.int64(0))
                if n_exits < 0:
                    return -1
        _put(table, row, node, node + 1, True)
        if inside and end > node + 1:
            # No token has more bytes than there are levels.
            level += 1
            places[level] = place
            beside[level] = then
            ends[level] = end
            node += 1
            fetch(table, node)
        else:
            _put(table, row, node + 1, end, False)
            node = end
