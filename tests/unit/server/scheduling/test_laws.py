"""What rows draw: the kernel beside the same law by operations on whole tensors, row by row."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from guided import tokenset
from guided.constraint.effects.shared_rows import KeptRow, with_address
from guided.server.scheduling.drawing import Chosen, Refused
from guided.server.scheduling.jobs import Job
from guided.server.scheduling.laws import _chosen, choose
from guided.server.scheduling.masking import all_allowed
from tests.tolerances import DOUBLE

WIDTH = 150
WORDS = tokenset.n_words(WIDTH)


def some_masks(rng: np.random.Generator, n: int) -> list[KeptRow]:
    """Masks of no token, of one, of few and of most, and of all."""
    found = [all_allowed(WORDS)]
    for size in (0, 1, 2, 5, 70, 149):
        found.append(with_address(tokenset.of_ids(rng.choice(WIDTH, size, replace=False), WORDS)))
    return [found[number] for number in rng.integers(0, len(found), n)]


@pytest.mark.parametrize("seed", range(6))
def test_rows_are_drawn_by_their_masked_laws(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 40
    logits = torch.from_numpy(rng.normal(size=(n, WIDTH)) * 4)
    logits[rng.integers(n), rng.integers(WIDTH)] = [torch.nan, torch.inf, -torch.inf][seed % 3]
    logits[3] = -torch.inf
    logits[:, 90:] = logits[:, 90:].round()  # The greatest is often there twice.
    masks = some_masks(rng, n) if seed != 5 else None
    jobs = [Job((1,), temperature=float(rng.choice([0, 1, 0.5, 3]))) for _ in range(n)]
    numbers = [float(rng.choice([0.0, 1 - 2**-53, rng.random()])) for _ in range(n)]
    shifts = [{} if rng.random() < 0.5 else {int(rng.integers(WIDTH)): 3.0, 7: -100.0} for _ in range(n)]
    wanted = _chosen(logits, masks, jobs, numbers, shifts)
    for number, (one, other) in enumerate(zip(choose(logits, masks, jobs, numbers, shifts), wanted, strict=True)):
        assert type(one) is type(other) and (isinstance(one, Chosen) or one == other)
        if isinstance(one, Chosen) and isinstance(other, Chosen):
            assert one.id == other.id and (masks is None or tokenset.contains(masks[number][1], one.id))
            for name in ("logprob", "model_logprob", "removed"):
                assert math.isclose(getattr(one, name), getattr(other, name), abs_tol=DOUBLE), name


def test_no_row_depends_on_how_others_are_drawn() -> None:
    rng = np.random.default_rng(0)
    n = 12
    logits = torch.from_numpy(rng.normal(size=(n, WIDTH)).astype(np.float32))
    masks, numbers = some_masks(rng, n), rng.random(n).tolist()
    jobs = [Job((1,), temperature=0.7) for _ in range(n)]
    alone = choose(logits, masks, jobs, numbers)
    mixed = [replace(job, top_p=0.9) if row % 3 else job for row, job in enumerate(jobs)]
    found = choose(logits, masks, mixed, numbers)
    assert [found[row] for row in range(0, n, 3)] == alone[::3]
    truncated = _chosen(logits, masks, mixed, numbers, [])
    assert [found[row] for row in range(n) if row % 3] == [truncated[row] for row in range(n) if row % 3]
    assert any(isinstance(each, Refused) for each in alone) and len({type(each) for each in found}) == 2
