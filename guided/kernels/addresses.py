"""Rows of the table of addresses that kernels get (`guided.kernels.views`), without loading the compiler."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["SharedAddresses", "address_rows"]

Arrays = Sequence[NDArray[Any]]


def address_rows(arrays: Arrays) -> NDArray[np.int64]:
    """``int64[n, 3]``: address, length and width of each array; good while they are held on to.  0.6 us an array."""
    rows = np.zeros((len(arrays), 3), np.int64)
    for i, array in enumerate(arrays):
        rows[i, 0] = array.ctypes.data
        rows[i, 1 : 1 + array.ndim] = array.shape
    return rows


class SharedAddresses:
    """The rows of arrays that many constraints use, made anew when they are replaced."""

    def __init__(self) -> None:
        self._made: tuple[Arrays, NDArray[np.int64]] = ((), np.zeros((0, 3), np.int64))

    def of(self, arrays: Arrays) -> NDArray[np.int64]:
        """The rows of ``arrays``; remembered for the same object."""
        known, rows = self._made
        if known is not arrays:
            rows = address_rows(arrays)
            self._made = arrays, rows
        return rows
