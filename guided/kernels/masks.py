"""Which tokens a state allows: a walk over token tries that never meets most of the vocabulary.

The unit of work is a task: one trie range (children of some node), one automaton state with its continuation and
obligation.  A task for an ordinary state walks the range with the automaton alone; where a match ends at a node, what
is left below that node is a new task at the parser's boundary.  A task for a state that loops (inside a string, white
space, digits) copies its cached effect: a row of tokens that stay inside, and small merged tries of what is left of
the tokens that do not.  So the parser is asked once per boundary, not once per token.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from guided.kernels import views
from guided.kernels.layout import (
    CLOSES,
    EXPAND_STATE,
    FUEL,
    GROW_SCRATCH,
    N_PRICED,
    NEED_COST,
    NEED_EFFECT,
    NEED_MINIMUM,
    OUT_OF_FUEL,
    REQUEST,
    REQUEST_A,
    REQUEST_B,
    REQUEST_C,
    STAMP,
    STRING,
)
from guided.kernels.strings import SPELLED, enter, glance, move
from guided.kernels.threads import boundary, join, open_boundary, past

_MASK32 = 0xFFFFFFFF

SMALL_RANGE = 96
"""Ranges of fewer nodes are walked rather than looked up: about the cost of one cached effect's copy (0.5 us)."""

ESCAPED = 11
"""Bytes that are enough to end an escape: that of a surrogate pair after its backslash."""

CROWDED = 90
"""Ways in which the forbidden words go on from which a free printable character (of 95) is not taken for granted."""


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True)
def _push(table, depth, low, high, state, continuation, obligation):
    counters = views.counters(table)
    scratch = views.scratch(table)
    if low >= high:
        return depth
    if 3 * depth + 3 > scratch.tasks.shape[0]:
        counters[REQUEST] = GROW_SCRATCH
        return -1
    scratch.tasks[3 * depth] = (np.int64(low) << 32) | high
    scratch.tasks[3 * depth + 1] = (np.int64(state) << 32) | continuation
    scratch.tasks[3 * depth + 2] = obligation
    return depth + 1


@njit(cache=True, nogil=True)
def _first_visit(table, stamp, low, continuation, obligation):
    """Was this boundary not yet opened at this range in this call?  (A full table only costs repeated work.)"""
    scratch = views.scratch(table)
    size = scratch.visited.shape[0] // 3
    mixed = np.uint64(low) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(continuation) * np.uint64(0xC2B2AE3D27D4EB4F)
    slot = np.int64((mixed ^ (mixed >> np.uint64(29))) % np.uint64(size))
    key = (np.int64(low) << 32) | continuation
    for _ in range(16):
        if scratch.visited[3 * slot + 2] != stamp:
            scratch.visited[3 * slot] = key
            scratch.visited[3 * slot + 1] = obligation
            scratch.visited[3 * slot + 2] = stamp
            return True
        if scratch.visited[3 * slot] == key and scratch.visited[3 * slot + 1] == obligation:
            return False
        slot += 1
        if slot == size:
            slot = 0
    return True


