"""ASAp: masked sampling that learns how much of each prefix can still end well, and leans away from the rest.

Park et al., "Grammar-aligned decoding", NeurIPS 2024 (arXiv:2405.21047), algorithm 2.  Unlike `guided.infer.cars` every
sequence is in the language from the first one on, drawn from a distribution that begins as masked sampling and goes to
``p(x) 1[x in L] / Z``; samples depend on those before them, and early ones have the wrong distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from guided.constraint.protocol import Constrains
from guided.infer.chance import Random
from guided.infer.potentials.potential import Potential
from guided.infer.result import Samples
from guided.infer.runs.rounds import RoundProgress
from guided.infer.sequences.attempts import Attempt, Learned, Run, require_boolean
from guided.infer.sequences.exploration import MEMORY
from guided.infer.sequences.masked import continued
from guided.infer.sequences.visited import ROOT
from guided.lm.model import LanguageModel

__all__ = ["asap"]


def asap(
    rng: Random,
    model: LanguageModel,
    prompt: Sequence[int],
    potential: Potential[Any] | Constrains,
    *,
    n: int = 16,
    max_tokens: int = 256,
    batch: int = 1,
    max_attempts: int = 10_000,
    memory: int = MEMORY,
    learned: Learned | None = None,
    progress: RoundProgress | None = None,
    save: str | Path | None = None,
    save_every: int = 16,
    resume: str | Path | None = None,
) -> Samples:
    """Draw ``n`` sequences of at most ``max_tokens`` tokens, each closer to ``p(x) 1[x in L] / Z`` than the last.

    At each prefix y the token v is drawn by ``p(v | y) c(yv)``, where ``c`` bounds the probability of ending in the
    language: 1 for prefixes not visited yet, and else ``c(y) = sum over allowed v of p(v | y) c(yv)`` with the model's
    own probabilities.  The first sample is masked sampling.  Sequences of one ``batch`` are drawn from the same ``c``;
    1 is the algorithm of the paper.  A prefix that ``max_tokens`` leaves no way to end fails, is learned like any
    other, and is not among the samples.

    The result's ``log_ml`` is ``c`` of the prompt at the end: an upper bound that falls to ``log Z``.  The rest, and
    the errors, are as with `guided.infer.cars`.
    """
    run = Run(
        "asap",
        rng,
        model,
        prompt,
        potential,
        max_tokens=max_tokens,
        memory=memory,
        batch=batch,
        learned=learned,
        resume=resume,
    )
    require_boolean(run.exploration.potential, "asap")

    def attempts(size: int) -> list[Attempt]:
        exploration = run.exploration
        reached = continued(exploration, run.chance, [ROOT] * size, exploration.trie.weights)
        exploration.trie.settle(reached)
        ends = [exploration.is_end(node) for node in reached]
        return [Attempt(node, None if end else -1, kept=end) for node, end in zip(reached, ends, strict=True)]

    samples = run.samples(attempts, n, max_attempts=max_attempts, progress=progress, save=save, save_every=save_every)
    return replace(samples, log_ml=run.learned.log_bound, log_ml_error=None)
