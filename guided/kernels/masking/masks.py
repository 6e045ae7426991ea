"""Which tokens a state allows: a walk over token tries that never meets most of the vocabulary.

The unit of work is a task: one trie range (children of some node), one automaton state with its continuation and
obligation.  A task for an ordinary state walks the range with the automaton alone; where a match ends at a node, what
is left below that node is a new task at the parser's boundary.  A task for a state that loops (inside a string, white
space, digits) copies its cached effect: a row of tokens that stay inside, and small merged tries of what is left of
the tokens that do not.  So the parser is asked once per boundary, not once per token; and what a boundary allows of
such a small trie is kept for the constraint (`guided.kernels.masking.segments`).
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data import views
from guided.kernels.data.asking import ask
from guided.kernels.data.layout import (
    ANY,
    FAR,
    FUEL,
    LISTED,
    LONGEST,
    MOST_ROWS,
    N_CLOSURE,
    N_LISTED,
    N_PRICED,
    N_REACHED,
    N_SETS,
    NEED,
    OWING,
    PRICES,
    SHARES,
    STAMP,
    WALKED,
)
from guided.kernels.data.local_arrays import local_long_rows
from guided.kernels.data.requests import EXPAND_STATE, GROW_SCRATCH, NEED_EFFECT, NEED_NEAR, OUT_OF_FUEL
from guided.kernels.jit import entry, inner
from guided.kernels.masking.rows import add_token, fingerprint
from guided.kernels.masking.segments import (
    LEAST_NODES,
    LEAST_WALKED,
    MOST_NODES,
    PRICED,
    WALK,
    apply_priced,
    apply_segment,
    begin_notes,
    close_priced,
    close_segment,
    first_visit,
    keep_noted,
    need_of,
    push,
)
from guided.kernels.masking.walks import EVASION, SMALL_RANGE, begins, forbid, payable_below, walk
from guided.kernels.parsing.costs import price_new, reach_of
from guided.kernels.parsing.parser import close

_MASK32 = 0xFFFFFFFF

SEGMENT = 1 << 40
"""In the place of a task's obligation: this boundary's part of the mask is to be kept."""

ROOM = 24
"""The bit from which on a share's obligation says 1 more than the tokens that are left for what is inside."""

MOST_ROOM = 100
"""More are not distinguished: a word that a run must not be is left with fewer."""

STATE = (1 << ROOM) - 1
"""What is below that bit."""

ENOUGH = 1 << ROOM
"""With an effect's state: not what stays inside but what is enough behind it, see `_apply_near`; of a lexer of LALR
tables tokens are also grouped by how far they are from the ends of terminals."""

STAMPED, LIMIT, AROUND, LISTS = range(4)
"""Of each share, of which each is nested in the one before: the stamp of its boundaries, its limit, the `NEED` of what
is around it, and where what is listed for it begins."""

HORIZON = 128
"""Tokens up to which parts of masks are kept with prices."""

ALONE = 1 << 41
"""With a task's obligation: this share has the row of what is around it, in which nothing was yet."""

OWN_RANGE = 2048
"""Nodes up to which a range is walked from a state that may be this grammar's alone: 10 us, when making an effect
costs 40 us of Python and the state may never come again."""

NARROW = 24
"""Bytes of a state, hexadecimal digits of both cases among them, from which a larger range is walked as well while no
more nodes than that are met."""


@inner
def find_effect(effects, low, high, state):
    """The effect of a range and state, or -1."""
    size = effects.hash_slot.shape[0]
    mixed = np.uint64(low) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(state) * np.uint64(0xC2B2AE3D27D4EB4F)
    slot = np.int64((mixed ^ (mixed >> np.uint64(32))) % np.uint64(size))
    while effects.hash_slot[slot] >= 0:
        found = effects.hash_slot[slot]
        if effects.key_low[found] == low and effects.key_high[found] == high and effects.key_state[found] == state:
            return found
        slot += 1
        if slot == size:
            slot = 0
    return -1


@inner
def apply_effect(table, found, row):
    """Put the tokens that an effect keeps inside its terminal into ``row``."""
    effects = views.effects(table)
    at = effects.mask[found]
    if at >= 0:
        for i in range(row.shape[0]):
            row[i] |= effects.masks[at, i]
    first = effects.list_first[found]
    for i in range(first, first + effects.list_count[found]):
        add_token(row, effects.listed[i])


