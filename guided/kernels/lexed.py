"""Masks of grammars with an LALR parser: a walk over token tries in which the parser is asked for nothing twice.

Tokens are read by the lexer of the LALR state, whatever of its terminals the stack accepts.  Where a match ends, the
parser shifts it: the stacks behind it are gone with the mask, so they are not the constraint's continuations but
entries of working memory, each there once.  Where a token ends inside a terminal, what the lexer state may still match
decides (`verdict`): one of these terminals must be accepted.  So a boundary within a token costs what its few bytes
need and not a question for each terminal of the state.

Most of the vocabulary is never walked: words that are no keyword, strings and comments (`guided.kernels.cores`).
What a match still owes is part of the lexer state in which the next terminal begins (`guided.automata.joint.Under`).
"""

from __future__ import annotations

import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros

from guided.kernels import views
from guided.kernels.jit import entry, inner
from guided.kernels.lalr import MOST_LIVE_WORDS, MOST_PUSHED
from guided.kernels.layout import (
    FUEL,
    GROW_SCRATCH,
    N_LOCAL,
    N_MISSING,
    N_UNKNOWN,
    N_WANTED,
    NEED_LEXED,
    OUT_OF_FUEL,
    REQUEST,
    REQUEST_A,
    REQUEST_B,
    STAMP,
    WANT_START,
    WANT_UNDER,
    WANT_VERDICT,
)
from guided.kernels.local_arrays import local_ints, local_longs
from guided.kernels.masks import apply_effect, find_effect
from guided.kernels.segments import first_visit, push
from guided.kernels.strings import edge
from guided.kernels.walks import begins, payable_below, wait_for, way, ways

__all__ = ["fill_lexed"]

_MASK32 = 0xFFFFFFFF

LOCAL = 1 << 31
"""Numbers from which on stacks are entries of `Scratch.longs`."""


REFUSED, FREE, DOUBTFUL = 0, 1, 2
"""Verdicts on a token that ends in a lexer state: no terminal that may come of it is accepted; one is, whatever was
owed; one is, but something is owed."""

ASKED = 2 + 2 * MOST_LIVE_WORDS
"""Numbers that are noted of one stack: the last terminal that was shifted and what it led to, and which terminals are
accepted and which are not."""

FAR_RANGE = 1024
"""Nodes from which on a range is not walked: its effect is rows and lists of tokens, and tries of what is left of them.
A guess at where the costs meet: 1,024 nodes are walked in 5 to 20 us, and a row is 1 us."""


@inner
def _want(table, what):
    """Ask Python for something, with all else that this round comes to."""
    counters = views.counters(table)
    wanted = views.scratch(table).emits
    n = counters[N_WANTED]
    if n < wanted.shape[0] and (n == 0 or wanted[n - 1] != what):
        wanted[n] = what
        counters[N_WANTED] = n + 1


@inner
def _item(machine, local, stack):
    """The LALR state on top of a stack, plus one, above 32 bits of the stack below."""
    if stack >= LOCAL:
        return local[stack - LOCAL]
    return machine.items[machine.set_offset[stack]]


@inner
def _pushed(table, state, below, stamp):
    """The stack with an LALR state on top of another; -1: request."""
    counters = views.counters(table)
    scratch = views.scratch(table)
    slots = scratch.united
    size = slots.shape[0] // 2
    item = (np.int64(state) + 1) << 32 | below
    mixed = np.uint64(item) * np.uint64(0x9E3779B97F4A7C15)
    slot = np.int64((mixed ^ (mixed >> np.uint64(29))) % np.uint64(size))
    while slots[2 * slot + 1] == stamp:
        if scratch.longs[slots[2 * slot]] == item:
            return slots[2 * slot] + LOCAL
        slot += 1
        if slot == size:
            slot = 0
    n = counters[N_LOCAL]
    if n == scratch.longs.shape[0] or 2 * n >= size:
        counters[REQUEST] = GROW_SCRATCH
        return np.int64(-1)
    scratch.longs[n] = item
    slots[2 * slot] = n
    slots[2 * slot + 1] = stamp
    counters[N_LOCAL] = n + 1
    return n + LOCAL


