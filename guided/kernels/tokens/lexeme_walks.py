"""Walks down a vocabulary's trie along lexemes: by a list of sorted words, and by a small automaton over bytes.

Both begin at nodes of the trie, ``starts``, put the tokens on their way into a mask row, and return where a lexeme is
over before the token is: the nodes from which the rest of such tokens is read.  Tries are those of
`guided.vocab.trie`: preorder, ``end[node]`` behind a node's last descendant, ``byte[node]`` on the edge to it.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data.local_arrays import local_longs
from guided.kernels.jit import entry, inner

__all__ = ["MOST_BYTES", "allow_run", "allow_words"]

MOST_BYTES = 1024
"""Bytes of a token's lexeme that are looked at; tokens that go on behind are left out.  The longest tokens of common
vocabularies have 128 bytes, and no name or string of these languages is longer than 255."""


@inner
def _put(row, token_offset, token_ids, node):
    """Put the tokens that a node spells into a row."""
    for at in range(token_offset[node], token_offset[node + 1]):
        token = token_ids[at]
        row[token >> 5] |= np.uint32(1 << (token & 31))


@inner
def _behind(data, offsets, low, high, depth, byte):
    """The first of words ``[low, high)``, equal up to ``depth``, that has there ``byte`` or a later one."""
    while low < high:
        middle = (low + high) >> 1
        if data[offsets[middle] + depth] < byte:
            low = middle + 1
        else:
            high = middle
    return low


@entry(
    "const bytes, const ints, const ints, const ints, longs, const bytes, longs, long, long, long, flag, "
    "words, long_rows",
)
def allow_words(byte, end, token_offset, token_ids, starts, data, offsets, low, high, depth, folds, row, found):
    """Allow the tokens that go on, from some nodes, with a part of words ``[low, high)`` behind their ``depth`` bytes.

    Words are sorted, each once: word ``i`` is ``data[offsets[i]:offsets[i + 1]]``.  With ``folds`` an upper-case letter
    of a token stands for the lower-case one.  Where a whole word ends at a node that has children, its number and the
    node are written to ``found`` (``int64[most, 2]``); returns how many there were, of which only ``most`` are written.
    """
    child = local_longs(MOST_BYTES)
    last = local_longs(MOST_BYTES)
    first_word = local_longs(MOST_BYTES)
    last_word = local_longs(MOST_BYTES)
    count = 0
    for begin in range(len(starts)):
        node = starts[begin]
        level = 0
        child[0] = node + 1
        last[0] = end[node]
        first_word[0] = low
        last_word[0] = high
        if low < high and offsets[low + 1] - offsets[low] == depth:
            # The text before is a word, whatever comes: the caller knows.
            first_word[0] = low + 1
        while level >= 0:
            at = child[level]
            if at >= last[level]:
                level -= 1
                continue
            child[level] = end[at]
            letter = byte[at]
            if folds and 65 <= letter <= 90:
                letter += 32
            from_word = _behind(data, offsets, first_word[level], last_word[level], depth + level, letter)
            to_word = _behind(data, offsets, from_word, last_word[level], depth + level, letter + 1)
            if from_word >= to_word:
                continue
            _put(row, token_offset, token_ids, at)
            if offsets[from_word + 1] - offsets[from_word] == depth + level + 1:
                if end[at] > at + 1:
                    if count < len(found):
                        found[count, 0] = from_word
                        found[count, 1] = at
                    count += 1
                from_word += 1
            if from_word < to_word and end[at] > at + 1 and level + 1 < MOST_BYTES:
                level += 1
                child[level] = at + 1
                last[level] = end[at]
                first_word[level] = from_word
                last_word[level] = to_word
    return count


@entry("const bytes, const ints, const ints, const ints, longs, short_rows, bytes, long, words, long_rows")
def allow_run(byte, end, token_offset, token_ids, starts, moves, kept, start_state, row, found):
    """Allow the tokens that go on, from some nodes, with a run of bytes that a small automaton reads.

    ``moves`` is ``int16[n, 256]``, -1 where no run goes on; ``kept[state]`` has bit 1 where a token may end, bit 2
    where the run may be over before another byte.  A node of the second kind with a child at which the run is over is
    written to ``found`` (``int64[most, 2]``) with the run's bytes before it; returns how many there were, of which only
    ``most`` are written.
    """
    child = local_longs(MOST_BYTES)
    last = local_longs(MOST_BYTES)
    state = local_longs(MOST_BYTES)
    noted = local_longs(MOST_BYTES)
    path = local_longs(MOST_BYTES)
    count = 0
    for begin in range(len(starts)):
        node = starts[begin]
        level = 0
        child[0] = node + 1
        last[0] = end[node]
        state[0] = start_state
        # What a lexeme in progress is before any byte of the run is the caller's to know.
        noted[0] = 1
        while level >= 0:
            at = child[level]
            if at >= last[level]:
                level -= 1
                continue
            child[level] = end[at]
            after = moves[state[level], byte[at]]
            if after < 0:
                if noted[level] == 0 and kept[state[level]] & 2:
                    noted[level] = 1
                    if count < len(found):
                        found[count, 0] = path[level]
                        found[count, 1] = level
                    count += 1
                continue
            if kept[after] & 1:
                _put(row, token_offset, token_ids, at)
            if end[at] > at + 1 and level + 1 < MOST_BYTES:
                level += 1
                path[level] = at
                child[level] = at + 1
                last[level] = end[at]
                state[level] = after
                noted[level] = 0
    return count
