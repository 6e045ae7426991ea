"""Rejection sampling: draw from the model, keep what the potential accepts.  Nothing is learned from failures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from guided.constraint.protocol import Constrains
from guided.infer.chance import Random
from guided.infer.errors import PotentialError
from guided.infer.potentials.potential import Potential
from guided.infer.result import Samples
from guided.infer.runs.rounds import RoundProgress
from guided.infer.sequences.attempts import Attempt, Run
from guided.infer.sequences.cars import Learning, Unmasked
from guided.infer.sequences.exploration import MEMORY
from guided.lm.model import LanguageModel

__all__ = ["rejection"]


def rejection(
    rng: Random,
    model: LanguageModel,
    prompt: Sequence[int],
    potential: Potential[Any] | Constrains,
    *,
    n: int = 16,
    max_tokens: int = 256,
    batch: int = 16,
    max_attempts: int = 10_000,
    memory: int = MEMORY,
    progress: RoundProgress | None = None,
    save: str | Path | None = None,
    save_every: int = 16,
    resume: str | Path | None = None,
) -> Samples:
    """Draw ``n`` independent sequences from ``p(x) potential(x) / Z``, exactly, of at most ``max_tokens`` tokens.

    A sequence is given up at the first token that the potential forbids.  One that ends is kept with the probability
    ``exp(complete(x))``, so no weight may exceed 1: `PotentialError` names the first that does.  ``log_ml`` is the
    logarithm of an unbiased estimate of ``Z``: with the n-th sample in attempt N, ``(n - 1) / (N - 1)``, and the share
    kept where ``max_attempts`` ended it first; None for one sample, which says nothing without bias.  The rest is as
    with `guided.infer.cars`, which needs fewer attempts for the same samples where the potential is Boolean.
    """
    run = Run(
        "rejection",
        rng,
        model,
        prompt,
        potential,
        max_tokens=max_tokens,
        memory=memory,
        batch=batch,
        resume=resume,
    )
    walk = Unmasked(run.exploration, Learning.NOTHING, run.chance)

    def attempts(size: int) -> list[Attempt]:
        found = walk.attempts(size)
        return found if run.exploration.potential.boolean else [_judged(run, attempt) for attempt in found]

    return run.samples(attempts, n, max_attempts=max_attempts, progress=progress, save=save, save_every=save_every)


def _judged(run: Run, attempt: Attempt) -> Attempt:
    """Keep a sequence that ended with the probability that is its weight."""
    if not attempt.kept:
        return attempt
    exploration = run.exploration
    state = exploration.state(int(exploration.trie.parent[attempt.node]))
    exploration.counts.potential += 1
    logw = exploration.potential.checked(exploration.potential.complete_at(state))
    if logw > 0:
        raise PotentialError(
            f"{exploration.potential!r} gave a text the log weight {logw}, above 0",
            remedy="Rejection sampling needs weights of at most 1: subtract a bound, or use smc or mcmc.",
        )
    if logw == 0:
        return attempt
    return replace(attempt, kept=run.chance.index([math.exp(logw), -math.expm1(logw)]) == 0)