@inner
def _shifted(table, stack, terminal, makes, stamp):
    """The stack after reducing and shifting a terminal, or whether there is one; 0: refused, -1: request."""
    lalr = views.lalr(table)
    if lalr.is_ignored[terminal]:
        return stack
    machine = views.machine(table)
    local = views.scratch(table).longs
    pushed = local_ints(MOST_PUSHED)
    n = np.int64(0)
    item = np.int64(_item(machine, local, stack))
    state = (item >> 32) - 1
    while True:
        action = np.int64(lalr.action[state, terminal])
        if action == 0:
            return np.int64(0)
        if action > 0:
            break
        rule = -action - 1
        drop = np.int64(lalr.rule_length[rule])
        if drop <= n:
            n -= drop
        else:
            drop -= n
            n = np.int64(0)
            while drop:
                stack = item & _MASK32
                item = np.int64(_item(machine, local, stack))
                drop -= 1
        state = np.int64(pushed[n - 1]) if n else (item >> 32) - 1
        state = np.int64(lalr.goto[state, lalr.rule_name[rule]])
        if n == MOST_PUSHED:
            for i in range(n):
                stack = np.int64(_pushed(table, np.int64(pushed[i]), stack, stamp))
                if stack < 0:
                    return stack
            item = np.int64(_item(machine, local, stack))
            n = np.int64(0)
        pushed[n] = state
        n += 1
    if not makes:
        return np.int64(1)
    for i in range(n):
        stack = np.int64(_pushed(table, np.int64(pushed[i]), stack, stamp))
        if stack < 0:
            return stack
    return np.int64(_pushed(table, action - 1, stack, stamp))


@inner
def _forget(lalr, asked):
    """Begin to note what is found of another stack."""
    asked[0] = 0
    for word in range(2, 2 + 2 * lalr.frees.shape[1]):
        asked[word] = 0


@inner
def _beyond(table, stack, terminal, stamp, asked):
    """The stack behind a terminal, asked once for all nodes of a range where the same one ends; as `_shifted`."""
    if asked[0] != terminal + 1:
        asked[1] = _shifted(table, stack, terminal, True, stamp)
        asked[0] = terminal + 1
    return asked[1]


@inner
def _is_accepted(table, stack, terminals, stamp, asked):
    """Does the parser accept one of a row of terminals?  -1: request.

    The answers for each are noted in ``asked``: first those that are accepted, then those that are not.
    """
    words = terminals.shape[0]
    for word in range(words):
        if terminals[word] & asked[2 + word]:
            return np.int64(1)
    for word in range(words):
        left = np.uint64(terminals[word] & ~asked[2 + words + word])
        while left:
            terminal = np.int64(trailing_zeros(left))
            left &= left - np.uint64(1)
            bit = np.int64(np.uint64(1) << np.uint64(terminal))
            found = np.int64(_shifted(table, stack, (word << 6) + terminal, False, stamp))
            if found:
                asked[2 + word] |= bit
                return np.int64(1) if found > 0 else found
            asked[2 + words + word] |= bit
    return np.int64(0)


@inner
def _verdict(table, state, stack, stamp, asked):
    """May a token end in a lexer state?  -1: request; what is not known yet is asked for."""
    lalr = views.lalr(table)
    row = np.int64(-1)
    if state < lalr.verdict.shape[0]:
        row = np.int64(lalr.verdict[state])
    if row < 0:
        _want(table, np.int64(WANT_VERDICT) << 56 | state)
        return np.int64(REFUSED)
    found = np.int64(_is_accepted(table, stack, lalr.frees[row], stamp, asked))
    if found:
        return np.int64(FREE) if found > 0 else found
    found = np.int64(_is_accepted(table, stack, lalr.debts[row], stamp, asked))
    return np.int64(DOUBTFUL) if found > 0 else found


@inner
def _under(table, state, obligation):
    """The lexer state under an obligation; -1 where it is not known yet, which is asked for."""
    lalr = views.lalr(table)
    key = np.int64(state) << 28 | obligation
    size = lalr.under_key.shape[0]
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    slot = np.int64((mixed ^ (mixed >> np.uint64(29))) % np.uint64(size))
    while lalr.under_key[slot]:
        if lalr.under_key[slot] == key:
            return np.int64(lalr.under_state[slot])
        slot += 1
        if slot == size:
            slot = 0
    _want(table, np.int64(WANT_UNDER) << 56 | key)
    return np.int64(-1)


