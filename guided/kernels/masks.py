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

from guided.kernels.layout import (
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
)
from guided.kernels.threads import boundary, delta, join, open_boundary, past

_MASK32 = 0xFFFFFFFF

SMALL_RANGE = 96
"""Ranges of fewer nodes are walked rather than looked up: about the cost of one cached effect's copy (0.5 us)."""


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
def _push(scratch, counters, depth, low, high, state, continuation, obligation):
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
def _first_visit(scratch, stamp, low, continuation, obligation):
    """Was this boundary not yet opened at this range in this call?  (A full table only costs repeated work.)"""
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
def _walk(
    lexed, automaton, rules, lalr, machine, counters, scratch, joined, tokens, row, doubtful, depth, low, high,
    state, continuation, obligation, stamp, limit,
):  # fmt: skip
    """Walk one range from one automaton state; sets bits in ``row``, pushes boundary tasks; new depth, -1: request.

    Tokens after which something is still owed go to ``doubtful``: the caller must see whether the debt can be met.
    """
    states = scratch.walk_state
    owed = scratch.walk_obligation
    ends = scratch.walk_end
    level = 0
    states[0] = state
    owed[0] = obligation
    ends[0] = high
    node = low
    visited = 0
    while True:
        while node >= ends[level]:
            if level == 0:
                counters[FUEL] -= visited >> 6
                return depth
            level -= 1
        byte = tokens.byte[node]
        visited += 1
        at = states[level]
        after = delta(automaton, at, byte)
        if after < 0:
            counters[REQUEST] = EXPAND_STATE
            counters[REQUEST_A] = at
            return -1
        end = tokens.end[node]
        if after == 0:
            node = end
            continue
        debt = owed[level]
        if debt:
            debt = delta(automaton, debt, byte)
            if debt < 0:
                counters[REQUEST] = EXPAND_STATE
                counters[REQUEST_A] = owed[level]
                return -1
            if debt > 0 and automaton.tag[debt] >= 0:
                node = end
                continue
        tag = automaton.tag[after]
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
            beyond = boundary(lexed, automaton, rules, lalr, machine, counters, scratch, ending, continuation)
            if beyond < 0:
                return -1
            due = join(automaton, counters, joined, debt, automaton.pending[ending])
            if due < 0:
                return -1
            ends_free = ends_free or due == 0
            if priced:
                if beyond >= counters[N_PRICED]:
                    counters[REQUEST] = NEED_COST
                    return -1
                fits = fits or machine.cost[beyond] <= limit
            if end > node + 1 and _first_visit(scratch, stamp, node + 1, beyond, due):
                depth = _push(scratch, counters, depth, node + 1, end, 0, beyond, due)
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
            fits = automaton.minimum[after] + machine.cost[continuation] <= limit
        if fits:
            free = ends_free or (inside and debt == 0)
            for i in range(tokens.token_offset[node], tokens.token_offset[node + 1]):
                token = tokens.token_ids[i]
                bit = np.uint32(1) << np.uint32(token & 31)
                if free:
                    row[token >> 5] |= bit
                else:
                    doubtful[token >> 5] |= bit
        if inside and end > node + 1:
            level += 1
            if level + 1 >= states.shape[0]:
                counters[REQUEST] = GROW_SCRATCH
                return -1
            states[level] = after
            owed[level] = debt
            ends[level] = end
            node += 1
        else:
            node = end


@njit(cache=True, nogil=True)
def _apply(effects, found, row):
    """Put the tokens that an effect keeps inside its terminal into ``row``."""
    at = effects.mask[found]
    if at >= 0:
        for i in range(row.shape[0]):
            row[i] |= effects.masks[at, i]
    first = effects.list_first[found]
    for i in range(first, first + effects.list_count[found]):
        token = effects.listed[i]
        row[token >> 5] |= np.uint32(1) << np.uint32(token & 31)


