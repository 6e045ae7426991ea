"""SMC steering: every particle tries several continuations, and resampling keeps the best without drawing any twice.

Lew et al., "Sequential Monte Carlo Steering of Large Language Models using Probabilistic Programs" (2023,
arXiv 2306.03081), with the thinning of Fearnhead and Clifford.  Unlike there, equal continuations are merged before
thinning, their weights added, so that a population never holds the same prefix twice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from guided.constraint.protocol import Constrains
from guided.infer.chance import Random, chance_of
from guided.infer.populations.particles import Particles, Status
from guided.infer.populations.resampling import Resample, optimal
from guided.infer.potentials.potential import Potential, as_potential
from guided.infer.result import Population
from guided.infer.runs.checkpoint import Checkpoint
from guided.infer.runs.progress import Progress
from guided.infer.token_samplers.awrs import AWRS
from guided.infer.token_samplers.token_sampler import Direct, TokenSampler
from guided.infer.weights import log_mean_exp, log_sum_exp
from guided.lm.model import LanguageModel

__all__ = ["smc_steer"]


def smc_steer(
    rng: Random,
    model: LanguageModel,
    prompt: Sequence[int],
    potential: Potential[Any] | Constrains,
    *,
    n: int = 8,
    expansions: int = 4,
    max_tokens: int = 256,
    sampler: TokenSampler | None = None,
    critic: Potential[Any] | Constrains | None = None,
    resample: Resample = optimal,
    proposal: LanguageModel | None = None,
    progress: Progress | None = None,
    save: str | Path | None = None,
    save_every: int = 16,
    resume: Checkpoint | str | Path | None = None,
) -> Population:
    """Keep at most ``n`` distinct weighted sequences, each of which tries at least ``expansions`` next tokens a step.

    Costs up to ``n * expansions`` draws a step and ``n`` rows of the model; while there are fewer sequences than ``n``,
    each tries more.  All else, errors included, is as in `guided.infer.smc`, but for ``log_ml_error``: sequences that
    were merged come from many draws, so one run cannot tell (infinite), and several are joined by `pooled`.  Raises
    `ValueError` for ``n`` or ``expansions`` below 1.
    """
    goal = as_potential(potential)
    judge = None if critic is None else as_potential(critic)
    if n < 1 or expansions < 1:
        raise ValueError(f"n and expansions are at least 1, not {n} and {expansions}")
    if sampler is None:
        sampler = AWRS() if goal.boolean else Direct()
    particles = Particles(chance_of(rng), model, prompt, goal, 1, max_tokens, critic=judge, proposal=proposal)
    resampled: list[int] = []
    problem = particles.problem(
        sampler="smc_steer", n=n, expansions=expansions, token_sampler=sampler, resample=resample
    )
    if resume is not None:
        kept = resume if isinstance(resume, Checkpoint) else Checkpoint.load(resume)
        kept.check(problem)
        particles.restore(kept)
        resampled.extend(kept.resampled)
    while particles.live:
        particles.untwist()
        last = particles.done + 1 == max_tokens
        parents = _expand(particles, 1 if last else n * expansions)
        tokens, added = particles.step(sampler)
        particles.criticise(tokens, twist=True)
        before = tuple(particles.logw)
        ancestors = _merge(particles)
        if len(ancestors) > n:
            chosen, weights = resample(particles.chance, particles.logw, n)
            particles.copy(chosen, weights)
            ancestors = [ancestors[i] for i in chosen]
            resampled.append(particles.done)
        particles.follow()
        if save is not None and (particles.done % save_every == 0 or not particles.live):
            particles.checkpoint(problem, resampled).save(save)
        if progress is not None:
            progress(particles.report(tokens, added, before, ancestors, parents))
    # The sum of weights estimates Z here, for all others the mean: scale, so that a population means the same.
    particles.logw = [weight + math.log(len(particles)) for weight in particles.logw]
    return Population(particles.results(), log_mean_exp(particles.logw), particles.cost, tuple(resampled))


def _expand(particles: Particles, draws: int) -> list[int]:
    """Split each live particle into equal shares, as many as make up ``draws`` in all; gives the parents."""
    live = particles.live
    copies = max(1, draws // len(live))
    parents = [i for i, status in enumerate(particles.status) for _ in range(copies if status is Status.LIVE else 1)]
    share = math.log(copies)
    weights = [particles.logw[i] - (share if particles.status[i] is Status.LIVE else 0.0) for i in parents]
    particles.copy(parents, weights)
    return parents


def _merge(particles: Particles) -> list[int]:
    """One particle for each distinct sequence, with the sum of weights; dead ones go, or one is left."""
    groups: dict[int, list[int]] = {}
    for i, node in enumerate(particles.nodes):
        if particles.status[i] is not Status.DEAD:
            groups.setdefault(node, []).append(i)
    if not groups:
        groups[particles.nodes[0]] = [0]
    first = [members[0] for members in groups.values()]
    particles.copy(first, [log_sum_exp([particles.logw[i] for i in members]) for members in groups.values()])
    return first
