"""The flat preorder trie over a vocabulary's byte strings: its arrays, and the sort that precedes the kernel.

This file knows byte strings only; which ids are text is `guided.vocab.vocabulary`'s concern.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Trie", "build_trie", "sort_byte_strings"]

# Bytes compared at once when sorting: one big-endian uint64 orders like its eight bytes.
_CHUNK = 8


@dataclass(frozen=True, eq=False)
class Trie:
    """A trie of byte strings as parallel read-only arrays in preorder, children ascending by byte.

    Node 0 is the root (the empty string; ``byte[0]`` is 0 and means nothing).  The children of node ``i`` are
    ``i + 1, end[i + 1], end[end[i + 1]], ...`` while below ``end[i]``; to skip a subtree, go on at ``end[i]``.

    >>> from guided.vocab import Vocabulary
    >>> trie = Vocabulary.from_tokens([b"a", b"ab", b"b", None, b"ab"], eos_ids=[3]).trie
    >>> trie.byte.tolist(), trie.end.tolist()
    ([0, 97, 98, 98], [4, 3, 3, 4])
    >>> trie.token_offset.tolist(), trie.token_ids.tolist()
    ([0, 0, 1, 3, 4], [0, 1, 4, 2])
    """

    byte: NDArray[np.uint8]
    """``uint8[n]``: the byte on the edge into each node."""
    end: NDArray[np.int32]
    """``int32[n]``: one past the last node of each node's subtree."""
    token_offset: NDArray[np.int32]
    """``int32[n + 1]``: the ids that spell node ``i`` are ``token_ids[token_offset[i]:token_offset[i + 1]]``."""
    token_ids: NDArray[np.int32]
    """``int32[m]``: every id with bytes, sorted by its bytes, then by id; so a subtree's ids are one slice."""

    def __post_init__(self) -> None:
        for array in (self.byte, self.end, self.token_offset, self.token_ids):
            array.flags.writeable = False

    @property
    def n_nodes(self) -> int:
        """Number of nodes, the root included."""
        return int(self.byte.size)


def sort_byte_strings(data: NDArray[np.uint8], offsets: NDArray[np.int64], ids: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return ``ids`` in ascending order of ``data[offsets[id]:offsets[id + 1]]``, equal strings by id.

    Works on eight bytes at a time; after the first eight only strings that still tie are looked at again.
    """
    # Zeros after the last byte let every chunk be read whole; as_uint64[i] are bytes i .. i + 7, first one highest.
    padded = np.concatenate([data, np.zeros(_CHUNK, np.uint8)])
    as_uint64 = np.ndarray((data.size + 1,), dtype=">u8", buffer=padded, strides=(1,))
    shifts = np.uint64(8) * np.arange(_CHUNK + 1, dtype=np.uint64)[::-1]
    keep = np.array([0] + [(1 << 64) - (1 << int(shift)) for shift in shifts[1:]], dtype=np.uint64)

    def chunk(of: NDArray[np.int32], at: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Return bytes ``at .. at + 7`` of each string, zero beyond its end, and how many of them there are."""
        begin = offsets[of] + at
        left = np.clip(offsets[of + 1] - begin, 0, _CHUNK)
        read = as_uint64[np.minimum(begin, data.size)].astype(np.uint64)
        return read & keep[left], left

    order = np.sort(ids)
    key, length = chunk(order, 0)
    by_key = np.argsort(key, kind="stable")
    order, key, length = order[by_key], key[by_key], length[by_key]
    group = np.concatenate([[0], np.cumsum(key[1:] != key[:-1])]) if order.size else np.zeros(0, np.int64)
    place = np.arange(order.size)
    at = _CHUNK
    while True:
        # Only members of groups of two or more can still be out of order.
        tied = np.zeros(group.size, dtype=bool)
        same = group[1:] == group[:-1]
        tied[1:] |= same
        tied[:-1] |= same
        place, group, length = place[tied], group[tied], length[tied]
        if not place.size:
            return order
        ids_left = order[place]
        key, next_length = chunk(ids_left, at)
        # Chunks are padded with zeros: of two that look the same, the one with fewer bytes of its own comes first.
        by_key = np.lexsort((next_length, key, length, group))
        order[place] = ids_left[by_key]
        group, length, key, next_length = group[by_key], length[by_key], key[by_key], next_length[by_key]
        changes = [column[1:] != column[:-1] for column in (group, length, key, next_length)]
        group = np.concatenate([[0], np.cumsum(np.logical_or.reduce(changes))])
        # Strings with nothing left are equal to the others of their group and already in order of id.
        more = next_length > 0
        place, group, length = place[more], group[more], next_length[more]
        at += _CHUNK


def build_trie(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> Trie:
    """Build the trie of all non-empty strings ``data[offsets[t]:offsets[t + 1]]``; an empty one is no token."""
    from guided.kernels.tokens.trie import fill_trie

    lengths = np.diff(offsets)
    ids = np.flatnonzero(lengths).astype(np.int32)
    order = sort_byte_strings(data, offsets, ids)
    capacity = int(data.size) + 1
    byte = np.empty(capacity, np.uint8)
    end = np.empty(capacity, np.int32)
    token_offset = np.empty(capacity + 1, np.int32)
    path = np.empty(int(lengths.max(initial=0)) + 1, np.int32)
    n = fill_trie(data, offsets, order, byte, end, token_offset, path)
    return Trie(byte[:n].copy(), end[:n].copy(), token_offset[: n + 1].copy(), order)
