"""The effect of a lexer state as changes to the effect of the most similar state that was walked before.

States of one pattern lead, with most characters, to the same state: all but a hyphen is read alike after ``ab-`` and
after ``ab``.  So the walk visits only the nodes where the two states lead elsewhere, some hundred of a hundred
thousand.  Below all other nodes, tokens do what they do from the other state.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data import views
from guided.kernels.data.asking import ask
from guided.kernels.data.local_arrays import local_ints
from guided.kernels.data.requests import EXPAND_STATE, GROW_EXITS
from guided.kernels.jit import entry, inner
from guided.kernels.lexing.strings import enter, move
from guided.kernels.masking.effects import OWING, note_exits, tell_bytes
from guided.kernels.masking.rows import add_tokens, remove_tokens
from guided.kernels.tokens.cursor import below, settled, start

_MASK32 = 0xFFFFFFFF

SIMILAR = 128
"""A state is similar where at least this many of 256 nodes below its bytes lead to the same target.  Comparing a node
takes twice as long as reading it; with a third or three quarters of the nodes, walks take as long, all in all."""

_UNVISITED = -1
"""A place of the other state that its walk did not visit."""


@inner
def _leads_back(automaton, place, classes):
    """Do all characters of some classes lead from a place back to it, and no match ends there?"""
    return place <= _MASK32 and automaton.tag[place] < 0 and not classes & ~automaton.closed[place]


@entry("long, long, ints, long, ints")
def most_similar(table, state, others, n_others, weights):
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
    most = most * SIMILAR >> 8
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


@entry("long, long, long, long, long, long, long, long, int_rows, int_rows")
def survey_delta(table, low, high, state, other, near, model_row, row, known_exits, exits):
    """Write to ``row`` of `Effects.masks` the tokens of ``[low, high)`` that stay inside or end from ``state``.

    ``model_row`` has those from ``other``, and ``known_exits`` its exits, as `survey` notes them.  Tokens of up to
    ``near`` bytes do the same from both, whatever states they lead to.  Writes ``exits`` and returns how many; -1 with
    a request, as `survey`; `OWING` where tokens come to owe something.
    """
    automaton = views.automaton(table)
    scratch = views.scratch(table)
    tokens = views.tokens(table)
    masks = views.effects(table).masks
    found = masks[row]
    others = scratch.walk_similar
    mine = local_ints(256)
    theirs = local_ints(256)
    for word in range(masks.shape[1]):
        found[word] = masks[model_row, word]
    level = np.int64(0)
    node = start(table, low, high, enter(automaton, state), level, True)
    others[0] = enter(automaton, other)
    tell_bytes(automaton, scratch.walk_state[0], mine)
    tell_bytes(automaton, others[0], theirs)
    n_exits = np.int64(0)
    requests = views.requests(table)
    at_known = 0
    while True:
        node, level = settled(table, node, level)
        if node < 0:
            return -1 if requests.count[0] else n_exits
        here = scratch.walk_state[level]
        there = others[level]
        end = np.int64(tokens.end[node])
        byte = np.int64(tokens.byte[node])
        place = then = there
        if level + tokens.height[node] > near:
            if level == 0:
                place = np.int64(mine[byte])
                then = np.int64(theirs[byte])
            if level or place < 0 or then < 0:
                place = move(automaton, here, byte)
                if there > 0:
                    # Where its walk has not looked, below what was kept as a whole, edges need not be known.
                    then = max(move(automaton, there, byte), np.int64(_UNVISITED))
            if place < 0:
                if not ask(table, EXPAND_STATE, np.int64(-place), 0, 0):
                    return -1
                node = end
                continue
        if place == then:
            while at_known < known_exits.shape[0] and known_exits[at_known, 0] < node:
                at_known += 1
            while at_known < known_exits.shape[0] and known_exits[at_known, 0] < end:
                if n_exits == exits.shape[0]:
                    ask(table, GROW_EXITS, 0, 0, 0)
                    return -1
                for column in range(4):
                    exits[n_exits, column] = known_exits[at_known, column]
                n_exits += 1
                at_known += 1
            node = end
            continue
        classes = tokens.classes[node]
        if _leads_back(automaton, here, classes):
            if there <= 0 or not _leads_back(automaton, there, classes):
                add_tokens(tokens, found, node, end)
            node = end
            continue
        if place == 0:
            remove_tokens(tokens, found, node, end)
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
        add_tokens(tokens, found, node, node + 1)
        if inside and end > node + 1:
            node, level = below(table, node, level, place, True)
            others[level] = then
        else:
            remove_tokens(tokens, found, node + 1, end)
            node = end