@njit(cache=True, nogil=True)
def _walk(table, lexed, row, doubtful, depth, low, high, state, continuation, obligation, stamp, limit):
    """Walk one range from one automaton state; sets bits in ``row``, pushes boundary tasks; new depth, -1: request.

    Tokens after which something is still owed go to ``doubtful``: the caller must see whether the debt can be met.
    """
    automaton = views.automaton(table)
    machine = views.machine(table)
    counters = views.counters(table)
    scratch = views.scratch(table)
    tokens = views.tokens(table)
    places = scratch.walk_state
    owed = scratch.walk_obligation
    ends = scratch.walk_end
    level = 0
    places[0] = enter(automaton, np.int64(state))
    owed[0] = obligation
    node = low
    ends[0] = high
    # Most places go on with one byte: then only its child of the root's 256 is looked at, and those that spell it.
    starts = np.int64(0)
    first = automaton.first[state]
    if low == 1 and automaton.count[state] == 1 and automaton.low[first] == automaton.high[first]:
        mode = automaton.mode[state]
        starts = np.int64(automaton.low[first])
        if mode & STRING:
            starts = (starts << 8 | 0x5C) << 8 | 0x22
        if automaton.low[first] > 0:
            node = ends[0] = 0
        else:
            starts = 0
    visited = 0
    while True:
        while node >= ends[level]:
            if level > 0:
                level -= 1
            elif starts > 0:
                node = tokens.root[starts & 0xFF]
                ends[0] = tokens.end[node] if node > 0 else 0
                starts >>= 8
            else:
                counters[FUEL] -= visited >> 6
                return depth
        byte = np.int64(tokens.byte[node])
        visited += 1
        at = places[level]
        place = glance(automaton, at, byte)
        if place == SPELLED:
            place = move(automaton, at, byte)
        if place < 0:
            counters[REQUEST] = EXPAND_STATE
            counters[REQUEST_A] = -place
            return -1
        end = tokens.end[node]
        if place == 0:
            node = end
            continue
        debt = owed[level]
        if debt:
            owing = np.int64(debt)
            if automaton.mode[debt] & STRING:
                owing |= at & ~_MASK32
            due = glance(automaton, owing, byte)
            if due == SPELLED:
                due = move(automaton, owing, byte)
            if due < 0:
                counters[REQUEST] = EXPAND_STATE
                counters[REQUEST_A] = -due
                return -1
            due &= _MASK32
            if due > 0 and automaton.tag[due] >= 0:
                node = end
                continue
            debt = np.int32(due)
        after = place & _MASK32
        if automaton.owes[after]:
            debt = automaton.owes[after]
            after = np.int64(automaton.base[after])
            place = after
        tag = automaton.tag[after]
        payable = debt == 0 or automaton.mode[debt] != 0
        inside = True
        ends_free = False
        fits = limit < 0
        priced = not fits and tokens.token_offset[node] < tokens.token_offset[node + 1]
        ending = np.int64(0)
        if tag >= 0:
            if automaton.first[after] < 0:
                counters[REQUEST] = EXPAND_STATE
                counters[REQUEST_A] = after
                return -1
            inside = automaton.count[after] > 0
            ending = np.int64(after)
        while ending:
            beyond = np.int64(boundary(table, lexed, ending, np.int64(continuation)))
            if beyond < 0:
                return -1
            due = np.int64(join(table, np.int64(debt), np.int64(automaton.pending[ending])))
            if due < 0:
                return -1
            ends_free = ends_free or due == 0
            if priced:
                if beyond >= counters[N_PRICED]:
                    counters[REQUEST] = NEED_COST
                    return -1
                fits = fits or machine.cost[beyond] <= limit
            if end > node + 1 and _first_visit(table, stamp, node + 1, beyond, due):
                depth = _push(table, depth, node + 1, np.int64(end), np.int64(0), beyond, due)
                if depth < 0:
                    return -1
            ending = np.int64(automaton.also[ending])
        if priced and inside and not fits:
            if automaton.minimum[after] < 0:
                counters[REQUEST] = NEED_MINIMUM
                counters[REQUEST_A] = after
                return -1
            if continuation >= counters[N_PRICED]:
                counters[REQUEST] = NEED_COST
                return -1
            left = np.int64(automaton.minimum[after])
            if place >> 32:
                left = np.int64(automaton.widest[after]) + ESCAPED
            if debt and automaton.mode[debt] & CLOSES:
                left += 1 if automaton.count[debt] < CROWDED else limit
            fits = left + machine.cost[continuation] <= limit
        if fits:
            free = ends_free or (inside and payable)
            for i in range(tokens.token_offset[node], tokens.token_offset[node + 1]):
                token = tokens.token_ids[i]
                bit = np.uint32(1) << np.uint32(token & 31)
                if free:
                    row[token >> 5] |= bit
                else:
                    doubtful[token >> 5] |= bit
        if inside and end > node + 1:
            level += 1
            if level + 1 >= places.shape[0]:
                counters[REQUEST] = GROW_SCRATCH
                return -1
            places[level] = place
            owed[level] = debt
            ends[level] = end
            node += 1
        else:
            node = end


@njit(cache=True, nogil=True)
def _apply(table, found, row):
    """Put the tokens that an effect keeps inside its terminal into ``row``."""
    effects = views.effects(table)
    at = effects.mask[found]
    if at >= 0:
        for i in range(row.shape[0]):
            row[i] |= effects.masks[at, i]
    first = effects.list_first[found]
    for i in range(first, first + effects.list_count[found]):
        token = effects.listed[i]
        row[token >> 5] |= np.uint32(1) << np.uint32(token & 31)


@njit(cache=True, nogil=True)
def _forbid(table, share, low, high, obligation):
    """Take out of ``share`` the tokens of a range in which an obligation comes to a match; -1: request."""
    automaton = views.automaton(table)
    counters = views.counters(table)
    scratch = views.scratch(table)
    tokens = views.tokens(table)
    places = scratch.walk_state
    ends = scratch.walk_end
    level = 0
    places[0] = obligation
    ends[0] = high
    node = low
    while True:
        while node >= ends[level]:
            if level == 0:
                return 0
            level -= 1
        byte = np.int64(tokens.byte[node])
        place = glance(automaton, places[level], byte)
        if place == SPELLED:
            place = move(automaton, places[level], byte)
        if place < 0:
            counters[REQUEST] = EXPAND_STATE
            counters[REQUEST_A] = -place
            return -1
        end = tokens.end[node]
        if place == 0:
            node = end
        elif automaton.tag[place & _MASK32] >= 0:
            for i in range(tokens.token_offset[node], tokens.token_offset[end]):
                token = tokens.token_ids[i]
                share[token >> 5] &= ~(np.uint32(1) << np.uint32(token & 31))
            node = end
        elif end > node + 1:
            level += 1
            if level + 1 >= places.shape[0]:
                counters[REQUEST] = GROW_SCRATCH
                return -1
            places[level] = place
            ends[level] = end
            node += 1
        else:
            node = end