@inner
def _push_exits(table, depth, low, high, ending, stack, stamp, asked):
    """Push what is left of tokens behind the ways in which a match ends in a state; the depth, -1: request."""
    automaton = views.automaton(table)
    tokens = views.tokens(table)
    while ending:
        owed = np.int64(automaton.pending[ending])
        if payable_below(automaton, tokens, owed, low, high):
            beyond = np.int64(_beyond(table, stack, np.int64(automaton.tag[ending]), stamp, asked))
            if beyond < 0:
                return np.int64(-1)
            if beyond and first_visit(table, stamp, low, beyond, owed):
                depth = np.int64(push(table, depth, low, high, np.int64(0), beyond, owed))
                if depth < 0:
                    return np.int64(-1)
        ending = np.int64(automaton.also[ending])
    return np.int64(depth)


@inner
def _need_effect(table, low, high, state):
    """Ask for the effect by which a range is read from a lexer state."""
    counters = views.counters(table)
    scratch = views.scratch(table)
    n = counters[N_MISSING]
    if n < scratch.thread_a.shape[0]:
        scratch.thread_a[n] = np.int64(low) << 32 | high
        scratch.thread_b[n] = state
        counters[N_MISSING] = n + 1


@inner
def _walk(table, depth, low, high, state, stack, stamp, asked):
    """Walk a range from one lexer state: sets bits of both rows, pushes what is behind matches; depth, -1: request."""
    automaton = views.automaton(table)
    counters = views.counters(table)
    scratch = views.scratch(table)
    tokens = views.tokens(table)
    rows = views.rows(table)
    doubtful = rows.shape[0] - 1
    states = scratch.walk_state
    ends = scratch.walk_end
    fans = scratch.walk_fan
    next_way = scratch.walk_way
    beyond_at = scratch.walk_other
    level = 0
    states[0] = state
    node = np.int64(low)
    ends[0] = beyond_at[0] = high
    fans[0] = ways(automaton, tokens, states[0], low)
    if fans[0]:
        next_way[0] = ends[0] = 0
    visited = 0
    # Of the last state that a token ended in: many end in the same.
    judged = np.int64(0)
    verdict = np.int64(REFUSED)
    while True:
        while node >= ends[level]:
            if fans[level]:
                chosen = way(automaton, states[level], next_way[level])
                if chosen >= 0:
                    next_way[level] += 1
                    child = np.int64(tokens.children[fans[level] - 1, chosen])
                    if child > 0:
                        node = child
                        ends[level] = tokens.end[child]
                    continue
                node = np.int64(beyond_at[level])
            if level == 0:
                counters[FUEL] -= visited >> 6
                return np.int64(depth)
            level -= 1
        visited += 1
        end = np.int64(tokens.end[node])
        after = np.int64(edge(automaton, states[level], np.int64(tokens.byte[node])))
        inside = after > 0
        if after < 0:
            if not wait_for(table, -after):
                return np.int64(-1)
        elif inside:
            if automaton.tag[after] >= 0:
                if automaton.first[after] < 0:
                    if not wait_for(table, after):
                        return np.int64(-1)
                    node = end
                    continue
                inside = automaton.count[after] > 0
                if end > node + 1:
                    depth = _push_exits(table, depth, node + 1, end, after, stack, stamp, asked)
                    if depth < 0:
                        return np.int64(-1)
            first = tokens.token_offset[node]
            stop = tokens.token_offset[node + 1]
            if first < stop:
                if judged != after:
                    verdict = np.int64(_verdict(table, after, stack, stamp, asked))
                    if verdict < 0:
                        return np.int64(-1)
                    judged = after
                if verdict != REFUSED:
                    at = 0 if verdict == FREE else doubtful
                    for i in range(first, stop):
                        token = tokens.token_ids[i]
                        rows[at, token >> 5] |= np.uint32(1) << np.uint32(token & 31)
        if inside and end > node + 1:
            level += 1
            if level + 1 >= states.shape[0]:
                counters[REQUEST] = GROW_SCRATCH
                return np.int64(-1)
            states[level] = after
            ends[level] = beyond_at[level] = end
            node += 1
            fans[level] = ways(automaton, tokens, states[level], node)
            if fans[level]:
                next_way[level] = ends[level] = 0
        else:
            node = end


