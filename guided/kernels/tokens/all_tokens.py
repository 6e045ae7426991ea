"""The states after all tokens, in one walk over the vocabulary's trie: what tokens share is read once.

A mask says which tokens live; dynamic programs over many positions want to know where each of them leads, so that those
which lead to the same state can be taken together.  `guided.kernels.entry.advance_each` reads each token from its first
byte, 70 ns each; here a node costs 5 ns once the steps from its states are known.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data import views
from guided.kernels.data.layout import FUEL
from guided.kernels.jit import entry, inner
from guided.kernels.parsing import threads

__all__ = ["advance_all"]

_BYTES = 8
"""Bits of a byte below a state, in the key of a step."""


@inner
def _step(table, lexed, state, byte):
    """The state after one byte, 0 when dead; -1: request."""
    n = threads.step(table, lexed, threads.load(table, state), byte)
    return np.int64(n) if n <= 0 else np.int64(threads.intern_state(table, n))


@entry("long, flag, long, long, longs, longs, longs, longs, longs, longs")
def advance_all(table, lexed, root, state, keys, steps, path, ends, living, behind):
    """Write each token that lives to ``living``, in the order of the trie, and the state after it to ``behind``.

    Returns how many; -1: request.

    ``keys`` and ``steps`` remember steps by a byte from call to call: slot ``h`` has ``state << 8 | byte`` plus one and
    the state behind it; a later one takes the place of an earlier.  Their size is a power of two.  ``path`` and
    ``ends``, two longer than the longest token, are working memory.  What is below a byte that asks for something is
    left out, so that one round asks for all that it comes to.
    """
    tokens = views.tokens(table)
    requests = views.requests(table)
    counters = views.counters(table)
    last = np.uint64(keys.shape[0] - 1)
    path[0], ends[0] = state, root
    depth = np.int64(0)
    n = np.int64(0)
    node = np.int64(1)
    while node < root:
        while ends[depth] <= node:
            depth -= 1
        key = (path[depth] << _BYTES | np.int64(tokens.byte[node])) + 1
        mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
        slot = np.int64((mixed >> np.uint64(32)) & last)
        if keys[slot] == key:
            after = steps[slot]
        else:
            after = _step(table, lexed, path[depth], tokens.byte[node])
            if after < 0:
                if counters[FUEL] < 0 or requests.count[0] == requests.entries.shape[0]:
                    return np.int64(-1)
            else:
                keys[slot] = key
                steps[slot] = after
        if after <= 0:
            node = np.int64(tokens.end[node])
            continue
        for at in range(tokens.token_offset[node], tokens.token_offset[node + 1]):
            living[n] = tokens.token_ids[at]
            behind[n] = after
            n += 1
        depth += 1
        path[depth], ends[depth] = after, tokens.end[node]
        node += 1
    return np.int64(-1) if requests.count[0] else n