@njit(cache=True, nogil=True)
def fill(table, lexed, root, state, limit):
    """Set in ``rows[0]`` the bit of every token that keeps ``state`` alive (end-of-text ids aside); -1: request.

    The last row gets the tokens after which something is still owed.  The others are shares of threads that owe
    something and are not walked, one for each that is nested in one token.  With ``limit`` >= 0
    only tokens after which ``limit`` tokens are enough to end the text.
    """
    automaton = views.automaton(table)
    machine = views.machine(table)
    counters = views.counters(table)
    scratch = views.scratch(table)
    effects = views.effects(table)
    rows = views.rows(table)
    rows[0, :] = 0
    doubtful = rows[rows.shape[0] - 1]
    doubtful[:] = 0
    level = 0
    stamps = np.zeros(rows.shape[0], np.int64)
    counters[STAMP] += 1
    stamps[0] = counters[STAMP]
    depth = np.int64(0)
    for t in range(machine.state_offset[state], machine.state_offset[state + 1]):
        inside, continuation = np.int64(machine.thread_state[t]), np.int64(machine.thread_next[t])
        obligation = np.int64(machine.thread_obligation[t])
        depth = _push(table, depth, np.int64(1), root, inside, continuation, obligation)
        if depth < 0:
            return -1
    while depth > 0:
        if counters[FUEL] < 0:
            counters[REQUEST] = OUT_OF_FUEL
            return -1
        depth -= 1
        bounds = scratch.tasks[3 * depth]
        low = bounds >> 32
        high = bounds & _MASK32
        inside = scratch.tasks[3 * depth + 1] >> 32
        continuation = scratch.tasks[3 * depth + 1] & _MASK32
        obligation = scratch.tasks[3 * depth + 2]
        if low == 0:
            low = scratch.tasks[3 * depth + 1] >> 32
            high = scratch.tasks[3 * depth + 1] & _MASK32
            if _forbid(table, rows[level], low, high, obligation) < 0:
                return -1
            for i in range(rows.shape[1]):
                rows[level - 1, i] |= rows[level, i]
            level -= 1
            continue
        if inside == 0:
            if open_boundary(table, lexed, continuation) < 0:
                return -1
            first = machine.closure_first[continuation]
            for i in range(first, first + machine.closure_count[continuation]):
                inside, following = np.int64(machine.closure_state[i]), np.int64(machine.closure_next[i])
                depth = _push(table, depth, low, high, inside, following, obligation)
                if depth < 0:
                    return -1
            continue
        if automaton.first[automaton.base[inside]] < 0:
            counters[REQUEST] = EXPAND_STATE
            counters[REQUEST_A] = automaton.base[inside]
            return -1
        walks = automaton.loops[inside] == 0 or high - low <= SMALL_RANGE
        if obligation != 0 and automaton.mode[obligation] == 0:
            walks = True
        if limit >= 0 and not walks:
            if automaton.widest[inside] < 0:
                counters[REQUEST] = NEED_MINIMUM
                counters[REQUEST_A] = inside
                return -1
            if continuation >= counters[N_PRICED]:
                counters[REQUEST] = NEED_COST
                return -1
            walks = obligation != 0 or automaton.widest[inside] + machine.cost[continuation] > limit
        if walks:
            depth = _walk(
                table,
                lexed,
                rows[level],
                doubtful,
                depth,
                low,
                high,
                inside,
                continuation,
                obligation,
                stamps[level],
                limit,
            )
            if depth < 0:
                return -1
            continue
        found = find_effect(effects, low, high, inside)
        if found < 0:
            counters[REQUEST] = NEED_EFFECT
            counters[REQUEST_A] = low
            counters[REQUEST_B] = high
            counters[REQUEST_C] = inside
            return -1
        if obligation != 0:
            if level + 2 == rows.shape[0] or 3 * depth + 3 > scratch.tasks.shape[0]:
                counters[REQUEST] = GROW_SCRATCH
                return -1
            # The marker (an empty range at the root) closes this share when all tasks above it are done.
            scratch.tasks[3 * depth] = 0
            scratch.tasks[3 * depth + 1] = (np.int64(low) << 32) | high
            scratch.tasks[3 * depth + 2] = obligation
            depth += 1
            level += 1
            rows[level, :] = 0
            counters[STAMP] += 1
            stamps[level] = counters[STAMP]
        _apply(table, found, rows[level])
        first = effects.exit_first[found]
        for i in range(first, first + effects.exit_count[found]):
            beyond = np.int64(continuation)
            if lexed:
                beyond = np.int64(past(table, np.int64(continuation), np.int64(effects.exit_tag[i])))
                if beyond < 0:
                    return -1
            owed = np.int64(effects.exit_pending[i])
            low, high = np.int64(effects.exit_low[i]), np.int64(effects.exit_high[i])
            if _first_visit(table, stamps[level], low, beyond, owed):
                depth = _push(table, depth, low, high, np.int64(0), beyond, owed)
                if depth < 0:
                    return -1
    return 0
