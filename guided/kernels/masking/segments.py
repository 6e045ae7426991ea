"""Parts of masks that are kept for a constraint: what boundaries allow of trie ranges, and walks of ranges.

All places inside one string lead to the same continuation with the same remainders of tokens, so that part of the mask
is computed once per constraint and not once per place.  And a name of an object is walked over the same tokens wherever
it may still come: of 170,000 walks of 150 schemas' texts two in three were of a state and a range that the same
constraint had walked before.
"""

from __future__ import annotations

import numpy as np
from numba.cpython.unsafe.numbers import trailing_zeros

from guided.kernels.data import views
from guided.kernels.data.asking import ask
from guided.kernels.data.layout import LISTED, N_LISTED, N_SEGMENT_TOKENS, N_SEGMENTS, NEED
from guided.kernels.data.requests import GROW_LISTED, GROW_SCRATCH, GROW_SEGMENTS
from guided.kernels.jit import inner
from guided.kernels.masking.rows import LINE, filled_words

LEAST_NODES, MOST_NODES = 32, 4096
"""Sizes of ranges that are kept: smaller ones are walked as fast, larger ones have too many tokens to list."""

MOST_TOKENS = 2048
"""Tokens up to which a segment is kept; more are better put into a row again."""

WALK = 1 << 62
"""In a segment's key, for a walk: the range and the state from which it was walked, not a continuation."""

PRICED = 1 << 61
"""In a segment's key: tokens with what is enough to end the text behind them, behind a price (all bits inverted) those
that have it."""

AFTER = 4
"""Numbers for what follows a walk: a state (0: a boundary) with all bits inverted, the range and what is owed."""

LEAST_WALKED = 16
"""Nodes of a range from which a walk over it is kept."""

POOL = 1 << 18
"""Tokens of all segments of a constraint together (1 MB): beyond it nothing more is kept."""


@inner
def slot_of(segments, key):
    """The slot of the hash that holds ``key``, or the empty one where it belongs."""
    size = segments.hash_slot.shape[0]
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    slot = np.int64((mixed ^ (mixed >> np.uint64(29))) % np.uint64(size))
    while segments.hash_slot[slot] >= 0 and segments.key[segments.hash_slot[slot]] != key:
        slot += 1
        if slot == size:
            slot = 0
    return slot


@inner
def push(table, depth, low, high, state, continuation, obligation):
    """Put a task on the stack; its new depth, -1: request."""
    scratch = views.scratch(table)
    if low >= high:
        return depth
    if 3 * depth + 3 > scratch.tasks.shape[0]:
        ask(table, GROW_SCRATCH)
        return -1
    scratch.tasks[3 * depth] = (np.int64(low) << 32) | high
    scratch.tasks[3 * depth + 1] = (np.int64(state) << 32) | continuation
    scratch.tasks[3 * depth + 2] = obligation
    return depth + 1


@inner
def first_visit(table, stamp, low, continuation, obligation):
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


