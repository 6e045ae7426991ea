"""Mask rows as contents: a fingerprint by which equal ones are found, and the comparison."""

from __future__ import annotations

import numpy as np

from guided.kernels.jit import entry

__all__ = ["fingerprint", "same"]


@entry
def fingerprint(row, weights):
    """The sum of the words, each by its weight (``uint32``), in 61 bits."""
    found = np.uint64(0)
    for i in range(row.shape[0]):
        found += np.uint64(row[i]) * np.uint64(weights[i])
    return np.int64(found >> np.uint64(3))


@entry
def same(row, other):
    """Do two rows of equal length hold the same words?  Without a way out in between, which would be slower."""
    differing = np.uint32(0)
    for i in range(row.shape[0]):
        differing |= row[i] ^ other[i]
    return differing == 0
