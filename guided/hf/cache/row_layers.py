"""`RowLayer`: the keys and values of one layer, a slot a row, written in place behind a layer class of transformers."""

from __future__ import annotations

import math
import mmap
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from transformers.cache_utils import CacheLayerMixin

__all__ = ["CrossLayer", "Place", "RowLayer"]

SPARE_COLUMNS = 64
"""Columns allocated beyond those needed, besides a half more: a buffer that grows is copied."""

SPARE_SLOTS = 16
"""Slots allocated at most beyond those needed, on accelerators."""

OWN_PAGES = 1 << 20
"""Bytes from which on a buffer on a processor has pages of its own."""


@dataclass
class Place:
    """Where the pass in progress writes and what it reads; one object shared by all layers of a cache."""

    first: int = 0
    """The first slot of the pass."""
    n_rows: int = 0
    """Its number of slots, which are consecutive."""
    past: int = 0
    """Columns filled before the pass, in the longest row."""
    columns: torch.Tensor | None = None
    """``int64[n_rows, q]``: where each new token goes; None when all rows go to ``past, past + 1, ...``."""


class RowLayer(CacheLayerMixin):  # type: ignore[no-untyped-call]
    """Keys and values of one layer, ``[slots, heads, columns, head width]``, written in place."""

    is_croppable = True
    dtype: Any
    device: Any

    def __init__(self, place: Place) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.place = place
        self.stored: tuple[torch.Tensor, torch.Tensor] | None = None
        self._slots = 0
        self._columns = 0
        self._written = (0, 0)
        """Slots and columns up to which anything was stored."""

    def reserve(self, slots: int, columns: int) -> None:
        """Make room; what is stored stays."""
        if slots <= self._slots and columns <= self._columns:
            return
        if slots > self._slots:
            # Pages that nobody writes to cost nothing; an accelerator's memory is taken at once.
            spare = self._slots if self.stored is None or self.stored[0].device.type == "cpu" else SPARE_SLOTS
            slots = max(slots, min(2 * self._slots, slots + spare))
        if columns > self._columns:
            columns += columns // 2 + SPARE_COLUMNS
        slots, columns = max(slots, self._slots), max(columns, self._columns)
        if self.stored is not None:
            keys, values = self.stored
            self.stored = (self._grown(keys, slots, columns), self._grown(values, slots, columns))
        # Last: where there was too little memory, less may be asked for again.
        self._slots, self._columns = slots, columns

    def _grown(self, old: torch.Tensor, slots: int, columns: int) -> torch.Tensor:
        new = _zeros(old, (slots, old.shape[1], columns, old.shape[3]))
        used, filled = self._written
        new[:used, :, :filled] = old[:used, :, :filled]
        return new

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Allocate the buffers.  Zeros: what no mask shows is multiplied by 0, and must not be NaN."""

        def buffer(like: torch.Tensor) -> torch.Tensor:
            return _zeros(like, (self._slots, like.shape[1], self._columns, like.shape[3]))

        self.stored = (buffer(key_states), buffer(value_states))
        self._written = (0, 0)
        self.dtype, self.device = key_states.dtype, key_states.device
        self.is_initialized = True

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: object, **kwargs: object
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Store the new states of the rows of the pass; return all states of those rows, as views."""
        if self.stored is None:
            self.lazy_initialization(key_states, value_states)
        assert self.stored is not None
        place, new = self.place, key_states.shape[2]
        self.keys, self.values = self.views(new)
        for shown, states in ((self.keys, key_states), (self.values, value_states)):
            if place.columns is None:
                shown[:, :, place.past :] = states
            else:
                rows = torch.arange(place.n_rows, device=shown.device)[:, None]
                shown[rows, :, place.columns.to(shown.device)] = states.transpose(1, 2)
        return self.keys, self.values

    def buffers(self, new: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The keys and values of all slots; columns of the pass for so many new tokens count as written."""
        assert self.stored is not None
        place = self.place
        stop, width = place.first + place.n_rows, place.past + new
        self._written = max(self._written[0], stop), max(self._written[1], width)
        return self.stored

    def views(self, new: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The keys and values of the rows of the pass, with columns for so many new tokens, which count as written."""
        place = self.place
        stop, width = place.first + place.n_rows, place.past + new
        keys, values = (buffer[place.first : stop, :, :width] for buffer in self.buffers(new))
        return keys, values

    def get_mask_sizes(self, query_length: int | torch.Tensor) -> tuple[int, int]:
        """Columns that the pass sees, and the first of them; older releases give the positions of the new tokens."""
        new = query_length if isinstance(query_length, int) else len(query_length)
        return self.place.past + new, 0

    def get_seq_length(self) -> int:
        """Columns filled before the pass, in the longest row."""
        return self.place.past

    def get_max_length(self) -> int:
        """No limit."""
        return -1

    def get_max_cache_shape(self) -> int:
        """What older releases call it."""
        return -1

    def move(self, sources: torch.Tensor, targets: torch.Tensor, columns: int) -> None:
        """Copy the first columns of slots to other slots, all at once."""
        if self.stored is None:
            return
        pairs = list(zip(sources.tolist(), targets.tolist(), strict=True))
        slots = max((into + 1 for _, into in pairs), default=0)
        self._written = max(self._written[0], slots), max(self._written[1], columns)
        # On a processor a copy for each slot, where none is read after it was written: a quarter to three quarters of
        # the time of a gather, which writes everything twice.  On an accelerator each copy would be a launch.
        alone = self.stored[0].device.type == "cpu" and not {of for of, _ in pairs} & {into for _, into in pairs}
        for buffer in self.stored:
            if alone:
                for of, into in pairs:
                    buffer[into, :, :columns] = buffer[of, :, :columns]
            else:
                places = targets.to(buffer.device)
                buffer[places, :, :columns] = buffer[sources.to(buffer.device), :, :columns]

    def gather(self, slots: torch.Tensor, sources: torch.Tensor, targets: torch.Tensor) -> None:
        """Copy columns within slots: ``int64[n]`` slots, ``int64[n, m]`` columns, all at once."""
        if self.stored is not None:
            for buffer in self.stored:
                buffer[slots[:, None], :, targets] = buffer[slots[:, None], :, sources]


def _zeros(like: torch.Tensor, shape: Sequence[int]) -> torch.Tensor:
    """Zeros of the type and on the device of a tensor.

    Large ones on a processor are pages of their own, which cost nothing until they are written and go back once they
    are dropped.  Zeros from malloc were written as such first, and what was freed lay between things that stayed.  With
    64 clients the 99th percentile of a step's processor time was 82 ms, and is 66 with them, the longest 110 and 72.
    """
    size = math.prod(shape) * like.element_size()
    if like.device.type != "cpu" or size < OWN_PAGES:
        return like.new_zeros(shape)
    try:
        if sys.platform == "win32":
            pages = mmap.mmap(-1, size)
        else:
            pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(f"{size} bytes for keys and values: {error.strerror}") from error
    return torch.frombuffer(pages, dtype=like.dtype).view(shape)


class CrossLayer(RowLayer):  # type: ignore[no-untyped-call]
    """Keys and values of what the encoder said, written once a prompt and then read as they are."""

    def show(self, first: int, n_rows: int, columns: int) -> None:
        """Set the views that attention reads without calling `update`."""
        assert self.stored is not None
        self.keys, self.values = (buffer[first : first + n_rows, :, :columns] for buffer in self.stored)