@inner
def apply_segment(table, key, row, depth, continuation, stamp):
    """Put a kept segment's tokens into ``row`` and what follows it on the stack; its new depth, -1: request, -2: none
    is kept.
    """
    segments = views.segments(table)
    found = segments.hash_slot[slot_of(segments, key)]
    if found < 0:
        return np.int64(-2)
    counters = views.counters(table)
    counters[NEED] = max(counters[NEED], segments.need[found])
    at = np.int64(segments.first[found])
    stop = at + segments.count[found]
    while at < stop:
        token = segments.tokens[at]
        if token >= 0:
            row[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
            at += 1
            continue
        state = ~np.int64(token)
        low, high = np.int64(segments.tokens[at + 1]), np.int64(segments.tokens[at + 2])
        owed = np.int64(segments.tokens[at + 3])
        at += AFTER
        if state or first_visit(table, stamp, low, continuation, owed):
            depth = push(table, depth, low, high, state, continuation, owed)
            if depth < 0:
                return np.int64(-1)
    return np.int64(depth)


@inner
def note(table, at, what):
    """Write down a token, or one part of what follows, of the segment that comes to be; the place behind it.

    A place of -1 stays, and is what comes where there is no room.
    """
    if at >= 0:
        tokens = views.segments(table).tokens
        if at == tokens.shape[0] or at - views.counters(table)[N_SEGMENT_TOKENS] == MOST_TOKENS:
            return np.int64(-1)
        tokens[at] = what
        at += 1
    return at


@inner
def note_after(table, at, state, low, high, owed):
    """Write down what follows: a range that goes on from a state, or from a boundary; the place behind it, or -1."""
    at = note(table, note(table, at, ~state), low)
    return note(table, note(table, at, high), owed)


@inner
def keep_noted(table, key, at, need):
    """Keep what was written down up to a place, unless that is too much (-1); -1: request."""
    segments = views.segments(table)
    counters = views.counters(table)
    n = counters[N_SEGMENTS]
    first = counters[N_SEGMENT_TOKENS]
    if at < 0 and first + MOST_TOKENS <= segments.tokens.shape[0]:
        return 0
    if at < 0 or n == segments.key.shape[0]:
        ask(table, GROW_SEGMENTS)
        return -1
    segments.key[n] = key
    segments.first[n] = first
    segments.count[n] = at - first
    segments.need[n] = need
    segments.hash_slot[slot_of(segments, key)] = n
    counters[N_SEGMENTS] = n + 1
    counters[N_SEGMENT_TOKENS] = at
    return 0


@inner
def rehash_segments(table):
    """Enter all segments into the hash, which is empty."""
    segments = views.segments(table)
    for i in range(views.counters(table)[N_SEGMENTS]):
        segments.hash_slot[slot_of(segments, segments.key[i])] = i


@inner
def close_segment(table, key, own, row, keeps):
    """Move what a boundary allows of a trie range from ``own`` to ``row``, and keep it if small; -1: request.

    ``own`` is zero behind it.
    """
    counters = views.counters(table)
    keeps = keeps and counters[N_SEGMENT_TOKENS] <= POOL
    at = counters[N_SEGMENT_TOKENS] if keeps else np.int64(-1)
    for first in range(0, own.shape[0], LINE):
        if first + LINE <= own.shape[0]:
            filled = filled_words(own, first)
        else:
            filled = np.uint32((1 << (own.shape[0] - first)) - 1)
        while filled:
            word = first + trailing_zeros(filled)
            filled &= filled - np.uint32(1)
            bits = own[word]
            row[word] |= bits
            own[word] = 0
            while bits:
                at = note(table, at, (word << 5) + trailing_zeros(bits))
                bits &= bits - np.uint32(1)
    return keep_noted(table, key, at, counters[NEED]) if keeps else 0


@inner
def need_of(table, key):
    """So many tokens are enough after any token of a kept segment; -1 where none is kept."""
    segments = views.segments(table)
    found = segments.hash_slot[slot_of(segments, key)]
    return np.int64(segments.need[found]) if found >= 0 else np.int64(-1)


@inner
def list_token(table, token, price):
    """List a token with what is enough to end the text behind it; -1: request."""
    counters = views.counters(table)
    listed = views.scratch(table).listed
    n = counters[N_LISTED]
    if n == listed.shape[0]:
        ask(table, GROW_LISTED)
        return -1
    listed[n] = (np.int64(price) << 32) | token
    counters[N_LISTED] = n + 1
    return 0


@inner
def apply_priced(table, key, row, limit):
    """Put a kept segment's tokens that a limit allows into ``row``, or list them all; -1: request, -2: none is kept."""
    segments = views.segments(table)
    found = segments.hash_slot[slot_of(segments, key)]
    if found < 0:
        return np.int64(-2)
    counters = views.counters(table)
    counters[NEED] = max(counters[NEED], segments.need[found])
    price = np.int64(0)
    for at in range(segments.first[found], segments.first[found] + segments.count[found]):
        token = np.int64(segments.tokens[at])
        if token < 0:
            price = ~token
        elif limit == LISTED:
            if list_token(table, token, price) < 0:
                return np.int64(-1)
        elif price <= limit:
            row[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
    return np.int64(0)


@inner
def close_priced(table, key, first, row, limit, keeps):
    """Keep what was listed from ``first`` on, if it is not much, and move to ``row`` what a limit allows; -1: request.

    Where what is around is listed as well it stays where it is.
    """
    counters = views.counters(table)
    listed = views.scratch(table).listed
    keeps = keeps and counters[N_SEGMENT_TOKENS] <= POOL
    at = counters[N_SEGMENT_TOKENS] if keeps else np.int64(-1)
    most = last = np.int64(-1)
    for i in range(first, counters[N_LISTED]):
        price, token = listed[i] >> 32, listed[i] & 0xFFFFFFFF
        most = max(most, price)
        if price != last:
            at = note(table, at, ~price)
            last = price
        at = note(table, at, token)
        if price <= limit:
            row[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
    if limit != LISTED:
        counters[N_LISTED] = first
    counters[NEED] = max(most, 0)
    return keep_noted(table, key, at, counters[NEED]) if keeps else 0
