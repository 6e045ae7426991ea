"""`RowLayer`: the keys and values of one layer, a slot a row, written in place behind a layer class of transformers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from transformers.cache_utils import CacheLayerMixin

__all__ = ["CrossLayer", "Place", "RowLayer"]

SPARE_COLUMNS = 64
"""Columns allocated beyond those needed, besides a half more: a buffer that grows is copied whole."""


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

    def reserve(self, slots: int, columns: int) -> None:
        """Make room; what is stored stays."""
        if slots <= self._slots and columns <= self._columns:
            return
        if slots > self._slots:
            self._slots = max(slots, min(2 * self._slots, slots + 16))
        if columns > self._columns:
            self._columns = columns + columns // 2 + SPARE_COLUMNS
        if self.stored is not None:
            keys, values = self.stored
            self.stored = (self._grown(keys), self._grown(values))

    def _grown(self, old: torch.Tensor) -> torch.Tensor:
        new = old.new_zeros((self._slots, old.shape[1], self._columns, old.shape[3]))
        new[: old.shape[0], :, : old.shape[2]] = old
        return new

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        """Allocate the buffers.  Zeros: what no mask shows is multiplied by 0, and must not be NaN."""

        def buffer(like: torch.Tensor) -> torch.Tensor:
            return like.new_zeros((self._slots, like.shape[1], self._columns, like.shape[3]))

        self.stored = (buffer(key_states), buffer(value_states))
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
        stop = place.first + place.n_rows
        for buffer, states in zip(self.stored, (key_states, value_states), strict=True):
            if place.columns is None:
                buffer[place.first : stop, :, place.past : place.past + new] = states
            else:
                rows = torch.arange(place.first, stop, device=buffer.device)[:, None]
                buffer[rows, :, place.columns.to(buffer.device)] = states.transpose(1, 2)
        self.keys, self.values = (buffer[place.first : stop, :, : place.past + new] for buffer in self.stored)
        return self.keys, self.values

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


class CrossLayer(RowLayer):  # type: ignore[no-untyped-call]
    """Keys and values of what the encoder said, written once a prompt and then read as they are."""

    def show(self, first: int, n_rows: int, columns: int) -> None:
        """Set the views that attention reads without calling `update`."""
        assert self.stored is not None
        self.keys, self.values = (buffer[first : first + n_rows, :, :columns] for buffer in self.stored)
