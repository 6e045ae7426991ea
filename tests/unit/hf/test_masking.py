"""Packed masks against boolean indexing, for every dtype, odd widths and both code paths."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from guided.hf import masking


def packed_of(mask: np.ndarray) -> np.ndarray:
    words = np.zeros((mask.shape[0], masking.n_words(mask.shape[1])), np.uint32)
    raw = np.packbits(mask, axis=1, bitorder="little")
    words.view(np.uint8)[:, : raw.shape[1]] = raw
    return words


DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64]


@pytest.mark.parametrize("dtype", DTYPES)
@given(rows=st.integers(1, 5), width=st.integers(1, 200), density=st.floats(0, 1), seed=st.integers(0, 2**20))
def test_scores_are_kept_or_minus_infinity(dtype, rows, width, density, seed):
    rng = np.random.default_rng(seed)
    mask = rng.random((rows, width)) < density
    scores = torch.from_numpy(rng.normal(size=(rows, width)) * 1e3).to(dtype)
    scores[0, 0] = torch.inf
    before = scores.clone()
    result = masking.mask_scores(scores, packed_of(mask))
    expected = scores.clone()
    expected[~torch.from_numpy(mask)] = -torch.inf
    assert result.dtype is dtype
    assert torch.equal(result, expected)
    assert torch.equal(scores, before), "the input was written to"


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_device_path_gives_the_same(dtype, monkeypatch):
    rng = np.random.default_rng(1)
    mask = rng.random((3, 77)) < 0.5
    scores = torch.from_numpy(rng.normal(size=(3, 77))).to(dtype)
    expected = masking.mask_scores(scores, packed_of(mask))

    class Elsewhere(torch.Tensor):
        """A CPU tensor that the function takes for one on another device."""

        @property
        def device(self):
            return _Device()

    class _Device:
        type = "elsewhere"

        def __eq__(self, other):
            return True

        def __hash__(self):
            return 0

    table = masking._device_bounds(dtype, torch.device("cpu"))
    monkeypatch.setattr(masking, "_device_bounds", lambda *_: table)
    monkeypatch.setattr(torch.Tensor, "to", _to_ignoring(_Device, torch.Tensor.to))
    found = masking.mask_scores(scores.as_subclass(Elsewhere), packed_of(mask))
    assert torch.equal(found.as_subclass(torch.Tensor), expected)


def _to_ignoring(kind, original):
    def to(self, target, *rest):
        return self if isinstance(target, kind) else original(self, target, *rest)

    return to


def test_slices_and_transposes_are_fine():
    rng = np.random.default_rng(2)
    mask = rng.random((2, 40)) < 0.5
    scores = torch.randn(40, 2).T
    expected = scores.clone()
    expected[~torch.from_numpy(mask)] = -torch.inf
    assert torch.equal(masking.mask_scores(scores, packed_of(mask)), expected)