@inner
def _apply_near(table, found, near, room, row):
    """The same of those that have so many tokens to the end of their terminal.

    The list of ``near`` begins with what most of the tokens take and how long its first part is: the tokens that take
    more, those that take the most first, behind each price (all bits inverted).  Then come those that take less.
    """
    effects = views.effects(table)
    rows = views.rows(table)
    inside = rows[rows.shape[0] - 1]
    inside[:] = 0
    apply_effect(table, found, inside)
    first = np.int64(effects.list_first[near])
    stop = first + effects.list_count[near]
    usual, cheaper = effects.listed[first], first + 2 + effects.listed[first + 1]
    if room < usual:
        for at in range(cheaper, stop):
            token = np.int64(effects.listed[at])
            if token < 0 and ~token > room:
                break
            if token >= 0:
                row[token >> 5] |= inside[token >> 5] & np.uint32(1) << np.uint32(token & 31)
        return
    for at in range(first + 2, cheaper):
        token = np.int64(effects.listed[at])
        if token < 0 and ~token <= room:
            break
        if token >= 0:
            inside[token >> 5] &= ~(np.uint32(1) << np.uint32(token & 31))
    for i in range(row.shape[0]):
        row[i] |= inside[i]


@inner
def _is_empty(row):
    found = np.uint32(0)
    for i in range(row.shape[0]):
        found |= row[i]
    return found == 0


@inner
def _open_share(table, shares, depth, level, low, high, kind, limit):
    """Begin a share of the mask, and push the marker that closes it when all tasks above it are done; -1: request.

    The marker is an empty range at the root.
    """
    counters = views.counters(table)
    scratch = views.scratch(table)
    if level + 1 == views.rows(table).shape[0] or 3 * depth + 3 > scratch.tasks.shape[0]:
        ask(table, GROW_SCRATCH)
        return np.int64(-1)
    scratch.tasks[3 * depth] = 0
    scratch.tasks[3 * depth + 1] = (np.int64(low) << 32) | high
    scratch.tasks[3 * depth + 2] = kind
    counters[STAMP] += 1
    shares[level, STAMPED] = counters[STAMP]
    if not kind & ALONE:
        shares[level, AROUND] = counters[NEED]
        shares[level, LIMIT] = limit
        shares[level, LISTS] = counters[N_LISTED]
        counters[SHARES] = max(counters[SHARES], level)
    return np.int64(depth) + 1


@inner
def _close_share(table, shares, level, low, high, kind):
    """Put a share that is complete into what is around it; the level of that, -1: request."""
    counters = views.counters(table)
    rows = views.rows(table)
    if kind & SEGMENT:
        whole = views.requests(table).count[0] == 0
        key = (np.int64(low) << 32) | (kind & _MASK32)
        limit = shares[level - 1, LIMIT]
        if shares[level, LIMIT] == ANY:
            if close_segment(table, key, rows[level], rows[level - 1], whole) < 0:
                return np.int64(-1)
        elif close_priced(table, key | PRICED, shares[level, LISTS], rows[level - 1], limit, whole) < 0:
            return np.int64(-1)
    else:
        room = ((kind & _MASK32) >> ROOM) - 1
        if forbid(table, rows[level], low, high, kind & STATE, room) < 0:
            return np.int64(-1)
        if kind & ALONE:
            counters[STAMP] += 1
            shares[level, STAMPED] = counters[STAMP]
            return np.int64(level)
        for i in range(rows.shape[1]):
            rows[level - 1, i] |= rows[level, i]
            rows[level, i] = 0
    counters[NEED] = max(counters[NEED], shares[level, AROUND])
    return np.int64(level) - 1


@inner
def _apply_kept(table, row, depth, low, continuation, stamp, limit):
    """Put what is kept of a boundary into a row; the depth, -1: request, -2: nothing is kept."""
    key = (np.int64(low) << 32) | continuation
    if limit == ANY or 0 <= need_of(table, key) <= limit:
        return apply_segment(table, key, row, depth, continuation, stamp)
    return -2 if apply_priced(table, key | PRICED, row, limit) < 0 else depth


@inner
def _push_terminals(table, depth, low, high, continuation, obligation):
    """Push a range for each terminal that may come at a boundary; the depth, -1: request."""
    if close(table, continuation) < 0:
        return np.int64(-1)
    automaton = views.automaton(table)
    machine = views.machine(table)
    tokens = views.tokens(table)
    first = machine.closure_first[continuation]
    for i in range(first, first + machine.closure_count[continuation]):
        inside = np.int64(machine.closure_state[i])
        if begins(automaton, tokens, inside, low, high):
            depth = push(table, depth, low, high, inside, machine.closure_next[i], obligation)
            if depth < 0:
                return np.int64(-1)
    return np.int64(depth)


