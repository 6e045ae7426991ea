"""Memory that is taken as it is written to, a small page at a time."""

from __future__ import annotations

import mmap
import sys

import numpy as np
from numpy.typing import NDArray

__all__ = ["gradual_zeros"]

HUGE = 1 << 21
"""Bytes of a huge page.  NumPy asks for such pages for arrays of 4 MB and more, and the first write to each waits until
the system has found and cleared one: 5 ms in the middle of a mask, where a page of 4 KB takes 2 microseconds."""


def gradual_zeros(n_bytes: int) -> NDArray[np.uint8]:
    """``uint8[n_bytes]`` of zeros, for tables with room for far more than most processes write to.

    >>> gradual_zeros(1 << 22)[-2:].tolist()
    [0, 0]
    """
    if n_bytes < HUGE:
        return np.zeros(n_bytes, np.uint8)
    if sys.platform == "win32":
        return np.frombuffer(mmap.mmap(-1, n_bytes), np.uint8)
    # Private, so that a process made of this one has its own.
    return np.frombuffer(mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), np.uint8)
