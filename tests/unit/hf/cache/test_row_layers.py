"""`RowLayer`: what is stored survives growth, and room that nobody uses takes no memory."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import torch

from guided.hf.cache import row_layers
from guided.hf.cache.row_layers import OWN_PAGES, Place, RowLayer


def stored(layer: RowLayer, first: int, past: int, states: torch.Tensor) -> None:
    layer.place.first, layer.place.n_rows, layer.place.past = first, states.shape[0], past
    layer.place.columns = None
    layer.update(states, -states)


@pytest.mark.parametrize("width", [4, 4096])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_growth_keeps_what_is_stored_and_zeros_beyond(width: int, dtype: torch.dtype) -> None:
    layer = RowLayer(Place())
    layer.reserve(2, 5)
    states = torch.arange(2 * 3 * 5 * width).view(2, 3, 5, width).remainder(251).to(dtype) + 1
    stored(layer, 0, 0, states)
    layer.reserve(3, 5)
    layer.move(torch.tensor([1]), torch.tensor([2]), 5)
    layer.reserve(9, 5)
    layer.reserve(9, 400)
    assert layer.stored is not None
    keys, values = layer.stored
    assert keys.shape[0] >= 9 and keys.shape[2] >= 400 and keys.dtype is dtype
    assert (keys.numel() * keys.element_size() >= OWN_PAGES) is (width == 4096)
    wanted = torch.cat([states, states[1:]])
    assert torch.equal(keys[:3, :, :5], wanted) and torch.equal(values[:3, :, :5], -wanted)
    assert not keys[3:].any() and not keys[:, :, 5:].any() and not values[3:].any()


@pytest.mark.skipif(sys.platform != "linux", reason="resident memory is read from /proc")
def test_room_that_nobody_uses_takes_no_memory() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    layer = RowLayer(Place())
    layer.reserve(1, 64)
    stored(layer, 0, 0, torch.ones(1, 8, 64, 32))
    before = resident()
    layer.reserve(1024, 64)
    assert layer.stored is not None and layer.stored[0].numel() * 4 > 128 << 20
    assert resident() - before < 32 << 20


def test_a_layer_without_memory_to_grow_stays_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = RowLayer(Place())
    layer.reserve(2, 5)
    states = torch.ones(2, 3, 5, 4)
    stored(layer, 0, 0, states)

    def full(like: torch.Tensor, shape: tuple[int, ...]) -> torch.Tensor:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(row_layers, "_zeros", full)
        with pytest.raises(MemoryError):
            layer.reserve(200, 400)
    layer.reserve(3, 5)
    stored(layer, 2, 0, states[:1])
    assert layer.stored is not None and torch.equal(layer.stored[0][:3, :, :5], torch.ones(3, 3, 5, 4))