@inner
def _push_exits(table, depth, found, continuation, stamp, keeps):
    """Push what is left of tokens behind the ends of matches that an effect has; the depth, -1: request."""
    automaton = views.automaton(table)
    effects = views.effects(table)
    tokens = views.tokens(table)
    first = effects.exit_first[found]
    for i in range(first, first + effects.exit_count[found]):
        owed = np.int64(effects.exit_pending[i])
        low, high = np.int64(effects.exit_low[i]), np.int64(effects.exit_high[i])
        if not payable_below(automaton, tokens, owed, low, high):
            continue
        if keeps and owed == 0 and LEAST_NODES <= high - low <= MOST_NODES:
            owed = np.int64(SEGMENT)
        elif not first_visit(table, stamp, low, continuation, owed):
            continue
        depth = push(table, depth, low, high, 0, continuation, owed)
        if depth < 0:
            return np.int64(-1)
    return np.int64(depth)


@inner
def _is_narrow(automaton, state):
    """Do few bytes lead on from a state?"""
    first = automaton.first[state]
    width = 0
    for edge in range(first, first + automaton.count[state]):
        width += np.int64(automaton.high[edge]) - automaton.low[edge] + 1
    return width <= NARROW


@inner
def _walk_kept(table, depth, level, low, high, inside, continuation, obligation, stamp, limit, keeps, most):
    """Walk a range, or put what is kept of such a walk into the row of a share; the depth, -1: request, -2: it has more
    nodes that are met than ``most``.
    """
    rows = views.rows(table)
    keeps = keeps and limit == ANY and obligation == 0 and high - low >= LEAST_WALKED
    key = WALK | (np.int64(low) << 32) | inside
    if keeps:
        after = apply_segment(table, key, rows[level], depth, continuation, stamp)
        if after >= -1:
            return after
    begin_notes(table, keeps)
    undecided = rows[rows.shape[0] - 1]
    depth = walk(table, rows[level], undecided, depth, low, high, inside, continuation, obligation, stamp, limit, most)
    if depth >= 0 and keeps and views.requests(table).count[0] == 0 and keep_noted(table, key, 0) < 0:
        return np.int64(-1)
    return depth


@inner
def _room(table, inside, continuation, obligation, limit):
    """So many tokens may be left of a terminal for the text to end within a limit; `FAR` where none needs more."""
    if limit < 0 or not views.counters(table)[PRICES] or reach_of(table, continuation) <= limit:
        return np.int64(FAR)
    room = np.int64(limit - views.machine(table).cost[continuation])
    # Where all that may be left inside is known to be less, nothing is far.
    widest = views.automaton(table).widest[inside]
    return np.int64(FAR) if 0 <= widest <= room - (EVASION if obligation else 0) else room


@inner
def push_threads(table, root, state):
    """Push the whole vocabulary for each thread of a state; the depth, -1: request."""
    machine = views.machine(table)
    depth = np.int64(0)
    for t in range(machine.state_offset[state], machine.state_offset[state + 1]):
        inside, continuation = machine.thread_state[t], machine.thread_next[t]
        depth = push(table, depth, 1, root, inside, continuation, machine.thread_obligation[t])
        if depth < 0:
            return depth
    return depth


@inner
def _may_end(table, state):
    """Is some thread of a state at a boundary at which the text may end?"""
    machine = views.machine(table)
    for t in range(machine.state_offset[state], machine.state_offset[state + 1]):
        if machine.thread_state[t] == 0 and machine.items[machine.set_offset[machine.thread_next[t]]] == 1:
            return True
    return False


