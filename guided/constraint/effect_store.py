"""Token effects as kernels read them: rows of tokens, lists of few, trie ranges behind matches; found by hash."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from guided.constraint.scratch import grown
from guided.kernels.addresses import SharedAddresses
from guided.kernels.layout import Effects
from guided.kernels.pages import gradual_zeros
from guided.kernels.records import grown_records, records

__all__ = ["EffectStore", "pack_bits"]

DENSE = 512
"""Tokens from which an effect is kept as a bitmask row rather than a list; a guess at where the costs meet."""


MOST_ROWS = 4096
ROOM = 64 << 20
"""Rows, and bytes, that there is room for at first: memory that is not written to is not taken, and copying what is
full takes milliseconds."""


class EffectStore:
    """Effects that only grow in number; arrays are replaced when they are full, so that old views stay right."""

    def __init__(self, n_words: int) -> None:
        self.version = 0
        """Changes whenever an array is replaced."""
        self.addresses = SharedAddresses()
        self.arrays = Effects(
            hash_slot=np.full(1024, -1, np.int32),
            **records(Effects, "mask", 512),
            masks=_rows(max(8, min(MOST_ROWS, ROOM // (4 * max(n_words, 1)))), n_words),
            listed=np.zeros(4096, np.int32),
            **records(Effects, "exit_low", 1024),
        )
        self._n_words = n_words
        self._n_effects = self._n_masks = self._n_listed = self._n_exits = 0

    @property
    def n_bytes(self) -> int:
        """Memory in use."""
        held: int = sum(array.nbytes for array in self.arrays)
        unused = int(self.arrays.masks.shape[0]) - self._n_masks
        return held - 4 * unused * self._n_words

    def find(self, low: int, high: int, state: int) -> int:
        """The effect of a range and state, -1 where none is kept."""
        effects = self.arrays
        slot = self._slot(low, state)
        while (index := int(effects.hash_slot[slot])) >= 0:
            if effects.key_state[index] == state and effects.key_low[index] == low and effects.key_high[index] == high:
                return index
            slot = (slot + 1) % effects.hash_slot.size
        return -1

    def add(
        self,
        low: int,
        high: int,
        state: int,
        kept: NDArray[np.int32],
        exits: list[tuple[int, int, int, int]],
        mask: int = -1,
    ) -> int:
        """Keep an effect: ``kept`` tokens, besides those of row ``mask``, and exits ``(low, high, tag, pending)``."""
        index = self._new(low, high, state)
        effects = self.arrays
        effects.mask[index] = mask
        if mask < 0 and kept.size > DENSE:
            effects.mask[index] = self.row(kept)
        else:
            first = self._list(kept)
            self.arrays.list_first[index], self.arrays.list_count[index] = first, kept.size
        if self._n_exits + len(exits) > self.arrays.exit_low.size:
            room = 2 * self.arrays.exit_low.size + len(exits)
            self.arrays = self.arrays._replace(**grown_records(self.arrays, "exit_low", room))
            self.version += 1
        effects = self.arrays
        effects.exit_first[index], effects.exit_count[index] = self._n_exits, len(exits)
        if exits:
            columns = np.array(exits, np.int32).T
            for name, column in zip(_PER_EXIT, columns, strict=True):
                getattr(effects, name)[self._n_exits : self._n_exits + len(exits)] = column
        self._n_exits += len(exits)
        self._enter(index)
        return index

    def alias(self, low: int, high: int, state: int, other: int) -> int:
        """Keep the effect ``other`` also for another range and state."""
        index = self._new(low, high, state)
        for name in _PER_EFFECT:
            if not name.startswith("key"):
                array = getattr(self.arrays, name)
                array[index] = array[other]
        self._enter(index)
        return index

    def row(self, kept: NDArray[np.int32], like: int = -1) -> int:
        """A new row of tokens, or of those in which it differs from the row ``like``; its number."""
        if self._n_masks == self.arrays.masks.shape[0]:
            masks = _rows(2 * self._n_masks, self._n_words)
            masks[: self._n_masks] = self.arrays.masks
            self.arrays = self.arrays._replace(masks=masks)
            self.version += 1
        self.arrays.masks[self._n_masks] = pack_bits(kept, self._n_words)
        if like >= 0:
            self.arrays.masks[self._n_masks] ^= self.arrays.masks[like]
        self._n_masks += 1
        return self._n_masks - 1

    def _new(self, low: int, high: int, state: int) -> int:
        index = self._n_effects
        effects = self.arrays
        if 2 * index + 2 > effects.hash_slot.size or index == effects.key_low.size:
            fields = grown_records(effects, "mask", 2 * effects.key_low.size)
            effects = self.arrays = effects._replace(
                hash_slot=np.full(2 * effects.hash_slot.size, -1, np.int32), **fields
            )
            self.version += 1
            for old in range(index):
                self._enter(old)
        effects.key_low[index], effects.key_high[index], effects.key_state[index] = low, high, state
        self._n_effects = index + 1
        return index

    def _enter(self, index: int) -> None:
        """Put an effect into the hash, the last step of making it visible."""
        effects = self.arrays
        slot = self._slot(int(effects.key_low[index]), int(effects.key_state[index]))
        while effects.hash_slot[slot] >= 0:
            slot = (slot + 1) % effects.hash_slot.size
        effects.hash_slot[slot] = index

    def _slot(self, low: int, state: int) -> int:
        """Where to look for an effect first; as kernels do."""
        mixed = (low * 0x9E3779B97F4A7C15 & _MASK64) ^ (state * 0xC2B2AE3D27D4EB4F & _MASK64)
        return (mixed ^ (mixed >> 32)) % self.arrays.hash_slot.size

    def _list(self, kept: NDArray[np.int32]) -> int:
        first = self._n_listed
        if first + kept.size > self.arrays.listed.size:
            self.arrays = self.arrays._replace(
                listed=grown(self.arrays.listed, 2 * self.arrays.listed.size + kept.size)
            )
            self.version += 1
        self.arrays.listed[first : first + kept.size] = kept
        self._n_listed += int(kept.size)
        return first


_MASK64 = (1 << 64) - 1
_PER_EFFECT = (
    "key_low", "key_high", "key_state", "mask", "list_first", "list_count",
    "exit_first", "exit_count",
)  # fmt: skip
_PER_EXIT = ("exit_low", "exit_high", "exit_tag", "exit_pending")


def _rows(n: int, n_words: int) -> NDArray[np.uint32]:
    """So many rows of no tokens."""
    return gradual_zeros(4 * n * n_words).view(np.uint32).reshape(n, n_words)


def pack_bits(kept: NDArray[np.int32], n_words: int) -> NDArray[np.uint32]:
    """A bitmask row, bit ``t & 31`` of word ``t >> 5`` for each token ``t``."""
    flags = np.zeros(32 * n_words, np.bool_)
    # Indices of another type would be converted on the way, which takes longer than at once.
    flags[kept.astype(np.intp)] = True
    return np.packbits(flags, bitorder="little").view(np.uint32)
