"""Masking token by token, which draws from the wrong distribution: the baseline that the other samplers correct."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from guided.constraint.protocol import Constrains
from guided.infer.chance import Random, chance_of
from guided.infer.populations.particles import Particles
from guided.infer.potentials.potential import Potential, as_potential
from guided.infer.result import Samples
from guided.infer.runs.progress import Progress
from guided.infer.token_samplers.token_sampler import Direct, TokenSampler
from guided.lm.model import LanguageModel

__all__ = ["local"]


def local(
    rng: Random,
    model: LanguageModel,
    prompt: Sequence[int],
    potential: Potential[Any] | Constrains,
    *,
    n: int = 16,
    max_tokens: int = 256,
    sampler: TokenSampler | None = None,
    progress: Progress | None = None,
) -> Samples:
    """Draw ``n`` sequences, each token from the model's distribution under the mask, normalised anew at every step.

    ``increments`` of a particle are the logarithms of what the mask kept, token by token; their sum is the importance
    weight that is ignored here.  A text that is longer than ``max_tokens`` stays unfinished.  ``sampler`` is `Direct`;
    ``AWRS(proper_weights=False)`` draws the same without masks, and then knows no increments but 0.
    """
    particles = Particles(chance_of(rng), model, prompt, as_potential(potential), n, max_tokens)
    way = Direct() if sampler is None else sampler
    while particles.live and particles.done < max_tokens:
        tokens, added = particles.step(way, force_end=False)
        if particles.done < max_tokens:
            particles.follow()
        if progress is not None:
            progress(particles.report(tokens, added, particles.logw, None))
    found = tuple(replace(particle, logw=0.0) for particle in particles.results())
    return Samples(found, sum(particle.finished for particle in found) / n, None, particles.cost)