@entry
def fill_lexed(table, root, state):
    """Set in ``rows[0]`` the bit of every token that keeps ``state`` alive; -1: request.

    The last row gets the tokens after which something is still owed.
    """
    automaton = views.automaton(table)
    machine = views.machine(table)
    counters = views.counters(table)
    scratch = views.scratch(table)
    effects = views.effects(table)
    tokens = views.tokens(table)
    lalr = views.lalr(table)
    rows = views.rows(table)
    doubtful = rows.shape[0] - 1
    asked = local_longs(ASKED)
    rows[0, :] = 0
    rows[doubtful, :] = 0
    counters[N_UNKNOWN] = counters[N_WANTED] = counters[N_MISSING] = counters[N_LOCAL] = 0
    counters[STAMP] += 1
    stamp = counters[STAMP]
    depth = np.int64(0)
    for t in range(machine.state_offset[state], machine.state_offset[state + 1]):
        depth = np.int64(push(
            table, depth, np.int64(1), root, np.int64(machine.thread_state[t]), np.int64(machine.thread_next[t]),
            np.int64(machine.thread_obligation[t]),
        ))  # fmt: skip
        if depth < 0:
            return np.int64(-1)
    while depth > 0:
        counters[FUEL] -= 1
        if counters[FUEL] < 0:
            counters[REQUEST] = OUT_OF_FUEL
            return np.int64(-1)
        depth -= 1
        low = scratch.tasks[3 * depth] >> 32
        high = scratch.tasks[3 * depth] & _MASK32
        inside = scratch.tasks[3 * depth + 1] >> 32
        stack = scratch.tasks[3 * depth + 1] & _MASK32
        obligation = scratch.tasks[3 * depth + 2]
        if inside == 0:
            top = (np.int64(_item(machine, scratch.longs, stack)) >> 32) - 1
            inside = np.int64(lalr.start[top])
            if inside < 0:
                _want(table, np.int64(WANT_START) << 56 | top)
                continue
        if obligation:
            inside = np.int64(_under(table, inside, obligation))
            if inside < 0:
                continue
        if automaton.first[inside] < 0:
            if not wait_for(table, inside):
                return np.int64(-1)
            continue
        if not begins(automaton, tokens, inside, low, high):
            continue
        _forget(lalr, asked)
        if high - low < FAR_RANGE or automaton.loops[inside] == 0:
            depth = np.int64(_walk(table, depth, low, high, inside, stack, stamp, asked))
            if depth < 0:
                return np.int64(-1)
            continue
        found = np.int64(find_effect(effects, low, high, inside))
        if found < 0:
            _need_effect(table, low, high, inside)
            continue
        first = np.int64(effects.exit_first[found])
        for i in range(first, first + effects.exit_count[found]):
            beyond = np.int64(_beyond(table, stack, np.int64(effects.exit_tag[i]), stamp, asked))
            if beyond < 0:
                return np.int64(-1)
            owed = np.int64(effects.exit_pending[i])
            if beyond and first_visit(table, stamp, np.int64(effects.exit_low[i]), beyond, owed):
                depth = np.int64(push(
                    table, depth, np.int64(effects.exit_low[i]), np.int64(effects.exit_high[i]), np.int64(0), beyond,
                    owed,
                ))  # fmt: skip
                if depth < 0:
                    return np.int64(-1)
        while found >= 0:
            verdict = np.int64(_verdict(table, np.int64(effects.ends_in[found]), stack, stamp, asked))
            if verdict < 0:
                return np.int64(-1)
            if verdict != REFUSED:
                apply_effect(table, found, rows[0 if verdict == FREE else doubtful])
            found = np.int64(effects.more[found])
    if counters[N_MISSING] or counters[N_UNKNOWN] or counters[N_WANTED]:
        counters[REQUEST] = NEED_LEXED
        counters[REQUEST_A] = counters[N_MISSING]
        counters[REQUEST_B] = counters[N_WANTED]
        return np.int64(-1)
    return np.int64(0)