@entry("long, long, long, long")
def fill(table, root, state, limit):
    """Set in ``rows[0]`` the bit of every token that keeps ``state`` alive (end-of-text ids aside); -1: request.

    Returns the row's fingerprint ``<< 1``, and 1 when the text may end here (not told of grammars with a lexer).  With
    `OWING` the last row gets the tokens after which something is still owed.  The others are shares of the mask that
    are worked out by themselves, one for each that is nested in one token: those of threads that owe something and are
    not walked, and those to be kept.  With ``limit`` >= 0 only tokens after which ``limit`` tokens are enough to end
    the text, and in the place of the fingerprint whether there are any.

    With `PRICES` the counter `NEED` says how many tokens are enough to end the text after any token of the row.
    """
    automaton = views.automaton(table)
    counters = views.counters(table)
    scratch = views.scratch(table)
    effects = views.effects(table)
    rows = views.rows(table)
    # Effects, stacks and lexer states that are met for the first time are asked for, and what is behind them left out:
    # one round asks for all that it comes to, since each begins again.
    requests = views.requests(table)
    rows[0, :] = 0
    # Those of shares are left zero, but where a request came in between.
    rows[1 : counters[SHARES] + 1] = 0
    if counters[OWING]:
        rows[rows.shape[0] - 1, :] = 0
    keeps = counters[OWING] == 0 and limit <= HORIZON
    counters[SHARES] = counters[NEED] = counters[N_LISTED] = 0
    shares = local_long_rows(MOST_ROWS, 4)
    level = np.int64(0)
    counters[STAMP] += 1
    shares[0, STAMPED], shares[0, LIMIT] = counters[STAMP], limit
    depth = push_threads(table, root, state)
    if depth < 0:
        return np.int64(-1)
    while depth > 0:
        if counters[FUEL] < 0:
            ask(table, OUT_OF_FUEL)
            return np.int64(-1)
        depth -= 1
        low, high = scratch.tasks[3 * depth] >> 32, scratch.tasks[3 * depth] & _MASK32
        inside, continuation = scratch.tasks[3 * depth + 1] >> 32, scratch.tasks[3 * depth + 1] & _MASK32
        obligation = scratch.tasks[3 * depth + 2]
        if low == 0:
            level = _close_share(table, shares, level, inside, continuation, obligation)
            if level < 0:
                return np.int64(-1)
            continue
        within = shares[level, LIMIT]
        if obligation & SEGMENT:
            after = _apply_kept(table, rows[level], depth, low, continuation, shares[level, STAMPED], within)
            if after == -1:
                return np.int64(-1)
            if after >= 0:
                depth = after
                continue
            within = np.int64(ANY if within == ANY else LISTED)
            depth = _open_share(table, shares, depth, level + 1, low, high, continuation | SEGMENT, within)
            if depth < 0:
                return np.int64(-1)
            level += 1
            counters[NEED] = 0
            obligation = np.int64(0)
        if inside == 0:
            depth = _push_terminals(table, depth, low, high, continuation, obligation)
            if depth < 0:
                return np.int64(-1)
            continue
        if counters[PRICES]:
            is_new = counters[N_PRICED] < counters[N_SETS] or counters[N_REACHED] < counters[N_CLOSURE]
            if is_new and price_new(table) < 0:
                return np.int64(-1)
            counters[NEED] = max(counters[NEED], reach_of(table, continuation))
        if automaton.bound[inside] > counters[LONGEST] + max(limit, HORIZON if within == LISTED else 0):
            # No token comes to the bound, nor does the shortest way on from it where that is short enough; and every
            # grammar has the state without one.
            inside = np.int64(automaton.boundless[inside])
        if automaton.first[automaton.base[inside]] < 0:
            if not ask(table, EXPAND_STATE, automaton.base[inside]):
                return np.int64(-1)
            continue
        loops = automaton.loops[inside]
        walks = loops == 0 or high - low <= (SMALL_RANGE if loops > 1 else OWN_RANGE) or within == LISTED
        found = near = np.int64(-1)
        room = _room(table, inside, continuation, obligation, within)
        if not walks:
            found = near = np.int64(find_effect(effects, low, high, inside))
            walks = found >= 0 and effects.mask[found] == WALKED
        if found >= 0 and not walks and room < FAR:
            near = np.int64(find_effect(effects, low, high, inside | ENOUGH))
            walks = near >= 0 and effects.mask[near] == WALKED
        walks = walks or (obligation != 0 and automaton.mode[obligation] == 0)
        most = high - low
        is_own = found < 0 and loops == 1 and obligation == 0 and within == ANY
        if is_own and not walks and _is_narrow(automaton, inside):
            walks, most = True, np.int64(OWN_RANGE)
        if walks:
            # What is left inside is no longer than there is room for, mostly: then nothing is priced.
            bound = np.int64(ANY) if within >= 0 and room == FAR else np.int64(within)
            after = _walk_kept(
                table, depth, level, low, high, inside, continuation, obligation, shares[level, STAMPED], bound, keeps,
                most,
            )  # fmt: skip
            if after == -1:
                return np.int64(-1)
            if after >= 0:
                depth = after
                continue
        if near < 0:
            if not ask(table, NEED_EFFECT if found < 0 else NEED_NEAR, low, high, inside):
                return np.int64(-1)
            continue
        if obligation != 0:
            alone = _is_empty(rows[level])
            left = min(max(room, np.int64(-1)), np.int64(MOST_ROOM)) + 1 if room < FAR else 0
            kind = obligation | left << ROOM | (ALONE if alone else 0)
            if not alone:
                level += 1
            depth = _open_share(table, shares, depth, level, low, high, kind, within)
            if depth < 0:
                return np.int64(-1)
        if room == FAR:
            apply_effect(table, found, rows[level])
        elif room >= 0:
            _apply_near(table, found, near, room, rows[level])
        depth = _push_exits(table, depth, found, continuation, shares[level, STAMPED], keeps)
        if depth < 0:
            return np.int64(-1)
    if requests.count[0]:
        return np.int64(-1)
    counters[SHARES] = 0
    ends = np.int64(_may_end(table, state))
    if limit != ANY:
        return np.int64(not _is_empty(rows[0])) << 1 | ends
    return fingerprint(rows[0], views.weights(table)) << 1 | ends
