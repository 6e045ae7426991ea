"""`draft_text`: one text with a draft, told token by token with whether the draft had it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch

from guided.draft.loop.speculate import Speculated, speculate
from guided.draft.masks import MaskedRows, RowMasks
from guided.lm import LanguageModel, transformed
from guided.server.scheduling import Job
from guided.steer import Stack

__all__ = ["draft_text"]


def draft_text(model: LanguageModel, job: Job, emit: Callable[[int, bool], None]) -> Speculated:
    """Write the text of a job that has a draft; ``emit`` is called for each token, with whether it was drafted.

    All tokens of a round but the last one were drafted, so they are told once the round is over.
    """
    assert job.draft is not None
    masks = RowMasks(job.constraint, end_in_time=True)
    target = model
    if job.steer is not None:
        pair = [] if job.steer.adaptive is None else [job.steer.adaptive]
        stack = Stack([*pair, MaskedRows({0: (masks, job.max_new_tokens)}), *job.steer.steerers])
        target = stack.over(model, same_tokenizer=True)
    if job.temperature not in (0.0, 1.0):
        target = transformed(target, temperature=job.temperature)
    waiting: list[int] = []

    def tell(_: object) -> None:
        for i, token in enumerate(waiting):
            emit(token, i < len(waiting) - 1)
        waiting.clear()

    def watch(row: int, emitted: Sequence[int]) -> bool:
        waiting.append(emitted[-1])
        return False

    with torch.no_grad():
        (written,), _ = speculate(
            np.random.default_rng(job.seed), target, [job.prompt], [job.constraint], job.draft.drafter, masks=[masks],
            max_tokens=job.max_new_tokens, greedy=job.temperature == 0, policy=job.draft.policy, progress=tell,
            watch=watch, by_block=job.draft.by_block,
        )  # fmt: skip
    tell(None)
    return written
