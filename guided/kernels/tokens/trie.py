"""The kernel that turns sorted byte strings into a flat preorder trie.

Sorting, the Python-facing arrays and what they mean are in `guided.vocab.trie`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from guided.kernels.jit import entry

__all__ = ["fill_trie"]


@entry("const bytes, const longs, ints, bytes, ints, ints, ints")
def fill_trie(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    order: NDArray[np.int32],
    byte: NDArray[np.uint8],
    end: NDArray[np.int32],
    token_offset: NDArray[np.int32],
    path: NDArray[np.int32],
) -> int:
    """Write the trie of ``data[offsets[t]:offsets[t + 1]]`` for ``t`` in ``order`` and return its number of nodes.

    ``order`` lists non-empty strings in ascending order.  ``byte``, ``end`` and ``token_offset`` are outputs and hold
    at least one entry more than the strings have bytes (``token_offset`` two more); ``path`` is scratch, one entry
    longer than the longest string.  Cost: one visit of each byte.
    """
    byte[0] = 0
    token_offset[0] = 0
    path[0] = 0
    depth = 0  # path[0..depth] are the nodes of the previous string
    nodes = 1
    previous = 0
    for position in range(order.size):
        start = offsets[order[position]]
        length = offsets[order[position] + 1] - start
        shared = 0
        limit = min(depth, length)
        while shared < limit and data[previous + shared] == data[start + shared]:
            shared += 1
        for closed in range(shared + 1, depth + 1):
            end[path[closed]] = nodes
        for level in range(shared, length):
            byte[nodes] = data[start + level]
            # Everything before `position` ends at an earlier node: preorder is the strings' own order.
            token_offset[nodes] = position
            path[level + 1] = nodes
            nodes += 1
        depth = length
        previous = start
    for closed in range(depth + 1):
        end[path[closed]] = nodes
    token_offset[nodes] = order.size
    return nodes
