"""Kernels of the FM-index: ranks in a wavelet matrix, steps of a backward search, distinct symbols, positions.

A wavelet matrix holds a sequence of symbols as one bit vector for each bit of a symbol, highest bit first; behind each
level the symbols with a 0 there come before those with a 1, in their old order.  ``words[level]`` packs 64 bits a word,
``before[level, w]`` counts the ones before word ``w``, ``zeros[level]`` all zeros.  What the arrays are made from and
what intervals mean is in `guided.monitor.fm_index`.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data.local_arrays import local_long_rows
from guided.kernels.jit import entry, inner

__all__ = ["distinct", "locate", "narrow", "walk_trie"]

_LEVELS = 66
"""Two more than a symbol has bits at the most."""


@inner
def _ones(words, before, level, i):
    """Ones among the first ``i`` bits of a level."""
    word = i >> 6
    x = words[level, word] & ((np.uint64(1) << np.uint64(i & 63)) - np.uint64(1))
    x = x - ((x >> np.uint64(1)) & np.uint64(0x5555555555555555))
    x = (x & np.uint64(0x3333333333333333)) + ((x >> np.uint64(2)) & np.uint64(0x3333333333333333))
    x = (x + (x >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return before[level, word] + np.int64((x * np.uint64(0x0101010101010101)) >> np.uint64(56))


@entry("long_word_rows, int_rows, longs, longs, long, long, long")
def narrow(words, before, zeros, shift, low, high, symbol):
    """One step of the backward search: the rows whose suffix begins with ``symbol`` and goes on as ``[low, high)``.

    ``shift[symbol]`` takes a place behind the last level to a row.  Cost: two ranks a level.
    """
    levels = words.shape[0]
    for level in range(levels):
        if (symbol >> (levels - 1 - level)) & 1:
            low = zeros[level] + _ones(words, before, level, low)
            high = zeros[level] + _ones(words, before, level, high)
        else:
            low -= _ones(words, before, level, low)
            high -= _ones(words, before, level, high)
        if low >= high:
            return 0, 0
    return low + shift[symbol], high + shift[symbol]


@entry("long_word_rows, int_rows, longs, long, long, long, longs, longs")
def distinct(words, before, zeros, low, high, first, symbols, counts):
    """The different symbols from ``first`` on in places ``[low, high)``, ascending, and how often each occurs.

    Written to ``symbols`` and ``counts``, which have room for all; returns how many.  Cost: two ranks for each level
    and symbol found.
    """
    levels = words.shape[0]
    stack = local_long_rows(_LEVELS, 4)
    stack[0, 0], stack[0, 1], stack[0, 2], stack[0, 3] = 0, low, high, 0
    depth, found = 1, 0
    while depth:
        depth -= 1
        level, left, right, symbol = stack[depth, 0], stack[depth, 1], stack[depth, 2], stack[depth, 3]
        if level == levels:
            if symbol >= first:
                symbols[found] = symbol
                counts[found] = right - left
                found += 1
            continue
        ones_left, ones_right = _ones(words, before, level, left), _ones(words, before, level, right)
        if ones_right > ones_left:
            stack[depth, 0], stack[depth, 3] = level + 1, symbol << 1 | 1
            stack[depth, 1], stack[depth, 2] = zeros[level] + ones_left, zeros[level] + ones_right
            depth += 1
        if right - ones_right > left - ones_left:
            stack[depth, 0], stack[depth, 3] = level + 1, symbol << 1
            stack[depth, 1], stack[depth, 2] = left - ones_left, right - ones_right
            depth += 1
    return found


@entry("long_word_rows, int_rows, longs, longs, long_word_rows, int_rows, ints, longs, longs")
def locate(words, before, zeros, shift, marked, marked_before, samples, rows, found):
    """Write the text position of each of ``rows`` to ``found``.

    ``marked`` is one more level of bits: the rows whose position is in ``samples``.  Walks back from each row to the
    next marked one.
    """
    levels = words.shape[0]
    for k in range(rows.shape[0]):
        row = rows[k]
        steps = 0
        while not (marked[0, row >> 6] >> np.uint64(row & 63)) & np.uint64(1):
            symbol = 0
            place = row
            for level in range(levels):
                ones = _ones(words, before, level, place)
                if (words[level, place >> 6] >> np.uint64(place & 63)) & np.uint64(1):
                    symbol = symbol << 1 | 1
                    place = zeros[level] + ones
                else:
                    symbol <<= 1
                    place -= ones
            row = place + shift[symbol]
            steps += 1
        found[k] = samples[_ones(marked, marked_before, 0, row)] + steps


@entry(
    "long_word_rows, int_rows, longs, longs, const bytes, const ints, const ints, const ints, longs, long, "
    "long, flags, long_rows, words",
)
def walk_trie(words, before, zeros, shift, byte, end, token_offset, token_ids, symbol_of, low, high, skip, path, row):
    """Set the bits of all tokens whose bytes narrow ``[low, high)`` to something; the trie is `guided.vocab.trie`'s.

    ``symbol_of[b]`` is the symbol of a byte, -1 where it does not occur; bytes with ``skip[b]`` may not come first;
    ``path [3, two more than the trie is deep]`` is working memory.
    Cost: one step of the search for each node that lives, and for each child of those.
    """
    n = byte.shape[0]
    lows, highs, ends = path[0], path[1], path[2]
    lows[0], highs[0], ends[0] = low, high, n
    depth = 0
    node = 1
    while node < n:
        while ends[depth] <= node:
            depth -= 1
        symbol = symbol_of[byte[node]]
        if symbol < 0 or (depth == 0 and skip[byte[node]]):
            node = end[node]
            continue
        left, right = narrow(words, before, zeros, shift, lows[depth], highs[depth], symbol)
        if left >= right:
            node = end[node]
            continue
        for at in range(token_offset[node], token_offset[node + 1]):
            row[token_ids[at] >> 5] |= np.uint32(1) << np.uint32(token_ids[at] & 31)
        depth += 1
        lows[depth], highs[depth], ends[depth] = left, right, end[node]
        node += 1
