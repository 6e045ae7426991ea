"""ASAp: masked sampling that learns how much of each prefix can still end well, and leans away from the rest.

Park et al., "Grammar-aligned decoding", NeurIPS 2024 (arXiv:2405.21047), algorithm 2.  Unlike `guided.infer.cars` every
sequence is in the language from the first one on, drawn from a distribution that begins as masked sampling and goes to
``p(x) 1[x in L] / Z``; samples depend on those before them, and early ones have the wrong distribution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from guided.constraint.protocol import Constrains
from guided.infer.attempts import Attempt, Learned, keep, require_boolean
from guided.infer.chance import Chance, Random, chance_of
from guided.infer.exploration import MEMORY, Exploration
from guided.infer.potential import Potential
from guided.infer.result import Samples
from guided.infer.rounds import RoundProgress
from guided.infer.visited import ROOT
from guided.lm.model import LanguageModel

__all__ = ["asap"]


def asap(
    model: LanguageModel,
    prompt: Sequence[int],
    potential: Potential[Any] | Constrains,
    n: int,
    *,
    rng: Random = None,
    max_tokens: int = 256,
    batch: int = 1,
    max_attempts: int = 100_000,
    memory: int = MEMORY,
    learned: Learned | None = None,
    progress: RoundProgress | None = None,
) -> Samples:
    """Draw ``n`` sequences of at most ``max_tokens`` tokens, each closer to ``p(x) 1[x in L] / Z`` than the last.

    At each prefix y the token v is drawn by ``p(v | y) c(yv)``, where ``c`` bounds the probability of ending in the
    language: 1 for prefixes not visited yet, and else ``c(y) = sum over allowed v of p(v | y) c(yv)`` with the model's
    own probabilities.  The first sample is masked sampling.  Sequences of one ``batch`` are drawn from the same ``c``;
    1 is the algorithm of the paper.  A prefix that ``max_tokens`` leaves no way to end fails, is learned like any
    other, and is not among the samples.

    The result's ``log_ml`` is ``c`` of the prompt at the end: an upper bound that falls to ``log Z``.  ``learned``
    holds what earlier calls learned, and learns more.  Errors and the rest are as with `guided.infer.cars.cars`.
    """
    exploration = Exploration(
        model,
        prompt,
        potential,
        max_tokens=max_tokens,
        memory=memory,
        batch=batch,
        trie=None if learned is None else learned.trie,
    )
    require_boolean(exploration.potential, "asap")
    learned = Learned() if learned is None else learned
    learned.begin(exploration, "asap")
    chance = chance_of(rng)
    samples = keep(
        lambda size: _draw(exploration, chance, size), exploration, learned, n, batch, max_attempts, progress
    )
    return Samples(samples.particles, samples.acceptance, learned.log_bound, samples.cost)


def _draw(exploration: Exploration, chance: Chance, n: int) -> list[Attempt]:
    """Draw ``n`` sequences side by side, then settle what they visited."""
    trie = exploration.trie
    found: list[Attempt | None] = [None] * n
    at = [ROOT] * n
    alive = list(range(n))
    while alive:
        rows = exploration.rows([at[i] for i in alive])
        drawn: list[int] = []
        for i, row in zip(alive, rows, strict=True):
            weights = trie.weights(at[i], row)
            top = float(weights.max(initial=-math.inf))
            drawn.append(-1 if top == -math.inf else int(row.ids[chance.index(np.exp(weights - top))]))
        for i, row, token in zip(alive, rows, drawn, strict=True):
            if token < 0:
                found[i] = Attempt(at[i], token, kept=False)
                continue
            exploration.counts.tokens += 1
            at[i] = exploration.child(at[i], row, token)
            if token in exploration.eos_ids:
                found[i] = Attempt(at[i])
        alive = [i for i in alive if found[i] is None]
    done = [attempt for attempt in found if attempt is not None]
    trie.settle(attempt.node for attempt in done)
    return done
