"""Distinct places among those in which the tokens of a walk end, by a hash table."""

from __future__ import annotations

import numpy as np

from guided.kernels.jit import entry

__all__ = ["number_places"]


@entry("longs, ints, ints, ints")
def number_places(at, numbers, examples, slots):
    """Number the distinct places of ``at``, in the order in which they come; how many they are, -1: no room.

    ``numbers[i]`` is that of entry ``i``, ``examples`` an entry of each.  ``slots`` is working memory, zeros, twice as
    many as ``examples`` and a power of two.
    """
    n = np.int64(0)
    last = np.int64(slots.shape[0] - 1)
    for i in range(at.shape[0]):
        if i and at[i] == at[i - 1]:
            numbers[i] = numbers[i - 1]
            continue
        mixed = np.uint64(at[i] ^ at[i] >> 32) * np.uint64(0x9E3779B97F4A7C15)
        slot = np.int64(mixed >> np.uint64(32)) & last
        while slots[slot]:
            if at[examples[slots[slot] - 1]] == at[i]:
                break
            slot = (slot + 1) & last
        if not slots[slot]:
            if n == examples.shape[0]:
                return np.int64(-1)
            examples[n] = i
            n += 1
            slots[slot] = n
        numbers[i] = slots[slot] - 1
    return n
