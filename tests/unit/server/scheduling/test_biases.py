"""Biases of tokens and penalties, beside OpenAI's formula written out."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import torch

from guided.constraint.effects.shared_rows import with_address
from guided.server.scheduling.biases import Biases
from guided.server.scheduling.drawing import Chosen
from guided.server.scheduling.jobs import Job
from guided.server.scheduling.laws import choose
from tests.tolerances import DOUBLE


def test_laws_are_those_of_the_formula() -> None:
    rng = np.random.default_rng(0)
    width, rows = 40, 6
    jobs = [Job((1,), temperature=temperature) for temperature in (0.0, 1.0, 0.5) * 2]
    biases = [Biases({3: 4.0, 39: -100.0}, presence=row / 3, frequency=-row / 5) for row in range(rows - 1)]
    for _ in range(20):
        logits = torch.from_numpy(rng.normal(size=(rows, width)))
        allowed = rng.random((rows, width)) < 0.5
        allowed[:, 3] = True
        words = np.packbits(np.pad(allowed, ((0, 0), (0, 24))), axis=1, bitorder="little").view(np.uint32)
        counts = [Counter(rng.integers(0, width, 30).tolist()) for _ in range(rows)]
        # The last row has none.
        shifts = [*(bias.shift(count) for bias, count in zip(biases, counts, strict=False)), {}]
        found = choose(logits, [with_address(row) for row in words], jobs, rng.random(rows).tolist(), shifts)
        for row, chosen in enumerate(found):
            assert isinstance(chosen, Chosen)
            expected = logits[row].clone()
            if row < rows - 1:
                for token in range(width):
                    c = counts[row][token]
                    expected[token] -= c * biases[row].frequency + (c > 0) * biases[row].presence
                expected[3] += 4.0
                expected[39] -= 100.0
            kept = torch.where(torch.from_numpy(allowed[row]), expected, -torch.inf)
            removed = 1 - float((kept.logsumexp(-1) - expected.logsumexp(-1)).exp())
            law = (kept / (jobs[row].temperature or 1)).log_softmax(-1)
            assert math.isclose(chosen.removed, removed, abs_tol=DOUBLE)
            assert math.isclose(chosen.logprob, float(law[chosen.id]), abs_tol=DOUBLE)
            assert math.isclose(chosen.model_logprob, float(logits[row].log_softmax(-1)[chosen.id]), abs_tol=DOUBLE)
            if not jobs[row].temperature:
                assert chosen.id == int(kept.argmax())


def test_what_changes_nothing_is_false() -> None:
    assert not Biases() and not Biases({5: 0.0}) and Biases({5: 1.0}) and Biases(presence=-1.0)
