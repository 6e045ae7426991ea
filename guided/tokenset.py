"""Packed sets of token ids: a row ``uint32[n_words]`` in which bit ``t & 31`` of word ``t >> 5`` is token ``t``.

Every mask is such a row, and several masks are ``uint32[n, n_words]``.  Rows stay plain arrays, so that a set
operation is one of NumPy's (``|``, ``&``, ``& ~``) and kernels can write to them.  What cannot be said with those is
here, and nowhere else outside kernels.

>>> row = of_ids([1, 40], n_words(64))
>>> row.tolist(), ids(row).tolist(), contains(row, 40), count(row)
([2, 256], [1, 40], True, 2)
>>> add(row, 2)
>>> remove_all(row, np.array([1, 40]))
>>> ids(row).tolist()
[2]
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Row", "add", "add_all", "are_in", "contains", "count", "difference", "first_ids", "flags", "ids", "n_words",
    "of_flags", "of_ids", "places", "remove", "remove_all", "union", "without",
]  # fmt: skip

Row: TypeAlias = NDArray[np.uint32]
Ids: TypeAlias = NDArray[np.integer[Any]]


def n_words(size: int) -> int:
    """Words of a row for the ids below ``size``."""
    return (size + 31) // 32


def of_ids(tokens: Iterable[int] | Ids, words: int) -> Row:
    """The row of some ids, ``words`` long."""
    chosen = np.zeros(32 * words, np.bool_)
    chosen[np.asarray(tokens if isinstance(tokens, np.ndarray) else list(tokens), np.int64)] = True
    return of_flags(chosen)


def of_flags(chosen: NDArray[np.bool_]) -> Row:
    """The row of the ids at which ``chosen`` (``bool[size]``) is true."""
    row = np.zeros(n_words(chosen.size), np.uint32)
    packed = np.packbits(chosen, bitorder="little")
    row.view(np.uint8)[: packed.size] = packed
    return row


def flags(rows: Row, size: int | None = None) -> NDArray[np.bool_]:
    """``bool[..., size]``: whether each id is in the row, or in each of several rows; without ``size`` each bit."""
    found: NDArray[np.bool_] = np.unpackbits(rows.view(np.uint8), axis=-1, count=size, bitorder="little").view(np.bool_)
    return found


def ids(row: Row) -> NDArray[np.int64]:
    """The ids in a row, ascending."""
    return np.flatnonzero(flags(row))


def first_ids(row: Row, most: int) -> NDArray[np.int64]:
    """The lowest ids in a row, at most so many: without a look at the bits of all its words."""
    words = np.flatnonzero(row)[:most]
    at = ids(row[words])
    found: NDArray[np.int64] = 32 * words[at >> 5] + (at & 31)
    return found[:most]


def count(row: Row) -> int:
    """How many ids are in a row."""
    return int(np.bitwise_count(row).sum())


def contains(row: Row, token: int) -> bool:
    """Is an id in a row?"""
    return int(row[token >> 5]) >> (token & 31) & 1 == 1


def add(row: Row, token: int) -> None:
    """Put an id into a row."""
    row[token >> 5] |= np.uint32(1 << (token & 31))


def remove(row: Row, token: int) -> None:
    """Take an id out of a row."""
    row[token >> 5] &= ~np.uint32(1 << (token & 31))


def are_in(row: Row, tokens: Ids) -> NDArray[np.bool_]:
    """For each of some ids whether it is in a row."""
    words, bits = places(tokens)
    found: NDArray[np.bool_] = row[words] & bits != 0
    return found


def add_all(row: Row, tokens: Ids) -> None:
    """Put some ids into a row."""
    words, bits = places(tokens)
    np.bitwise_or.at(row, words, bits)


def remove_all(row: Row, tokens: Ids) -> None:
    """Take some ids out of a row."""
    words, bits = places(tokens)
    np.bitwise_and.at(row, words, ~bits)


def without(row: Row, tokens: Ids) -> Row:
    """A copy of a row less some ids."""
    row = row.copy()
    if tokens.size:
        remove_all(row, tokens)
    return row


def union(*parts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The ids of some arrays in whatever order, ascending.

    NumPy's own functions for sets hash, at 90 nanoseconds an id, where sorting takes 5; a set may hold most of a
    vocabulary.
    """
    tokens = np.concatenate(parts)
    tokens.sort()
    first = np.ones(tokens.size, np.bool_)
    np.not_equal(tokens[1:], tokens[:-1], out=first[1:])
    return tokens[first]


def difference(tokens: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.int64]:
    """The ids of one array that are not in another."""
    return tokens[~np.isin(tokens, others)]


def places(tokens: Ids) -> tuple[NDArray[np.int64], Row]:
    """The word of each id, and its bit there: for ids that are looked up in many rows."""
    tokens = tokens.astype(np.int64, copy=False)
    return tokens >> 5, np.uint32(1) << (tokens & 31).astype(np.uint32)
