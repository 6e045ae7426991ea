"""Cores of token tries: subtrees in which all lexers are in the same state.

Lexers that begin at different places of a grammar differ mostly in keywords and signs.  Once a word is none of these,
they are in the same state.  `mark` notes below which nodes of a trie range that is so.  What the tokens there do is
found once for all lexers; `survey` adds what is around the core for each one.  Where a match can end around the core as
it does in it, the remainders of tokens are merged into one trie.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data import views
from guided.kernels.data.asking import ask
from guided.kernels.data.requests import EXPAND_STATE
from guided.kernels.jit import entry, inner
from guided.kernels.lexing.strings import edge
from guided.kernels.masking.effects import note_exits
from guided.kernels.tokens.cursor import below, settled, start

__all__ = ["INSIDE", "LEAVES", "mark", "survey"]

INSIDE, LEAVES = 1, 2
"""Marks: of a node from which on the lexer is in the core's state; of another at which a match can end alike."""


@inner
def _owed_behind(automaton, obligation, byte):
    """What is owed behind a byte: 0 nothing, -1 it was violated, -2 - state: its edges are not known."""
    if obligation == 0:
        return np.int64(0)
    after = edge(automaton, obligation, byte)
    if after < 0:
        return after - 2
    if after and automaton.tag[after] >= 0:
        return np.int64(-1)
    return after


@inner
def _leaves_alike(automaton, tokens, state, core, low, high):
    """Does the same match end in a state as in the core, owing the same behind each byte of a range's children?

    -2 - state: the edges of that are not known.
    """
    if automaton.tag[core] < 0 or automaton.tag[state] != automaton.tag[core]:
        return np.int64(0)
    if automaton.also[state] or automaton.also[core]:
        return np.int64(0)
    one, other = np.int64(automaton.pending[state]), np.int64(automaton.pending[core])
    node = np.int64(low)
    while node < high and one != other:
        byte = np.int64(tokens.byte[node])
        here, there = _owed_behind(automaton, one, byte), _owed_behind(automaton, other, byte)
        if min(here, there) < -1:
            return min(here, there)
        if here != there:
            return np.int64(0)
        node = np.int64(tokens.end[node])
    return np.int64(1)


@entry("long, long, long, long, long, bytes, bytes")
def mark(table, low, high, state, core, old, new):
    """Mark in ``new[node - low]`` the nodes of a range by where they lead a lexer that began in ``state``.

    With ``old``, of the same size, only what is marked there, or is below a node that is `INSIDE` there and would be
    marked from ``core``.  Returns the number of nodes at and below those that are `INSIDE`; -1: request for edges of
    the states in ``unknown``, as `guided.kernels.masking.effects.survey`.
    """
    automaton = views.automaton(table)
    scratch = views.scratch(table)
    tokens = views.tokens(table)
    # The state that a path of tokens has reached from a marked node; 0: it passed none.
    within = scratch.walk_obligation
    narrows = old.shape[0] > 0
    new[:] = 0
    requests = views.requests(table)
    n_below = np.int64(0)
    within[0] = 0
    level = np.int64(0)
    node = start(table, low, high, state, level, True)
    while True:
        node, level = settled(table, node, level)
        if node < 0:
            return np.int64(-1) if requests.count[0] else n_below
        end = np.int64(tokens.end[node])
        byte = np.int64(tokens.byte[node])
        after = edge(automaton, scratch.walk_state[level], byte)
        behind = np.int64(0)
        kind = INSIDE
        if narrows and after > 0:
            if within[level]:
                behind = edge(automaton, within[level], byte)
                if behind == 0:
                    after = np.int64(0)
                elif behind != core:
                    kind = LEAVES
            else:
                kind = np.int64(old[node - low])
                behind = np.int64(core if kind == INSIDE else 0)
        if after < 0 or behind < 0:
            if not ask(table, EXPAND_STATE, -after if after < 0 else -behind):
                return np.int64(-1)
            node = end
            continue
        if after > 0 and after == core and kind == INSIDE:
            new[node - low] = INSIDE
            n_below += end - node
            node = end
            continue
        alike = np.int64(kind if after > 0 and end > node + 1 else 0)
        if alike:
            alike = _leaves_alike(automaton, tokens, after, core, node + 1, end)
        if alike > 0 and behind and behind != core:
            alike = _leaves_alike(automaton, tokens, behind, core, node + 1, end)
        if alike < 0:
            if not ask(table, EXPAND_STATE, -2 - alike):
                return np.int64(-1)
        elif alike:
            new[node - low] = LEAVES
        if after == 0 or end == node + 1:
            node = end
        else:
            node, level = below(table, node, level, after, True)
            within[level] = behind


@entry("long, long, long, long, long, bytes, ints, longs, int_rows")
def survey(table, low, high, state, core, marks, kept, places, exits):
    """What tokens do at and below the nodes of a range that are `INSIDE`, and behind those at which a match `LEAVES`.

    With ``state``, in which a lexer begins, what they do elsewhere; with 0 there, where the lexer is in ``core``.
    ``kept`` are the tokens that end inside a terminal or with it, ``places`` the states in which they do, and ``exits``
    as of `guided.kernels.masking.effects.survey`.  Returns ``n_kept << 32 | n_exits``; -1: request.
    """
    automaton = views.automaton(table)
    scratch = views.scratch(table)
    tokens = views.tokens(table)
    n_kept = np.int64(0)
    n_exits = np.int64(0)
    requests = views.requests(table)
    level = np.int64(0)
    node = start(table, low, high, state, level, True)
    while True:
        node, level = settled(table, node, level)
        if node < 0:
            return np.int64(-1) if requests.count[0] else n_kept << 32 | n_exits
        end = np.int64(tokens.end[node])
        mark = marks[node - low]
        if state and mark == INSIDE:
            node = end
            continue
        if state == 0 and level == 0:
            if mark == LEAVES and end > node + 1:
                n_exits = note_exits(table, exits, n_exits, node, core, 0)
                if n_exits < 0:
                    return np.int64(-1)
            if mark != INSIDE:
                node += 1
                continue
            after = np.int64(core)
        else:
            after = edge(automaton, scratch.walk_state[level], tokens.byte[node])
        if after == 0:
            node = end
            continue
        if after < 0 or (automaton.tag[after] >= 0 and automaton.first[after] < 0):
            if not ask(table, EXPAND_STATE, abs(after)):
                return np.int64(-1)
            node = end
            continue
        if automaton.tag[after] >= 0 and end > node + 1 and not (state and mark == LEAVES):
            n_exits = note_exits(table, exits, n_exits, node, after, 0)
            if n_exits < 0:
                return np.int64(-1)
        for i in range(tokens.token_offset[node], tokens.token_offset[node + 1]):
            kept[n_kept] = tokens.token_ids[i]
            places[n_kept] = after
            n_kept += 1
        if end > node + 1 and (automaton.tag[after] < 0 or automaton.count[after] > 0):
            node, level = below(table, node, level, after, True)
        else:
            node = end
