"""The fifty cases in transformers' continuous batching, which is at hand wherever transformers is."""

from __future__ import annotations

import pytest

import guided.hf
from tests.serving.cases import BUDGET, CASES
from tests.serving.conftest import answer, differing

pytest.importorskip("transformers.generation.continuous_batching.cb_logits_processors")


def _check(nano, answered):
    from transformers import ContinuousBatchingConfig

    prompts, constraints = [each.case.prompt for each in answered], [each.constraint for each in answered]
    config = ContinuousBatchingConfig(num_blocks=64, max_batch_tokens=256)
    texts = guided.hf.generate_batch(nano, prompts, constraints, max_new_tokens=BUDGET, config=config)
    assert not differing(texts, answered)


def test_some_of_the_cases(nano):
    _check(nano, [answer(nano, case) for case in CASES[::24]])


@pytest.mark.slow
def test_the_fifty_cases(nano, answered):
    _check(nano, answered)
