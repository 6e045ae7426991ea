"""Parts of masks that are kept for a constraint: what boundaries allow of trie ranges, and walks of ranges.

All places inside one string lead to the same continuation with the same remainders of tokens, so that part of the mask
is computed once per constraint and not once per place.  And a name of an object is walked over the same tokens wherever
it may still come: of 170,000 walks of 150 schemas' texts two in three were of a state and a range that the same
constraint had walked before.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data import views
from guided.kernels.data.asking import ask
from guided.kernels.data.bits import trailing_zeros
from guided.kernels.data.layout import FAR, LISTED, N_LISTED, N_SEGMENT_TOKENS, N_SEGMENTS, NEED, NOTED
from guided.kernels.data.requests import GROW_LISTED, GROW_SCRATCH, GROW_SEGMENTS
from guided.kernels.jit import inner
from guided.kernels.masking.rows import LINE, add_token, filled_words

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
            add_token(row, token)
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
def begin_notes(table, is_wanted):
    """Begin to write down what is kept of a segment, if it is wanted and the constraint has room for more."""
    counters = views.counters(table)
    n = counters[N_SEGMENT_TOKENS]
    counters[NOTED] = n if is_wanted and n <= POOL else -1


@inner
def note(table, what):
    """Write down a token, or one part of what follows, of the segment that comes to be.

    The counter `NOTED` is the place behind it, -1 where nothing is written down, or there was no room.
    """
    counters = views.counters(table)
    at = counters[NOTED]
    if at >= 0:
        tokens = views.segments(table).tokens
        if at == tokens.shape[0] or at - counters[N_SEGMENT_TOKENS] == MOST_TOKENS:
            counters[NOTED] = -1
        else:
            tokens[at] = what
            counters[NOTED] = at + 1


@inner
def note_tokens(table, begin, stop):
    """Write down the tokens of the nodes from ``begin`` to ``stop``."""
    if views.counters(table)[NOTED] < 0:
        return
    tokens = views.tokens(table)
    for i in range(tokens.token_offset[begin], tokens.token_offset[stop]):
        note(table, tokens.token_ids[i])


@inner
def note_after(table, state, low, high, owed):
    """Write down what follows: a range that goes on from a state, or from a boundary (0)."""
    note(table, ~state)
    note(table, low)
    note(table, high)
    note(table, owed)


@inner
def keep_noted(table, key, need):
    """Keep what was written down, unless that is too much; -1: request."""
    segments = views.segments(table)
    counters = views.counters(table)
    n = counters[N_SEGMENTS]
    first = counters[N_SEGMENT_TOKENS]
    at = counters[NOTED]
    if first > POOL or (at < 0 and first + MOST_TOKENS <= segments.tokens.shape[0]):
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
    begin_notes(table, keeps)
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
                note(table, (word << 5) + trailing_zeros(bits))
                bits &= bits - np.uint32(1)
    return keep_noted(table, key, views.counters(table)[NEED]) if keeps else 0


@inner
def need_of(table, key):
    """So many tokens are enough after any token of a kept segment; -1 where none is kept."""
    segments = views.segments(table)
    found = segments.hash_slot[slot_of(segments, key)]
    return np.int64(segments.need[found]) if found >= 0 else np.int64(-1)


@inner
def list_token(table, token, price):
    """List a token with what is enough to end the text behind it; where there is no room that is asked for."""
    counters = views.counters(table)
    listed = views.scratch(table).listed
    n = counters[N_LISTED]
    if n == listed.shape[0]:
        ask(table, GROW_LISTED)
        return
    listed[n] = (min(price, np.int64(FAR)) << 32) | token
    counters[N_LISTED] = n + 1


@inner
def list_tokens(table, begin, stop, price):
    """List the tokens of the nodes from ``begin`` to ``stop``, as `list_token`."""
    tokens = views.tokens(table)
    for i in range(tokens.token_offset[begin], tokens.token_offset[stop]):
        list_token(table, tokens.token_ids[i], price)


@inner
def apply_priced(table, key, row, limit):
    """Put a kept segment's tokens that a limit allows into ``row``, or list them all; -2: none is kept."""
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
            list_token(table, token, price)
        elif price <= limit:
            add_token(row, token)
    return np.int64(0)


@inner
def close_priced(table, key, first, row, limit, keeps):
    """Keep what was listed from ``first`` on, if it is not much, and move to ``row`` what a limit allows; -1: request.

    Where what is around is listed as well it stays where it is.
    """
    counters = views.counters(table)
    listed = views.scratch(table).listed
    begin_notes(table, keeps)
    most = last = np.int64(-1)
    for i in range(first, counters[N_LISTED]):
        price, token = listed[i] >> 32, listed[i] & 0xFFFFFFFF
        most = max(most, price)
        if price != last:
            note(table, ~price)
            last = price
        note(table, token)
        if price <= limit:
            add_token(row, token)
    if limit != LISTED:
        counters[N_LISTED] = first
    counters[NEED] = max(most, 0)
    return keep_noted(table, key, counters[NEED]) if keeps else 0
