"""`RowCache`: keys and values of a batch whose rows have lengths of their own, behind the cache class of transformers.

A row keeps the token at position p in column p of its slot, so rolling back is forgetting a length, sliding windows can
be rolled back too (the mask hides what they do not see), and rows of any lengths share a pass.  Columns beyond a row's
length hold leftovers that no mask shows.  Which rows there are and what their tokens are is the caller's concern
(`guided.hf.cache.sequences`); this file moves tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from transformers.cache_utils import Cache, EncoderDecoderCache

from guided.hf.cache.row_layers import CrossLayer, Place, RowLayer

if TYPE_CHECKING:
    from guided.hf.cache.state_cache import StateLayer

__all__ = ["LayerKind", "RowCache"]


@dataclass(frozen=True)
class LayerKind:
    """What a layer remembers of a text."""

    attends: bool
    """Keys and values."""
    n_states: int = 0
    """States of convolutions and recurrences."""


def _layer(kind: LayerKind, place: Place) -> Any:
    """A layer that remembers what its kind says; the classes behind the others came later than transformers 5.0."""
    if kind.n_states:
        from guided.hf.cache.state_cache import BothLayer, StateLayer

        return (BothLayer if kind.attends else StateLayer)(place, kind.n_states)
    if kind.attends:
        return RowLayer(place)
    from transformers.cache_utils import DummyLayer

    return DummyLayer()  # type: ignore[no-untyped-call]


class RowCache:
    """The caches of all layers, for decoders with or without an encoder behind them."""

    def __init__(self, kinds: Sequence[LayerKind], encoder: bool) -> None:
        self.place = Place()
        self.states: list[StateLayer] = []
        self.layers: list[RowLayer | StateLayer] = []
        layers: list[Any] = []
        for kind in kinds:
            layer = _layer(kind, self.place)
            layers.append(layer)
            if kind.n_states:
                self.states.append(layer)
            if kind.n_states or kind.attends:
                self.layers.append(layer)
        own = Cache(layers=layers)
        self.cross: list[CrossLayer] = []
        self.cross_place = Place()
        self.given: Any = own
        """What the model gets as ``past_key_values``."""
        if encoder:
            self.cross = [CrossLayer(self.cross_place) for _ in kinds]
            self.given = EncoderDecoderCache(own, Cache(layers=list(self.cross)))

    def reserve(self, slots: int, columns: int) -> None:
        """Make room for slots of so many columns."""
        for layer in self.layers:
            layer.reserve(slots, columns)

    def reserve_cross(self, slots: int, columns: int) -> None:
        """Make room for the encoder's columns."""
        for layer in self.cross:
            layer.reserve(slots, columns)

    def aim(self, first: int, n_rows: int, past: int, columns: torch.Tensor | None) -> None:
        """Set the place of the next pass."""
        place = self.place
        place.first, place.n_rows, place.past, place.columns = first, n_rows, past, columns
        for layer in self.states:
            layer.aim(fresh=past == 0)

    def aim_cross(self, first: int, n_rows: int, columns: int, fresh: bool) -> None:
        """Set the encoder's side of the next pass: ``fresh`` writes it, otherwise it is read."""
        place = self.cross_place
        place.first, place.n_rows, place.past, place.columns = first, n_rows, 0, None
        updated = self.given.is_updated
        for number, layer in enumerate(self.cross):
            updated[number] = not fresh
            if not fresh:
                layer.show(first, n_rows, columns)

    def move(self, sources: Sequence[int], targets: Sequence[int], columns: int) -> None:
        """Copy slots to slots, all at once: what is read is what was there before."""
        self._move(self.layers, sources, targets, columns)

    def move_cross(self, sources: Sequence[int], targets: Sequence[int], columns: int) -> None:
        """The same for the encoder's side."""
        self._move(self.cross, sources, targets, columns)

    def _move(
        self, layers: Sequence[RowLayer | StateLayer], sources: Sequence[int], targets: Sequence[int], columns: int
    ) -> None:
        for layer in layers:
            layer.move(torch.tensor(sources), torch.tensor(targets), columns)

    def gather(self, slots: Sequence[int], sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> None:
        """Copy columns within slots; every slot the same number of columns."""
        for layer in self.layers:
            if isinstance(layer, RowLayer) and layer.stored is not None:
                device = layer.stored[0].device
                layer.gather(
                    torch.tensor(slots, device=device),
                    torch.tensor(sources, device=device),
                    torch.tensor(targets, device=device),
                )
