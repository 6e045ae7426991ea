"""Token effects as kernels read them: rows of tokens, lists of few, trie ranges behind matches; found by hash."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from guided.constraint.engine.scratch import grown
from guided.kernels.data.addresses import REPLACED, SharedAddresses
from guided.kernels.data.layout import Effects
from guided.kernels.data.pages import gradual_zeros
from guided.kernels.data.records import grown_records, records
from guided.kernels.jit import direct
from guided.kernels.masking.effects import DENSE, mark_tokens
from guided.kernels.masking.masks import ENOUGH

__all__ = ["EffectStore"]

MOST_ROWS = 4096
ROOM = 64 << 20
"""Rows, and bytes, that there is room for at first: memory that is not written to is not taken, and copying what is
full takes milliseconds."""


class EffectStore:
    """Effects that only grow in number; arrays are replaced when they are full, so that old views stay right."""

    def __init__(self, n_words: int) -> None:
        self.addresses = SharedAddresses()
        self.arrays = Effects(
            hash_slot=np.full(1024, -1, np.int32),
            **records(Effects, "mask", 512),
            masks=_rows(max(8, min(MOST_ROWS, ROOM // (4 * max(n_words, 1)))), n_words),
            listed=np.zeros(4096, np.int32),
            **records(Effects, "exit_low", 1024),
            ends_in=np.zeros(512, np.int32),
            more=np.full(512, -1, np.int32),
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
        ends_in: int = 0,
        more: int = -1,
    ) -> int:
        """Keep an effect: ``kept`` tokens, besides those of row ``mask``, and exits ``(low, high, tag, pending)``.

        ``ends_in`` and ``more`` as in `guided.kernels.data.layout.Effects`.  Below 0 a ``state`` is not found.
        """
        index = self._new(low, high, state)
        self.arrays.ends_in[index], self.arrays.more[index] = ends_in, more
        if mask < 0 and kept.size > DENSE and not (state > 0 and state & ENOUGH):
            mask = self.row(kept)
            kept = kept[:0]
        first = self._list(kept) if kept.size else 0
        if self._n_exits + len(exits) > self.arrays.exit_low.size:
            room = 2 * self.arrays.exit_low.size + len(exits)
            self.arrays = self.arrays._replace(**grown_records(self.arrays, "exit_low", room))
            REPLACED.note()
        effects = self.arrays
        effects.mask[index] = mask
        effects.list_first[index], effects.list_count[index] = first, kept.size
        at = self._n_exits
        effects.exit_first[index], effects.exit_count[index] = at, len(exits)
        for exit_ in exits:
            effects.exit_low[at], effects.exit_high[at], effects.exit_tag[at], effects.exit_pending[at] = exit_
            at += 1
        self._n_exits = at
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
        row = self.next_row()
        masks = self.arrays.masks
        if like >= 0:
            masks[row] = masks[like]
        else:
            masks[row] = 0
        direct(mark_tokens)(masks, row, kept)
        return self.take_row()

    def next_row(self) -> int:
        """The number of the row that is taken next: there is room for it, and whatever was written to it."""
        if self._n_masks == self.arrays.masks.shape[0]:
            masks = _rows(2 * self._n_masks, self._n_words)
            masks[: self._n_masks] = self.arrays.masks
            self.arrays = self.arrays._replace(masks=masks)
            REPLACED.note()
        return self._n_masks

    def take_row(self) -> int:
        """Keep what is written in the next row; its number."""
        self._n_masks += 1
        return self._n_masks - 1

    def _new(self, low: int, high: int, state: int) -> int:
        index = self._n_effects
        effects = self.arrays
        if 2 * index + 2 > effects.hash_slot.size or index == effects.key_low.size:
            fields = grown_records(effects, "mask", 2 * effects.key_low.size)
            fields["ends_in"] = grown(effects.ends_in, 2 * effects.ends_in.size)
            fields["more"] = np.concatenate([effects.more, np.full_like(effects.more, -1)])
            effects = self.arrays = effects._replace(
                hash_slot=np.full(2 * effects.hash_slot.size, -1, np.int32), **fields
            )
            REPLACED.note()
            for old in range(index):
                self._enter(old)
        effects.key_low[index], effects.key_high[index], effects.key_state[index] = low, high, state
        self._n_effects = index + 1
        return index

    def _enter(self, index: int) -> None:
        """Put an effect into the hash, the last step of making it visible."""
        effects = self.arrays
        if effects.key_state[index] < 0:
            return
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
            REPLACED.note()
        self.arrays.listed[first : first + kept.size] = kept
        self._n_listed += int(kept.size)
        return first


_MASK64 = (1 << 64) - 1
_PER_EFFECT = (
    "key_low", "key_high", "key_state", "mask", "list_first", "list_count",
    "exit_first", "exit_count", "ends_in", "more",
)  # fmt: skip


def _rows(n: int, n_words: int) -> NDArray[np.uint32]:
    """So many rows of no tokens."""
    return gradual_zeros(4 * n * n_words).view(np.uint32).reshape(n, n_words)
