"""Sets of tokens as ascending arrays.

NumPy's own functions for sets hash, at 90 nanoseconds a token, where sorting takes 5; a set may hold most of a
vocabulary.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["difference", "union"]


def union(*parts: NDArray[np.int64]) -> NDArray[np.int64]:
    """All tokens of some arrays, in whatever order these are."""
    tokens = np.concatenate(parts)
    tokens.sort()
    first = np.ones(tokens.size, np.bool_)
    np.not_equal(tokens[1:], tokens[:-1], out=first[1:])
    return tokens[first]


def difference(tokens: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.int64]:
    """The tokens of one set that are not in another array."""
    return tokens[~np.isin(tokens, others)]