@njit(cache=True, nogil=True)
def _finish(effects, found, row, share):
    """Add to ``row`` what an effect contributed to ``share``, less the tokens that it removes."""
    first = effects.removed_first[found]
    for i in range(first, first + effects.removed_count[found]):
        token = effects.listed[i]
        share[token >> 5] &= ~(np.uint32(1) << np.uint32(token & 31))
    for i in range(row.shape[0]):
        row[i] |= share[i]


@njit(cache=True, nogil=True)
def fill(lexed, automaton, rules, lalr, machine, counters, scratch, joined, tokens, effects, root, state, rows, limit):
    """Set in ``rows[0]`` the bit of every token that keeps ``state`` alive (end-of-text ids aside); -1: request.

    The last row gets the tokens after which something is still owed.  The others are shares of effects with removals,
    one for each that is nested in one token.  With ``limit`` >= 0
    only tokens after which ``limit`` tokens are enough to end the text.
    """
    rows[0, :] = 0
    doubtful = rows[rows.shape[0] - 1]
    doubtful[:] = 0
    level = 0
    stamps = np.zeros(rows.shape[0], np.int64)
    counters[STAMP] += 1
    stamps[0] = counters[STAMP]
    depth = 0
    for t in range(machine.state_offset[state], machine.state_offset[state + 1]):
        depth = _push(
            scratch, counters, depth, 1, root,
            machine.thread_state[t], machine.thread_next[t], machine.thread_obligation[t],
        )  # fmt: skip
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
            _finish(effects, continuation, rows[level - 1], rows[level])
            level -= 1
            continue
        if inside == 0:
            if open_boundary(lexed, rules, machine, counters, scratch, continuation) < 0:
                return -1
            first = machine.closure_first[continuation]
            for i in range(first, first + machine.closure_count[continuation]):
                depth = _push(
                    scratch, counters, depth, low, high,
                    machine.closure_state[i], machine.closure_next[i], obligation,
                )  # fmt: skip
                if depth < 0:
                    return -1
            continue
        if automaton.first[inside] < 0:
            counters[REQUEST] = EXPAND_STATE
            counters[REQUEST_A] = inside
            return -1
        walks = obligation != 0 or automaton.loops[inside] == 0 or high - low <= SMALL_RANGE
        if limit >= 0 and not walks:
            if automaton.widest[inside] < 0:
                counters[REQUEST] = NEED_MINIMUM
                counters[REQUEST_A] = inside
                return -1
            if continuation >= counters[N_PRICED]:
                counters[REQUEST] = NEED_COST
                return -1
            walks = automaton.widest[inside] + machine.cost[continuation] > limit
        if walks:
            depth = _walk(
                lexed, automaton, rules, lalr, machine, counters, scratch, joined, tokens, rows[level], doubtful, depth,
                low, high, inside, continuation, obligation, stamps[level], limit,
            )  # fmt: skip
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
        if effects.removed_count[found] > 0:
            if level + 2 == rows.shape[0]:
                counters[REQUEST] = GROW_SCRATCH
                return -1
            # The marker (an empty range at the root) closes this share when all tasks above it are done.
            scratch.tasks[3 * depth] = 0
            scratch.tasks[3 * depth + 1] = found
            depth += 1
            level += 1
            rows[level, :] = 0
            counters[STAMP] += 1
            stamps[level] = counters[STAMP]
        _apply(effects, found, rows[level])
        first = effects.exit_first[found]
        for i in range(first, first + effects.exit_count[found]):
            beyond = np.int64(continuation)
            if lexed:
                beyond = np.int64(past(rules, lalr, machine, counters, scratch, continuation, effects.exit_tag[i]))
                if beyond < 0:
                    return -1
            owed = np.int64(effects.exit_pending[i])
            if _first_visit(scratch, stamps[level], effects.exit_low[i], beyond, owed):
                depth = _push(
                    scratch, counters, depth, effects.exit_low[i], effects.exit_high[i], 0, beyond, owed
                )  # fmt: skip
                if depth < 0:
                    return -1
    return 0
