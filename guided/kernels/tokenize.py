"""Spelling a text with the fewest tokens of a vocabulary."""

from __future__ import annotations

import numpy as np

from guided.kernels.jit import entry


@entry
def fewest_tokens(byte, end, token_offset, token_ids, text):
    """Token ids whose bytes join to ``text``, as few as can be (longer first among equals); empty when there are none.

    Dynamic programming from the end of the text over all tokens that start at each position: O(text x longest token).
    """
    n = text.shape[0]
    best = np.full(n + 1, 1 << 30, np.int32)
    choice = np.zeros(n + 1, np.int32)
    length = np.zeros(n + 1, np.int32)
    best[n] = 0
    for start in range(n - 1, -1, -1):
        node = 1
        stop = end[0]
        at = start
        while at < n and node < stop:
            while node < stop and byte[node] < text[at]:
                node = end[node]
            if node >= stop or byte[node] != text[at]:
                break
            at += 1
            if token_offset[node + 1] > token_offset[node] and best[at] + 1 <= best[start]:
                best[start] = best[at] + 1
                choice[start] = token_ids[token_offset[node]]
                length[start] = at - start
            stop = end[node]
            node += 1
    if best[0] >= 1 << 30:
        return np.zeros(0, np.int32)
    out = np.zeros(best[0], np.int32)
    at = 0
    for i in range(best[0]):
        out[i] = choice[at]
        at += length[at]
    return out
