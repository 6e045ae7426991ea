"""What a boundary of one constraint allows of a trie range, kept: wherever a string may end, the same can follow.

All places inside one string leave it to the same continuation with the same remainders of tokens, so what comes of them
is worked out once per constraint and not once per place.
"""

from __future__ import annotations

import numpy as np

from guided.kernels import views
from guided.kernels.jit import inner
from guided.kernels.layout import GROW_SEGMENTS, N_SEGMENT_TOKENS, N_SEGMENTS, REQUEST

LEAST_NODES, MOST_NODES = 32, 4096
"""Sizes of ranges that are kept: smaller ones are walked as fast, larger ones have too many tokens to list."""

MOST_TOKENS = 2048
"""Tokens up to which a segment is kept; more are better put into a row again."""

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
def apply_segment(table, low, continuation, row):
    """Put a kept segment's tokens into ``row``; False when there is none."""
    segments = views.segments(table)
    found = segments.hash_slot[slot_of(segments, (np.int64(low) << 32) | continuation)]
    if found < 0:
        return False
    first = segments.first[found]
    for i in range(first, first + segments.count[found]):
        token = segments.tokens[i]
        row[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
    return True


@inner
def rehash_segments(table):
    """Enter all segments into the hash, which is empty."""
    segments = views.segments(table)
    for i in range(views.counters(table)[N_SEGMENTS]):
        segments.hash_slot[slot_of(segments, segments.key[i])] = i


@inner
def close_segment(table, low, high, continuation, own, row, keeps):
    """Move what a boundary allows of a trie range from ``own`` to ``row``, and keep it if small; -1: request.

    Token by token of the range, which can hold no others: rows have many more words.  ``own`` is zero behind it.
    """
    segments = views.segments(table)
    counters = views.counters(table)
    tokens = views.tokens(table)
    used = counters[N_SEGMENT_TOKENS]
    n = counters[N_SEGMENTS]
    if used > POOL:
        keeps = False
    if keeps and (n == segments.key.shape[0] or used + MOST_TOKENS > segments.tokens.shape[0]):
        counters[REQUEST] = GROW_SEGMENTS
        return -1
    count = np.int64(0)
    for i in range(tokens.token_offset[low], tokens.token_offset[high]):
        token = tokens.token_ids[i]
        bit = np.uint32(1) << np.uint32(token & 31)
        if own[token >> 5] & bit:
            own[token >> 5] ^= bit
            row[token >> 5] |= bit
            if keeps and count < MOST_TOKENS:
                segments.tokens[used + count] = token
            count += 1
    if keeps and count <= MOST_TOKENS:
        key = (np.int64(low) << 32) | continuation
        segments.key[n] = key
        segments.first[n] = used
        segments.count[n] = count
        segments.hash_slot[slot_of(segments, key)] = n
        counters[N_SEGMENTS] = n + 1
        counters[N_SEGMENT_TOKENS] = used + count
    return 0
