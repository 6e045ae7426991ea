"""Byte-pair encoding over flat arrays, which tokens it lets stand side by side, and a walk of a trie by an automaton.

Terms: the derivation of a token is the sequence of merges that makes it from its bytes.  ``late[t]`` is the largest
rank in it, -1 for a byte: merges are taken in the order of rank wherever they are possible, so when a token is part of
a longer text, it stands complete before any merge of a rank above ``late`` is taken.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.jit import entry, inner

_NONE = 1 << 30
"""A rank that no merge has."""


@entry("ints, ints, ints")
def fill_merges(left, right, slots):
    """Hash the merges ``(left[r], right[r])`` by pair into ``slots`` (-1: free); the first of equal pairs counts."""
    size = np.uint64(slots.shape[0])
    for rank in range(left.shape[0]):
        slot = _slot(left[rank], right[rank], size)
        while slots[slot] >= 0 and (left[slots[slot]] != left[rank] or right[slots[slot]] != right[rank]):
            slot = 0 if slot + 1 == slots.shape[0] else slot + 1
        if slots[slot] < 0:
            slots[slot] = rank


@inner
def _slot(a, b, size):
    mixed = np.uint64(a) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(b) * np.uint64(0xC2B2AE3D27D4EB4F)
    return np.int64((mixed ^ (mixed >> np.uint64(31))) % size)


@inner
def _rank(merges, a, b):
    """The rank of merging ``a`` and ``b``, `_NONE` when they never merge."""
    left, right, _, slots = merges
    slot = _slot(a, b, np.uint64(slots.shape[0]))
    while slots[slot] >= 0:
        rank = slots[slot]
        if left[rank] == a and right[rank] == b:
            return rank
        slot = 0 if slot + 1 == slots.shape[0] else slot + 1
    return np.int32(_NONE)


@entry("(ints, ints, ints, ints), ints, ints, long")
def merge_all(merges, symbols, ranks, n):
    """Merge ``symbols[:n]`` in place, lowest rank first, leftmost among equals; (how many stay, largest rank, last)."""
    made = merges[2]
    late = np.int32(-1)
    last = np.int32(-1)
    for i in range(n - 1):
        ranks[i] = _rank(merges, symbols[i], symbols[i + 1])
    while n > 1:
        best = 0
        for i in range(1, n - 1):
            if ranks[i] < ranks[best]:
                best = i
        last_rank = ranks[best]
        if last_rank == _NONE:
            break
        last = last_rank
        late = max(late, last)
        symbols[best] = made[last]
        for i in range(best + 1, n - 1):
            symbols[i] = symbols[i + 1]
            ranks[i] = ranks[i + 1]
        n -= 1
        if best > 0:
            ranks[best - 1] = _rank(merges, symbols[best - 1], symbols[best])
        if best < n - 1:
            ranks[best] = _rank(merges, symbols[best], symbols[best + 1])
    return n, late, last


@entry("(ints, ints, ints, ints), const bytes, const longs, ints, ints, ints, int_rows, ints")
def derive(merges, data, offsets, byte_ids, symbols, ranks, children, late):
    """Derive every token: ``children[t]`` its last merge's parts and ``late[t]``, -2 where merging does not give it."""
    left, right = merges[0], merges[1]
    for token in range(offsets.shape[0] - 1):
        n = offsets[token + 1] - offsets[token]
        children[token, 0] = children[token, 1] = -1
        late[token] = -2
        for i in range(n):
            symbols[i] = byte_ids[data[offsets[token] + i]]
        if n == 0:
            continue
        n, latest, last = merge_all(merges, symbols, ranks, n)
        if n == 1 and symbols[0] == token:
            late[token] = latest
            if last >= 0:
                children[token, 0], children[token, 1] = left[last], right[last]


@entry("(ints, ints, ints, ints), const bytes, const longs, ints, ints, ints, long, long")
def stays(merges, data, offsets, byte_ids, symbols, ranks, a, b):
    """Does encoding the bytes of ``a`` and ``b`` at once give just these two tokens?"""
    n = np.int64(0)
    for token in (np.int64(a), np.int64(b)):
        for i in range(offsets[token], offsets[token + 1]):
            symbols[n] = byte_ids[data[i]]
            n += 1
    n, _, _ = merge_all(merges, symbols, ranks, n)
    return n == 2 and symbols[0] == a and symbols[1] == b


@entry("(ints, ints, ints, ints), const bytes, const longs, ints, ints, ints, longs, longs, flags")
def any_stays(merges, data, offsets, byte_ids, symbols, ranks, firsts, seconds, found):
    """``found[i]``: does some token of ``seconds`` stay apart from ``firsts[i]``?"""
    for i in range(firsts.shape[0]):
        for second in seconds:
            if stays(merges, data, offsets, byte_ids, symbols, ranks, firsts[i], second):
                found[i] = True
                break


@entry("(ints, ints, ints, ints), const bytes, const longs, ints, ints, ints, long, longs")
def first_apart(merges, data, offsets, byte_ids, symbols, ranks, first, seconds):
    """The first token of ``seconds`` that stays apart from ``first``, -1 when none does."""
    for second in seconds:
        if stays(merges, data, offsets, byte_ids, symbols, ranks, first, second):
            return second
    return -1


