"""Masks of grammars with an LALR parser: a walk over token tries that asks the parser nothing twice.

The lexer of the LALR state reads the tokens, whatever of its terminals the stack accepts.  Where a match ends, the
parser shifts it.  The stacks behind it are entries of working memory, gone with the mask, and not continuations of the
constraint.  Where a token ends inside a terminal, the `verdict` of the lexer state decides: the parser must accept one
of the terminals that may still match.  So a boundary within a token costs what its few bytes need, and not one test for
each terminal of the state.

Most of the vocabulary is never walked: words that are no keyword, strings and comments
(`guided.kernels.masking.cores`).  What a match still owes is part of the lexer state in which the next terminal begins
(`guided.automata.lexer.joint.Under`).

Under a token budget each lexer state and stack in which tokens end has a price: the bytes that are enough to the end of
the text.  Terminals count with their shortest texts (`guided.automata.lalr.closings`), and the stack is reduced to its
bottom.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data import views
from guided.kernels.data.asking import ask
from guided.kernels.data.layout import FAR, FUEL, N_LOCAL, NEED, PRICES, STAMP
from guided.kernels.data.local_arrays import local_longs
from guided.kernels.data.requests import (
    EXPAND_STATE,
    NEED_LEXED,
    NEED_LEXED_NEAR,
    OUT_OF_FUEL,
    WANT_VERDICT,
)
from guided.kernels.jit import entry, inner
from guided.kernels.lexing.strings import edge
from guided.kernels.masking.masks import ENOUGH, apply_effect, find_effect, push_threads
from guided.kernels.masking.rows import add_tokens
from guided.kernels.masking.segments import first_visit, push
from guided.kernels.masking.walks import begins, payable_below
from guided.kernels.parsing.closings import price_in
from guided.kernels.parsing.local_stacks import ASKED, beyond, forget, is_accepted, lexer_at
from guided.kernels.tokens.cursor import below, settled, start

__all__ = ["fill_lexed"]

_MASK32 = 0xFFFFFFFF


REFUSED, FREE, UNDECIDED = 0, 1, 2
"""Verdicts on a token that ends in a lexer state: no terminal that may come of it is accepted; one is, whatever was
owed; one is, but something is owed."""

FAR_RANGE = 1024
"""Nodes from which on a range is not walked: its effect is rows and lists of tokens, and tries of what is left of them.
A guess at where the costs meet: 1,024 nodes are walked in 5 to 20 us, and a row is 1 us."""


@inner
def _verdict(table, state, stack, stamp, asked):
    """May a token end in a lexer state?  -1: request; what is not known yet is asked for."""
    lalr = views.lalr(table)
    row = np.int64(-1)
    if state < lalr.verdict.shape[0]:
        row = np.int64(lalr.verdict[state])
    if row < 0:
        ask(table, WANT_VERDICT, state)
        return np.int64(REFUSED)
    found = is_accepted(table, stack, lalr.frees[row], stamp, asked)
    if found:
        return np.int64(FREE) if found > 0 else found
    found = is_accepted(table, stack, lalr.debts[row], stamp, asked)
    return np.int64(UNDECIDED) if found > 0 else found


@inner
def _push_exits(table, depth, low, high, ending, stack, stamp, asked):
    """Push what is left of tokens behind the ways in which a match ends in a state; the depth, -1: request."""
    automaton = views.automaton(table)
    tokens = views.tokens(table)
    while ending:
        owed = np.int64(automaton.pending[ending])
        if payable_below(automaton, tokens, owed, low, high):
            behind = beyond(table, stack, automaton.tag[ending], stamp, asked)
            if behind < 0:
                return np.int64(-1)
            if behind and first_visit(table, stamp, low, behind, owed):
                depth = push(table, depth, low, high, 0, behind, owed)
                if depth < 0:
                    return np.int64(-1)
        ending = np.int64(automaton.also[ending])
    return np.int64(depth)


@inner
def _row_of(table, state, stack, stamp, asked, limit):
    """The row for tokens that end in a lexer state: of those that are free, those that owe; -1: none, -2: request.

    With ``limit`` >= 0 the first row for tokens with which so many are enough, the last for those without a price.
    """
    counters = views.counters(table)
    undecided = views.rows(table).shape[0] - 1
    verdict = _verdict(table, state, stack, stamp, asked)
    if verdict < 0:
        return np.int64(-2)
    if verdict == REFUSED:
        return np.int64(-1)
    if counters[PRICES]:
        price = price_in(table, state, stack, stamp, asked)
        if price < 0:
            return np.int64(-2)
        if price < FAR or limit < 0:
            counters[NEED] = max(counters[NEED], price)
        if limit >= 0:
            return np.int64(0 if price <= limit else undecided if price >= FAR else -1)
    return np.int64(0 if verdict == FREE else undecided)


@inner
def _walk(table, depth, low, high, state, stack, stamp, asked, limit):
    """Walk a range from one lexer state: sets bits of both rows, pushes what is behind matches; depth, -1: request."""
    automaton = views.automaton(table)
    counters = views.counters(table)
    scratch = views.scratch(table)
    tokens = views.tokens(table)
    rows = views.rows(table)
    level = np.int64(0)
    node = start(table, low, high, state, level, False)
    visited = 0
    # Of the last state that a token ended in: many end in the same.
    judged = np.int64(0)
    at = np.int64(-1)
    while True:
        node, level = settled(table, node, level)
        if node < 0:
            counters[FUEL] -= visited >> 6
            return np.int64(depth)
        visited += 1
        end = np.int64(tokens.end[node])
        after = edge(automaton, scratch.walk_state[level], tokens.byte[node])
        if after < 0 or (after and automaton.tag[after] >= 0 and automaton.first[after] < 0):
            if not ask(table, EXPAND_STATE, abs(after)):
                return np.int64(-1)
            after = np.int64(0)
        if after == 0:
            node = end
            continue
        inside = True
        if automaton.tag[after] >= 0:
            inside = automaton.count[after] > 0
            if end > node + 1:
                depth = _push_exits(table, depth, node + 1, end, after, stack, stamp, asked)
                if depth < 0:
                    return np.int64(-1)
        if tokens.token_offset[node] < tokens.token_offset[node + 1]:
            if judged != after:
                at = _row_of(table, after, stack, stamp, asked, limit)
                if at < -1:
                    return np.int64(-1)
                judged = after
            if at >= 0:
                add_tokens(tokens, rows[at], node, node + 1)
        if inside and end > node + 1:
            node, level = below(table, node, level, after, False)
        else:
            node = end


@entry("long, long, long, long")
def fill_lexed(table, root, state, limit):
    """Set in ``rows[0]`` the bit of every token that keeps ``state`` alive; -1: request.

    The last row gets the tokens after which something is still owed.  With ``limit`` >= 0 the first gets only tokens
    after which ``limit`` tokens are enough to end the text, and the last those of which that is not known.

    With `PRICES` the counter `NEED` says how many tokens are enough to end the text after any token that is not in the
    last row for having no price.
    """
    automaton = views.automaton(table)
    counters = views.counters(table)
    scratch = views.scratch(table)
    effects = views.effects(table)
    tokens = views.tokens(table)
    lalr = views.lalr(table)
    rows = views.rows(table)
    undecided = rows.shape[0] - 1
    asked = local_longs(ASKED)
    # Where they are priced, tokens are also grouped by how far they are from the ends of terminals.
    apart = np.int64(ENOUGH if counters[PRICES] else 0)
    rows[0, :] = 0
    rows[undecided, :] = 0
    counters[N_LOCAL] = counters[NEED] = 0
    counters[STAMP] += 1
    stamp = counters[STAMP]
    depth = push_threads(table, root, state)
    if depth < 0:
        return np.int64(-1)
    while depth > 0:
        counters[FUEL] -= 1
        if counters[FUEL] < 0:
            ask(table, OUT_OF_FUEL)
            return np.int64(-1)
        depth -= 1
        low = scratch.tasks[3 * depth] >> 32
        high = scratch.tasks[3 * depth] & _MASK32
        inside = scratch.tasks[3 * depth + 1] >> 32
        stack = scratch.tasks[3 * depth + 1] & _MASK32
        obligation = scratch.tasks[3 * depth + 2]
        inside = lexer_at(table, inside, stack, obligation)
        if inside <= 0:
            continue
        if automaton.first[inside] < 0:
            if not ask(table, EXPAND_STATE, inside):
                return np.int64(-1)
            continue
        if not begins(automaton, tokens, inside, low, high):
            continue
        forget(lalr, asked)
        if high - low < FAR_RANGE or automaton.loops[inside] == 0:
            depth = _walk(table, depth, low, high, inside, stack, stamp, asked, limit)
            if depth < 0:
                return np.int64(-1)
            continue
        found = find_effect(effects, low, high, inside | apart)
        if found < 0:
            ask(table, NEED_LEXED_NEAR if apart else NEED_LEXED, low, high, inside)
            continue
        first = np.int64(effects.exit_first[found])
        for i in range(first, first + effects.exit_count[found]):
            behind = beyond(table, stack, effects.exit_tag[i], stamp, asked)
            if behind < 0:
                return np.int64(-1)
            owed = np.int64(effects.exit_pending[i])
            if behind and first_visit(table, stamp, effects.exit_low[i], behind, owed):
                depth = push(
                    table, depth, effects.exit_low[i], effects.exit_high[i], 0, behind,
                    owed,
                )  # fmt: skip
                if depth < 0:
                    return np.int64(-1)
        while found >= 0:
            at = _row_of(table, effects.ends_in[found], stack, stamp, asked, limit)
            if at < -1:
                return np.int64(-1)
            if at >= 0:
                apply_effect(table, found, rows[at])
            found = np.int64(effects.more[found])
    if views.requests(table).count[0]:
        return np.int64(-1)
    return np.int64(0)
