"""Packed masks on scores against boolean indexing: every dtype, odd widths, all three ways of applying them."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from importlib.metadata import version

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

import guided
from guided import tokenset
from guided.constraint.effects.shared_rows import KeptRow, with_address
from guided.hf.masking import apply as masking

DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64]


def packed_of(mask: np.ndarray) -> np.ndarray:
    words = np.zeros((mask.shape[0], tokenset.n_words(mask.shape[1])), np.uint32)
    raw = np.packbits(mask, axis=1, bitorder="little")
    words.view(np.uint8)[:, : raw.shape[1]] = raw
    return words


def kept_of(mask: np.ndarray) -> list[KeptRow]:
    return [with_address(row.copy()) for row in packed_of(mask)]


def random_mask(rng, rows: int, width: int) -> np.ndarray:
    """Each row and each word has its own density, so that empty, full, nearly full and mixed words all come up."""
    density = rng.choice([0, 0.01, 0.5, 0.97, 1], (rows, (width + 31) // 32))
    return rng.random((rows, width)) < np.repeat(density, 32, axis=1)[:, :width]


def random_scores(rng, rows: int, width: int, dtype: torch.dtype) -> torch.Tensor:
    scores = torch.from_numpy(rng.normal(size=(rows, width)) * 1e3).to(dtype)
    special = torch.tensor([torch.inf, -torch.inf, torch.nan, -0.0], dtype=dtype)
    for i in range(rows):
        scores[i, rng.integers(width)] = special[rng.integers(4)]
    return scores


def masked(scores: torch.Tensor, mask: np.ndarray) -> torch.Tensor:
    expected = scores.clone()
    expected[~torch.from_numpy(mask)] = -torch.inf
    return expected


def same(found: torch.Tensor, expected: torch.Tensor) -> bool:
    return (
        found.dtype is expected.dtype
        and torch.equal(found.isnan(), expected.isnan())
        and torch.equal(found.nan_to_num(7.0), expected.nan_to_num(7.0))
    )


@pytest.mark.parametrize("dtype", DTYPES)
@given(rows=st.integers(1, 5), width=st.integers(1, 200), threads=st.integers(1, 3), seed=st.integers(0, 2**20))
def test_scores_are_kept_or_minus_infinity(dtype, rows, width, threads, seed):
    rng = np.random.default_rng(seed)
    mask = random_mask(rng, rows, width)
    scores = random_scores(rng, rows, width, dtype)
    expected = masked(scores, mask)
    before = scores.clone()
    assert same(masking.mask_scores(scores, kept_of(mask), threads=threads), expected)
    assert same(scores, before), "the input was written to"
    bitmask = torch.from_numpy(packed_of(mask).view(np.int32))
    assert guided.apply_masks(scores, bitmask, threads=threads) is scores
    assert same(scores, expected)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [1, 31, 77, 32 * masking.BLOCK_WORDS + 40])
def test_the_path_of_other_devices_gives_the_same(dtype, width):
    rng = np.random.default_rng(width)
    mask = random_mask(rng, 3, width)
    scores = random_scores(rng, 3, width, dtype)
    expected = masked(scores, mask)
    masking._apply_anywhere(scores, torch.from_numpy(packed_of(mask).view(np.int32)))
    assert same(scores, expected)


@pytest.mark.parametrize("plain", [False, True])
def test_what_lies_beyond_the_mask_is_forbidden(plain):
    scores = torch.zeros(2, 100)
    packed = np.full((2, 2), 0xFFFFFFFF, np.uint32)
    if plain:
        masking._apply_anywhere(scores, torch.from_numpy(packed.view(np.int32)))
    else:
        guided.apply_masks(scores, packed)
    assert (scores[:, :64] == 0).all() and (scores[:, 64:] == -torch.inf).all()


def test_rows_that_lie_apart_and_columns_that_do():
    rng = np.random.default_rng(2)
    mask = random_mask(rng, 4, 90)
    wide = torch.randn(4, 300)
    rest = wide.clone()
    part = wide[:, 17:107]
    expected = masked(part, mask)
    guided.apply_masks(part, packed_of(mask))
    assert torch.equal(wide[:, 17:107], expected)
    assert torch.equal(wide[:, :17], rest[:, :17]) and torch.equal(wide[:, 107:], rest[:, 107:]), "written outside"
    every_other = torch.randn(8, 90)[::2]
    expected = masked(every_other, mask)
    assert torch.equal(guided.apply_masks(every_other, packed_of(mask), threads=2), expected)
    transposed = torch.randn(90, 4).T
    expected = masked(transposed, mask)
    assert torch.equal(masking.mask_scores(transposed, kept_of(mask)), expected)
    assert torch.equal(guided.apply_masks(transposed, packed_of(mask)), expected)


def test_logits_under_autograd_stay_differentiable():
    leaf = torch.randn(2, 70, requires_grad=True)
    mask = random_mask(np.random.default_rng(3), 2, 70)
    logits = leaf * 2
    guided.apply_masks(logits, packed_of(mask))
    logits[torch.from_numpy(mask)].sum().backward()
    assert torch.equal(leaf.grad == 2, torch.from_numpy(mask))


def test_empty_batches():
    assert guided.apply_masks(torch.zeros(0, 50), np.zeros((0, 2), np.uint32)).shape == (0, 50)


def test_what_does_not_fit_is_refused():
    with pytest.raises(guided.VocabularyError, match="width 64"):
        guided.apply_masks(torch.zeros(1, 64), np.zeros((1, 3), np.uint32))
    with pytest.raises(ValueError, match="2 masks for 1 rows"):
        guided.apply_masks(torch.zeros(1, 64), np.zeros((2, 2), np.uint32))
    with pytest.raises(TypeError, match="int64"):
        guided.apply_masks(torch.zeros(1, 64), np.zeros((1, 2), np.int64))
    with pytest.raises(ValueError, match="out must"):
        guided.apply_masks(torch.zeros(1, 64), np.zeros((1, 2), np.uint32), out=torch.zeros(1, 65))


def test_allocated_masks_forbid_everything():
    masks = guided.allocate_masks(3, 100)
    assert masks.shape == (3, 4) and masks.dtype is torch.int32 and not masks.any()
    if not torch.cuda.is_available():
        with pytest.raises(guided.GuidedError, match="page-locked"):
            guided.allocate_masks(3, 100, pinned=True)


INTERPRETED = """
import numpy as np, torch
from guided.hf.masking import triton_masks
from guided.hf.masking.triton_masks import WORDS, apply_on_gpu
from tests.unit.hf.masking.test_masking import DTYPES, masked, packed_of, random_mask, random_scores, same
rng = np.random.default_rng(5)
for dtype in DTYPES:
    # A block of the real size takes the interpreter a second; how a dtype is read does not depend on it.
    for words, rows, width in ((2, 1, 1), (2, 3, 77), (2, 1, 64), *([(WORDS, 2, 32 * WORDS + 33)] if dtype is DTYPES[0] else [])):
        triton_masks.WORDS = words
        mask = random_mask(rng, rows, width)
        wide = random_scores(rng, rows, width + 9, dtype)
        around = wide.clone()
        scores = wide[:, 4 : width + 4]
        expected = masked(scores, mask)
        apply_on_gpu(scores, torch.from_numpy(packed_of(mask).view(np.int32)))
        assert same(scores, expected), (dtype, rows, width)
        assert same(wide[:, :4], around[:, :4]) and same(wide[:, width + 4 :], around[:, width + 4 :])
    triton_masks.WORDS = 2
    scores = torch.zeros(2, 100, dtype=dtype)
    apply_on_gpu(scores, torch.full((2, 2), -1, dtype=torch.int32))
    assert (scores[:, :64] == 0).all() and (scores[:, 64:] == -torch.inf).all()
    apply_on_gpu(torch.zeros(0, 5, dtype=dtype), torch.zeros(0, 1, dtype=torch.int32))
print("same")
"""


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton is not installed")
@pytest.mark.skipif(
    importlib.util.find_spec("triton") is not None and Version(version("triton")) < Version("3.1"),
    reason="the interpreter of Triton 3.0 takes no tl.constexpr from a string, and is wrong for several rows",
)
def test_the_gpu_kernel_in_tritons_interpreter():
    # The interpreter is chosen when Triton is imported, hence a process of its own.
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    answer = subprocess.run([sys.executable, "-c", INTERPRETED], capture_output=True, text=True, env=environment)
    assert answer.stdout.strip() == "same", answer.stderr


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("dtype", DTYPES)
def test_on_a_gpu(dtype):
    rng = np.random.default_rng(6)
    mask = random_mask(rng, 5, 1000)
    scores = random_scores(rng, 5, 1000, dtype)
    expected = masked(scores, mask)
    found = guided.apply_masks(scores.cuda(), packed_of(mask))
    assert same(found.cpu(), expected)
    transposed = scores.T.contiguous().cuda().T
    assert same(guided.apply_masks(transposed, packed_of(mask)).cpu(), expected)