@entry(
    "(ints, ints, ints, ints), const bytes, const longs, ints, ints, ints, int_rows, ints, ints, int_rows, "
    "ints, ints, ints, ints, ints, ints, long, ints, words",
)
def successors(
    merges, data, offsets, byte_ids, symbols, ranks, children, late, partner_first, partners, order, place, stop,
    child_first, child_late, child_stop, first, covered, row,
):  # fmt: skip
    """Fill ``row`` with the tokens that stay apart from ``first``.

    A merge of a part ``x`` at the end of ``first`` with a part ``y`` at the beginning of ``b`` happens when its rank
    comes while both stand there: after ``late`` of both, before ``late`` of the tokens that swallow them.  All ``b``
    that begin with ``y`` and swallow it late enough are neighbours in ``order``: the tree of left parts in preorder,
    children by ``late`` descending.  So each possible merge rules out one range.  Where beginning and end fall on the
    same rank (lists of merges that do not make parts first), the pair is tried instead.
    """
    covered[:] = 0
    n = order.shape[0]
    x = first
    swallowed = np.int32(_NONE)
    while x >= 0:
        for i in range(partner_first[x], partner_first[x + 1]):
            y = partners[i, 0]
            rank = partners[i, 1]
            both = max(late[x], late[y])
            if both > swallowed or rank > swallowed:
                continue
            certain = both < swallowed and rank < swallowed
            undecided = both == swallowed and rank <= both
            if not (certain or undecided):
                continue
            # Ranges of y's children, by late: [0, upto) swallow late enough, [upto, same) at the very rank `both`.
            low, high = child_first[y], child_first[y + 1]
            upto = low
            least = max(both + 1, rank)
            while low < high:
                middle = (low + high) >> 1
                if child_late[middle] >= least:
                    low = middle + 1
                else:
                    high = middle
            upto = low
            end = child_stop[upto - 1] if upto > child_first[y] else place[y] + 1
            mark = 1 if certain else 1 << 20
            covered[place[y]] += mark
            covered[end] -= mark
            if rank <= both:
                same = upto
                while same < child_first[y + 1] and child_late[same] == both:
                    same += 1
                if same > upto:
                    covered[end] += 1 << 20
                    covered[child_stop[same - 1]] -= 1 << 20
        swallowed = late[x]
        x = children[x, 1]
    row[:] = 0
    depth = 0
    for i in range(n):
        depth += covered[i]
        if depth & 0xFFFFF:
            continue
        token = order[i]
        if depth and not stays(merges, data, offsets, byte_ids, symbols, ranks, first, token):
            continue
        row[token >> 5] |= np.uint32(1) << np.uint32(token & 31)


@entry("const bytes, const ints, const ints, const ints, int_rows, ints, longs, longs, longs")
def walk(byte, end, token_offset, token_ids, table, after, nodes, states, cursor):
    """Where each token of a trie leads from a state of a byte automaton; resumable.

    ``table[state, byte]``: 0 dead, -1 not known.  ``cursor`` is (node, level, wanted state, wanted byte); begin with
    node 1, level 0, ``states[0]`` the state and ``nodes[0]`` the number of nodes.  Returns False when an entry is
    wanted: fill it and call again.  ``after[t]`` is set for every token that lives.
    """
    node = cursor[0]
    level = cursor[1]
    while True:
        while node >= nodes[level]:
            if level == 0:
                return True
            level -= 1
        state = states[level]
        then = table[state, byte[node]]
        if then < 0:
            cursor[0], cursor[1], cursor[2], cursor[3] = node, level, state, byte[node]
            return False
        if then == 0:
            node = end[node]
            continue
        for i in range(token_offset[node], token_offset[node + 1]):
            after[token_ids[i]] = then
        if end[node] > node + 1:
            level += 1
            states[level] = then
            nodes[level] = end[node]
        node += 1


@entry("longs, long, long")
def pair_slot(keys, first, second):
    """Where a pair stands in a hash table of pairs (``keys``: -1 free), or the free slot that it would get."""
    slot = _slot(first, second, np.uint64(keys.shape[0]))
    key = np.int64(first) << 32 | np.int64(second)
    while keys[slot] >= 0 and keys[slot] != key:
        slot = 0 if slot + 1 == keys.shape[0] else slot + 1
    return slot


@entry("longs, bytes, ints, longs, bytes, ints")
def rehash_pairs(keys, verdicts, costs, new_keys, new_verdicts, new_costs):
    """Move all pairs and what is known of them to larger tables."""
    for i in range(keys.shape[0]):
        if keys[i] >= 0:
            slot = pair_slot(new_keys, keys[i] >> 32, keys[i] & 0xFFFFFFFF)
            new_keys[slot], new_verdicts[slot], new_costs[slot] = keys[i], verdicts[i], costs[i]


@entry("longs, ints, ints, words, longs, bytes, long, words, ints, longs")
def sift(tokens, inner, outer, starts, keys, verdicts, room, row, undecided, asked):
    """Sort the tokens alive in two automata by the verdict on the pair of states that they lead to.

    ``tokens`` are those alive in the inner one: few, where it reads on within a character.

    Verdicts: 1 alive (a bit of ``row``), 3 ``undecided``, 0 unknown: the pair is added to the hash table and its slot
    to ``asked``.  Only tokens of the row ``starts``.  Returns (number undecided, number asked); stops early when
    ``room`` pairs were added.
    """
    row[:] = 0
    n_undecided = 0
    n_asked = 0
    for token in tokens:
        i, o = inner[token], outer[token]
        if o == 0 or not (starts[token >> 5] >> np.uint32(token & 31)) & np.uint32(1):
            continue
        slot = pair_slot(keys, i, o)
        if keys[slot] < 0:
            if n_asked == room:
                break
            keys[slot] = np.int64(i) << 32 | np.int64(o)
            verdicts[slot] = 0
            asked[n_asked] = slot
            n_asked += 1
        elif verdicts[slot] == 1:
            row[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
        elif verdicts[slot] == 3:
            undecided[n_undecided] = token
            n_undecided += 1
    return n_undecided, n_asked
