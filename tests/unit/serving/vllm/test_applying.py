"""`apply_step` against the bits of the masks: rows in any order, rows without a mask, all kinds of scores."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from guided.serving.vllm.applying import StepMasks, apply_step


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("n_rows", [1, 5, 40])
def test_scores_are_forbidden_where_a_bit_is_0(dtype, n_rows):
    rng = np.random.default_rng(n_rows)
    width, words = 203, 7
    names = [f"request {i}" for i in range(n_rows)]
    ids = [str(each) for each in rng.permutation(names)[: max(1, n_rows - 2)]]
    # Some rows allow nothing, some all.
    bits = rng.random((8, 32 * words)) < rng.choice([0, 0.02, 0.5, 0.98, 1], 8)[:, None]
    bits = bits[rng.integers(0, 8, len(ids))]
    masks = np.packbits(bits, axis=1, bitorder="little").view(np.int32).view(StepMasks)
    scores = torch.from_numpy(rng.normal(size=(n_rows, width))).to(dtype)
    wanted = scores.clone()
    for row, name in enumerate(names):
        if name in ids:
            wanted[row, torch.from_numpy(~bits[ids.index(name), :width])] = -torch.inf
    apply_step(masks, ids, names, scores)
    assert torch.equal(scores, wanted)
