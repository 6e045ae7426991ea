"""Tries over tokens: what is noted of their nodes, and one trie of what is below several of them."""

from __future__ import annotations

import numpy as np

from guided.kernels.data import views
from guided.kernels.data.asking import ask
from guided.kernels.data.local_arrays import local_ints
from guided.kernels.data.requests import GROW_FANS, GROW_NODES, GROW_TRIES
from guided.kernels.jit import entry, inner

FEW = 32
"""Nodes that are sorted by insertion; more are by counting, whose table of 256 costs as much as so many."""


@inner
def _holds_lines(tokens, node):
    """Is U+2028 or U+2029 below a node whose byte is their first?"""
    second = node + 1
    while second < tokens.end[node]:
        if tokens.byte[second] == 0x80:
            third = second + 1
            while third < tokens.end[second]:
                if tokens.byte[third] == 0xA8 or tokens.byte[third] == 0xA9:
                    return True
                third = tokens.end[third]
        second = tokens.end[second]
    return False


@entry("long, long, long, long, long, longs, byte_rows, bytes")
def index_trie(table, low, high, used, least, class_of_byte, phase_after, readable):
    """Note what bytes are at and below every node of a trie, and how many; give those of many children tables of them.

    A table for ``least`` children or more, one for the whole range among them; ``used`` rows of tables are taken.
    Returns how many are then; -1: request for room.  ``readable`` is working memory, a byte per node of the range:
    the phases of UTF-8 (``phase_after``) in which all that is below a node can be read.
    """
    tokens = views.tokens(table)
    text = class_of_byte[0x80]
    broken = text << 2
    for parent in range(high - 1, low - 2, -1):
        first = parent + 1
        stop = np.int64(tokens.end[parent]) if parent >= low else high
        count = 0
        classes = np.int64(0)
        phases = np.int64(0xFF)
        highest = np.int64(0)
        node = first
        while node < stop:
            count += 1
            byte = tokens.byte[node]
            classes |= tokens.classes[node] & ~broken
            highest = max(highest, np.int64(tokens.height[node]))
            if phases:
                here = np.int64(0)
                for phase in range(8):
                    after = phase_after[phase, byte]
                    if after < 8 and readable[node - low] >> after & 1:
                        here |= 1 << phase
                phases &= here
            node = np.int64(tokens.end[node])
        if parent >= low:
            readable[parent - low] = phases
            byte = tokens.byte[parent]
            classes |= class_of_byte[byte]
            if byte == 0xE2 and _holds_lines(tokens, parent):
                classes |= text << 1
            after = phase_after[0, byte]
            if classes & text and (after == 8 or not phases >> after & 1):
                classes |= broken
            tokens.classes[parent] = classes
            tokens.height[parent] = min(highest + 1, np.int64(255))
        if count < least:
            continue
        if used == tokens.children.shape[0]:
            ask(table, GROW_FANS)
            return -1
        tokens.children[used, :] = 0
        node = first
        while node < stop:
            tokens.children[used, tokens.byte[node]] = node
            node = np.int64(tokens.end[node])
        used += 1
        tokens.fan[first] = used
    return used


@inner
def _sorted_children(tokens, parents, low, high, nodes, first, spare, allowed, rule):
    """Write the children of ``parents[low:high]`` to ``nodes[first:]``, ordered by byte; their end, or -1: no room.

    Only those of bytes with a 1 in ``allowed[rule:]``.
    """
    n = first
    for i in range(low, high):
        child = parents[i] + 1
        last = tokens.end[parents[i]]
        while child < last:
            if n == nodes.shape[0]:
                return -1
            if allowed[rule + np.int64(tokens.byte[child])]:
                nodes[n] = child
                n += 1
            child = tokens.end[child]
    if high - low == 1:
        return n  # the children of one node are in order
    if n - first <= FEW:
        for i in range(first + 1, n):
            node = nodes[i]
            at = i
            while at > first and tokens.byte[nodes[at - 1]] > tokens.byte[node]:
                nodes[at] = nodes[at - 1]
                at -= 1
            nodes[at] = node
        return n
    place = local_ints(257)
    place[:] = 0
    for i in range(first, n):
        place[np.int64(tokens.byte[nodes[i]]) + 1] += 1
    for i in range(256):
        place[i + 1] += place[i]
    for i in range(first, n):
        byte = np.int64(tokens.byte[nodes[i]])
        spare[place[byte]] = nodes[i]
        place[byte] += 1
    for i in range(n - first):
        nodes[first + i] = spare[i]
    return n


