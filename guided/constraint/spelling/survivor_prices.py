"""Prices of a vocabulary's tokens, kept so that all that cost too much are cleared at once.

What a price is, and of which tokens, is `guided.constraint.spelling.survivors`' matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided import tokenset

__all__ = ["TokenPrices", "distinct_pairs"]


@dataclass(frozen=True)
class TokenPrices:
    """A price for each token, as the number of one of few prices."""

    distinct: NDArray[np.int64]
    """Ascending."""
    which: NDArray[Any]
    """``uint8``, ``uint16`` or ``int32``, one for each bit of a row: the number of the token's price, if any."""

    @classmethod
    def of(cls, prices: NDArray[np.int64], priced: NDArray[np.uint32]) -> TokenPrices:
        """From a price for every bit of a row, of which only those of the tokens ``priced`` count."""
        present = np.bincount(prices[tokenset.flags(priced)]) > 0
        distinct = np.flatnonzero(present)
        kind = np.uint8 if distinct.size < 256 else np.uint16 if distinct.size < 65_536 else np.int32
        if not distinct.size:
            return cls(distinct, np.zeros(prices.size, kind))
        numbers = (np.cumsum(present) - 1).astype(kind)
        return cls(distinct, numbers[np.minimum(prices, distinct[-1])])

    def at_most(self, limit: int) -> NDArray[np.uint32] | None:
        """The row of all tokens whose price is no higher, and of any without one; None where that is all."""
        n = int(np.searchsorted(self.distinct, limit, side="right"))
        return None if n == self.distinct.size else tokenset.of_flags(self.which < n)


def distinct_pairs(
    first: NDArray[np.int32], second: NDArray[np.int32]
) -> tuple[list[tuple[int, int]], NDArray[np.int64]]:
    """The different pairs ``(first[i], second[i])`` of numbers from 0, and the number of each pair among them.

    Counted, not sorted, for many pairs of few numbers.
    """
    firsts, of_first = _distinct(first)
    seconds, of_second = _distinct(second)
    pairs, which = _distinct(of_first * seconds.size + of_second)
    return list(zip(firsts[pairs // seconds.size].tolist(), seconds[pairs % seconds.size].tolist(), strict=True)), which


def _distinct(numbers: NDArray[np.int32] | NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    present = np.zeros(int(numbers.max()) + 1, np.bool_)
    present[numbers] = True
    return np.flatnonzero(present), (np.cumsum(present) - 1)[numbers]
