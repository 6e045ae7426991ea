"""Spelling a text with the fewest tokens of a vocabulary."""

from __future__ import annotations

from guided.kernels.jit import entry


@entry("const bytes, const ints, const ints, const ints, const bytes, int_rows")
def fewest_tokens(byte, end, token_offset, token_ids, text, room):
    """Find token ids whose bytes join to ``text``, as few as can be (longer first among equals).

    They are written to ``room[0]``, of ``int32[3, text + 1]``; how many there are, -1: none do.
    Dynamic programming from the end of the text over all tokens that start at each position: O(text x longest token).
    """
    n = text.shape[0]
    best, choice, length = room[0], room[1], room[2]
    for start in range(n):
        best[start] = 1 << 30
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
    n_tokens = best[0]
    if n_tokens >= 1 << 30:
        return -1
    at = 0
    for i in range(n_tokens):
        best[i] = choice[at]
        at += length[at]
    return n_tokens