@entry("long, ints, long, long, long, ints, ints, ints, int_rows, bytes")
def merge(table, starts, n_starts, nodes_used, tokens_used, nodes, spare, stamp, frames, allowed):
    """Append to the pool one trie that holds all children of the nodes ``starts[:n_starts]``, each token once a node.

    Children of bytes that have no 1 in ``allowed[:256]`` are left out; those of ``allowed[256:]`` all have.

    The new trie is the range from ``nodes_used``, where ``token_offset`` is ``tokens_used``; returns its end, or -1
    with a request: `GROW_TRIES` when the pool is full, `GROW_NODES` when ``nodes`` and ``spare`` are.  ``stamp``
    is ``int32[tokens]`` of -1, and so it must be again after a request.  Rows of ``frames`` are the place in ``nodes``
    that a level has come to, its end, and the node that it is below.  What only one of the nodes has below a byte is
    copied as it lies, so that the work is what tries share.
    """
    tokens = views.tokens(table)
    used = nodes_used
    held = tokens_used
    depth = 0
    frames[0, 0] = 0
    frames[0, 1] = _sorted_children(tokens, starts, 0, n_starts, nodes, 0, spare, allowed, 0)
    frames[0, 2] = -1
    if frames[0, 1] < 0:
        ask(table, GROW_NODES)
        return -1
    while depth >= 0:
        at = np.int64(frames[depth, 0])
        end = np.int64(frames[depth, 1])
        if at == end:
            if frames[depth, 2] >= 0:
                tokens.end[frames[depth, 2]] = used
            depth -= 1
            continue
        byte = tokens.byte[nodes[at]]
        last = np.int64(at + 1)
        while last < end and tokens.byte[nodes[last]] == byte:
            last += 1
        frames[depth, 0] = last
        size = 1
        n_ids = 0
        source = nodes[at]
        first_id = tokens.token_offset[source]
        if last == at + 1:
            size = tokens.end[source] - source
            n_ids = tokens.token_offset[source + size] - first_id
        else:
            for i in range(at, last):
                n_ids += tokens.token_offset[nodes[i] + 1] - tokens.token_offset[nodes[i]]
        if used + size >= tokens.byte.shape[0] or held + n_ids > tokens.token_ids.shape[0]:
            ask(table, GROW_TRIES)
            return -1
        if last == at + 1:
            for i in range(size):
                tokens.byte[used + i] = tokens.byte[source + i]
                tokens.end[used + i] = tokens.end[source + i] + (used - source)
                tokens.token_offset[used + i + 1] = tokens.token_offset[source + i + 1] + (held - first_id)
            for i in range(n_ids):
                tokens.token_ids[held + i] = tokens.token_ids[first_id + i]
            used += size
            held += n_ids
            continue
        node = used
        tokens.byte[node] = byte
        used += 1
        for i in range(at, last):
            for j in range(tokens.token_offset[nodes[i]], tokens.token_offset[nodes[i] + 1]):
                token = tokens.token_ids[j]
                if stamp[token] != node:
                    stamp[token] = node
                    tokens.token_ids[held] = token
                    held += 1
        tokens.token_offset[used] = held
        below = _sorted_children(tokens, nodes, at, last, nodes, end, spare, allowed, 256)
        if below < 0:
            ask(table, GROW_NODES)
            return -1
        if below == end:
            tokens.end[node] = used
        else:
            depth += 1
            frames[depth, 0] = end
            frames[depth, 1] = below
            frames[depth, 2] = node
    return used
