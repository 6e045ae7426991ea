"""Sequential Monte Carlo over token sequences, and importance sampling, which is the same without resampling.

Loula et al. (ICLR 2025, arXiv 2504.13139) give the weights: the token sampler's for the potential, the critic's ratio
of consecutive prefixes for what is asked once a token; a forced end of text at the length limit conditions the target
on texts of at most ``max_tokens`` tokens, the end-of-text token counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from guided.constraint.protocol import Constrains
from guided.errors import UnsupportedError
from guided.infer.chance import Random, chance_of
from guided.infer.populations.particles import Particles
from guided.infer.populations.prefixes import Drafts
from guided.infer.populations.resampling import Resample, systematic
from guided.infer.populations.units import Unit, Units
from guided.infer.potentials.potential import Potential, as_potential
from guided.infer.result import Population
from guided.infer.runs.checkpoint import Checkpoint
from guided.infer.runs.progress import Progress
from guided.infer.token_samplers.awrs import AWRS
from guided.infer.token_samplers.token_sampler import Direct, TokenSampler
from guided.infer.weights import effective_sample_size
from guided.lm.model import LanguageModel

__all__ = ["importance", "smc"]


def smc(
    rng: Random,
    model: LanguageModel,
    prompt: Sequence[int],
    potential: Potential[Any] | Constrains,
    *,
    n: int = 16,
    max_tokens: int = 256,
    sampler: TokenSampler | None = None,
    critic: Potential[Any] | Constrains | None = None,
    ess_threshold: float = 0.5,
    resample: Resample = systematic,
    unit: Unit | None = None,
    proposal: LanguageModel | None = None,
    draft: Drafts | None = None,
    progress: Progress | None = None,
    save: str | Path | None = None,
    save_every: int = 16,
    resume: Checkpoint | str | Path | None = None,
) -> Population:
    """Draw ``n`` weighted sequences from the model times the potential times the critic, resampling as they grow.

    ``sampler`` folds the potential into each token's draw (default: `AWRS` if its weights are 0 and minus infinity,
    else `Direct`).  ``critic`` weighs the texts that end; while they grow, its `prefix` only says which particles
    deserve copies, and is taken back at the next step.  Resampling happens when the effective sample size falls below
    ``ess_threshold * n``; 0 never resamples, and then the critic is asked about whole texts only.  With a ``unit``
    (`words`, `lines`, `json_members`) particles are compared and resampled when all have ended one.  ``proposal`` is a
    model to draw tokens from instead; it must give no probability 0 to what ``model`` allows.  ``draft``, such as
    `guided.draft.auto()`, scores tokens ahead of time in one tree for all particles: tokens and weights are those of a
    run without it, but for rounding inside the model, in fewer passes; `Cost` counts what was drafted.

    Finished particles keep their weights, take part in resampling, and leave the model's batch; equal prefixes are
    computed once.  When every particle dies, because nothing allowed fits in ``max_tokens`` or was found,
    ``log_ml`` is minus infinity: no error and never NaN.  Raises `UnsatisfiableError` for a potential that forbids the
    empty prefix, and `PotentialError` for one that returns NaN or breaks its laws where that shows.

    Every ``save_every`` steps a checkpoint is written to ``save``; ``resume`` goes on from one, drawing what the saved
    run would have drawn (``rng`` is then not used); `GuidedError` says which argument is another one.
    """
    goal = as_potential(potential)
    judge = None if critic is None else as_potential(critic)
    if not 0 <= ess_threshold <= 1:
        raise ValueError(f"ess_threshold is a share of n between 0 and 1, not {ess_threshold}")
    if unit is not None and draft is not None:
        raise UnsupportedError("drafts follow particles of one length", where="unit", remedy="Leave out draft.")
    if sampler is None:
        sampler = AWRS() if goal.boolean else Direct()
    particles = Particles(
        chance_of(rng), model, prompt, goal, n, max_tokens, critic=judge, proposal=proposal, draft=draft
    )
    units = None if unit is None else Units(unit, goal.vocabulary, particles.tree)
    resampled: list[int] = []
    problem = particles.problem(
        sampler="smc", n=n, token_sampler=sampler, ess_threshold=float(ess_threshold), resample=resample, unit=unit
    )
    if resume is not None:
        kept = resume if isinstance(resume, Checkpoint) else Checkpoint.load(resume)
        kept.check(problem)
        particles.restore(kept)
        resampled.extend(kept.resampled)
    try:
        while particles.live:
            particles.untwist()
            tokens, added = particles.grow(sampler, units, twist=ess_threshold > 0, progress=progress)
            before = tuple(particles.logw)
            ancestors: list[int] | None = None
            if particles.live and 0 < effective_sample_size(before) < ess_threshold * n:
                ancestors, weights = resample(particles.chance, before, n)
                particles.copy(ancestors, weights)
                resampled.append(particles.done)
            particles.follow()
            if save is not None and (units or particles.done % save_every == 0 or not particles.live):
                particles.checkpoint(problem, resampled).save(save)
            if progress is not None:
                progress(particles.report(tokens, added, before, ancestors))
    finally:
        particles.close()
    return particles.population(resampled)


def importance(
    rng: Random,
    model: LanguageModel,
    prompt: Sequence[int],
    potential: Potential[Any] | Constrains,
    *,
    n: int = 16,
    max_tokens: int = 256,
    sampler: TokenSampler | None = None,
    critic: Potential[Any] | Constrains | None = None,
    proposal: LanguageModel | None = None,
    draft: Drafts | None = None,
    progress: Progress | None = None,
    save: str | Path | None = None,
    save_every: int = 16,
    resume: Checkpoint | str | Path | None = None,
) -> Population:
    """Draw ``n`` independent weighted sequences; as `smc` without resampling, the critic asked about whole texts only.

    With ``sampler=Direct()`` this is masking token by token, with the weights that correct it.
    """
    return smc(
        rng,
        model,
        prompt,
        potential,
        n=n,
        max_tokens=max_tokens,
        sampler=sampler,
        critic=critic,
        ess_threshold=0.0,
        proposal=proposal,
        draft=draft,
        progress=progress,
        save=save,
        save_every=save_every,
        resume=resume,
    )
