"""Layers of a `RowCache` whose memory of a text is a state, not keys and values: convolutions and recurrences.

A state after a text says nothing about the text's beginnings, so such a row can be copied and continued, but neither
rolled back nor padded.  What that asks of passes is the concern of `guided.hf.cache.slots` and
`guided.hf.cache.sequences`.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers.cache_utils import LinearAttentionLayer

from guided.hf.cache.row_layers import Place, RowLayer

__all__ = ["BothLayer", "StateLayer"]


class StateLayer(LinearAttentionLayer):
    """States of one layer, ``[slots, ...]`` each; a pass writes to views of the rows that it is about."""

    dtype: Any
    device: Any

    def __init__(self, place: Place, number_of_states: int) -> None:
        LinearAttentionLayer.__init__(self, number_of_states)
        self.place = place
        self.states: dict[tuple[str, int], torch.Tensor] = {}
        self.n_slots = 0

    def reserve(self, slots: int, columns: int) -> None:
        """Make room for slots; what is stored stays."""
        if slots > self.n_slots:
            self.n_slots = max(slots, min(2 * self.n_slots, slots + 16))
            for key, old in self.states.items():
                new = old.new_zeros((self.n_slots, *old.shape[1:]))
                new[: old.shape[0]] = old
                self.states[key] = new

    def lazy_initialization(
        self,
        conv_states: torch.Tensor | None = None,
        recurrent_states: torch.Tensor | None = None,
        state_idx: int = 0,
        conv_kernel_size: int | None = None,
    ) -> None:
        """Allocate the buffers of a state for all slots, and show the rows of the pass."""
        if conv_states is not None:
            kernel = conv_states.shape[-1] if conv_kernel_size is None else conv_kernel_size
            self.conv_kernel_size[state_idx] = kernel
            self._allocate("conv", state_idx, conv_states, (*conv_states.shape[1:-1], kernel))
            self.is_conv_states_initialized[state_idx] = True
        if recurrent_states is not None:
            self._allocate("recurrent", state_idx, recurrent_states, tuple(recurrent_states.shape[1:]))
            self.is_recurrent_states_initialized[state_idx] = True
        self._show()

    def _allocate(self, kind: str, number: int, like: torch.Tensor, shape: tuple[int, ...]) -> None:
        self.dtype, self.device = like.dtype, like.device
        self.states[kind, number] = like.new_zeros((self.n_slots, *shape))

    def aim(self, fresh: bool) -> None:
        """Before a pass: show its rows, whose states are there unless they begin with nothing."""
        for number in self.has_previous_state:
            self.has_previous_state[number] = not fresh
        self._show()

    def _show(self) -> None:
        rows = slice(self.place.first, self.place.first + self.place.n_rows)
        for (kind, number), buffer in self.states.items():
            shown: dict[int, Any] = self.conv_states if kind == "conv" else self.recurrent_states
            shown[number] = buffer[rows]

    def move(self, sources: torch.Tensor, targets: torch.Tensor, columns: int) -> None:
        """Copy states of slots to other slots, all at once."""
        for buffer in self.states.values():
            buffer[targets.to(buffer.device)] = buffer[sources.to(buffer.device)]


class BothLayer(StateLayer, RowLayer):  # type: ignore[no-untyped-call, override]
    """A layer with attention and a state beside it."""

    is_compileable = False

    def __init__(self, place: Place, number_of_states: int) -> None:
        RowLayer.__init__(self, place)
        StateLayer.__init__(self, place, number_of_states)

    def reserve(self, slots: int, columns: int) -> None:
        """Make room in both."""
        RowLayer.reserve(self, slots, columns)
        StateLayer.reserve(self, slots, columns)

    def lazy_initialization(self, *args: Any, **kwargs: Any) -> None:
        """Keys and values come as two arguments, states by name."""
        if args:
            RowLayer.lazy_initialization(self, *args)
        else:
            StateLayer.lazy_initialization(self, **kwargs)

    def move(self, sources: torch.Tensor, targets: torch.Tensor, columns: int) -> None:
        """Copy both."""
        RowLayer.move(self, sources, targets, columns)
        StateLayer.move(self, sources, targets, columns)
