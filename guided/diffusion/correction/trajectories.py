"""Importance weights and sequential Monte Carlo over denoising trajectories: the denoiser's own law given a grammar.

A denoiser with an `Order` is a law over texts: a step scores the canvas, takes the order's positions ``A``, and draws
their tokens from the step's distributions ``p``, each by itself.  The target is that law of whole canvases, times the
indicator of the constraint, times a potential of the text, over ``Z``.

A step here draws ``x_A`` from the lattice of the canvas instead, so from ``q(x_A) = p(x_A) Z(x_A) / Z``, where ``Z`` is
the lattice's mass and ``Z(x_A)`` that of its texts with these tokens.  So its weight is ``p / q = Z / Z(x_A)``, and a
trajectory is weighted properly: ``E[w f(x)] = sum over texts of P(x) 1[x in L] f(x)``.  With no particle ever lost to
the constraint, weights vary only as far as the steps' laws disagree about the mass of the language.

Where limits cut a lattice (`guided.diffusion.lattice`), texts outside it cannot be drawn, and weights are those of the
law on the others; `LimitError` is raised unless that is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from guided.constraint.protocol import Constrains
from guided.diffusion.correction.orders import Order, Shuffled
from guided.diffusion.denoiser import Canvas, Denoiser, Noise, blank
from guided.diffusion.lattice import Lattice, LatticeLimits
from guided.diffusion.law import log_softmax
from guided.errors import GuidedError, LimitError, UnsupportedError
from guided.infer.chance import Chance, Random, chance_of
from guided.infer.populations.resampling import Resample, systematic
from guided.infer.result import Cost, Population, particle_of
from guided.infer.weights import effective_sample_size, log_mean_exp, normalised, relative_error

__all__ = ["TextPotential", "importance", "smc"]

TextPotential = Callable[[tuple[int, ...]], float]
"""The log weight of the tokens before the end of a text; minus infinity for a text that is not wanted."""


@dataclass(frozen=True, eq=False)
class _Particle:
    canvas: Canvas
    logw: float = 0.0
    increments: tuple[float, ...] = ()
    founder: int = 0


def smc(
    rng: Random,
    denoiser: Denoiser,
    prompt: Sequence[int],
    constraint: Constrains,
    length: int,
    *,
    n: int = 16,
    order: Order | None = None,
    potential: TextPotential | None = None,
    fixed: Mapping[int, int] | None = None,
    ess_threshold: float = 0.5,
    resample: Resample = systematic,
    limits: LatticeLimits | None = None,
    cut: bool = False,
) -> Population:
    """Draw ``n`` weighted texts of ``length`` positions from the denoiser's law given the constraint.

    ``order`` (default: `Shuffled`, one position a step) belongs to the law.  ``potential`` weighs texts once they are
    whole.  Resampling happens when the effective sample size falls below ``ess_threshold * n``; 0 never resamples.
    ``fixed`` tokens, by position, are given: the law is that of the others.  ``log_ml`` estimates the logarithm of the
    probability that the denoiser alone would meet the constraint (times the potential); its exponential is unbiased.

    Raises `UnsatisfiableError` where no text fits; `LimitError` where the limits cut a lattice, unless ``cut`` says
    that the texts which are left will do; `UnsupportedError` for uniform noise, whose trajectories take tokens back;
    `GuidedError` for a potential that is no number or plus infinity.
    """
    if denoiser.noise is not Noise.MASKED:
        raise UnsupportedError(
            "a denoiser of uniform noise takes tokens back, so a trajectory's weight is no product over commits",
            remedy="Use a masked denoiser.",
        )
    if n < 1 or not 0 <= ess_threshold <= 1:
        raise GuidedError(
            f"{n} particles, resampled below {ess_threshold} of them",
            remedy="Ask for at least one, and a share between 0 and 1.",
        )
    run = _Run(chance_of(rng), denoiser, constraint, order or Shuffled(), potential, limits or LatticeLimits(), cut)
    begun = blank(denoiser, prompt, length, fixed)
    particles = [_Particle(begun, founder=i) for i in range(n)]
    resampled: list[int] = []
    step = 0
    while any(particle.canvas.unknown for particle in particles):
        particles = run.stepped(particles)
        step += 1
        logw = [particle.logw for particle in particles]
        is_open = any(particle.canvas.unknown for particle in particles)
        if is_open and 0 < effective_sample_size(logw) < ess_threshold * n:
            ancestors, weights = resample(run.chance, logw, n)
            particles = [
                _Particle(particles[i].canvas, weight, particles[i].increments, particles[i].founder)
                for i, weight in zip(ancestors, weights, strict=True)
            ]
            resampled.append(step)
    if not step:
        # Everything was given: a lattice still says whether it is a text of the constraint.
        run.lattice(begun, np.zeros((length, denoiser.width)))
    return run.population([run.weighed(particle) for particle in particles], tuple(resampled))


def importance(
    rng: Random,
    denoiser: Denoiser,
    prompt: Sequence[int],
    constraint: Constrains,
    length: int,
    *,
    n: int = 16,
    order: Order | None = None,
    potential: TextPotential | None = None,
    fixed: Mapping[int, int] | None = None,
    limits: LatticeLimits | None = None,
    cut: bool = False,
) -> Population:
    """Draw ``n`` independent weighted texts; as `smc` without resampling."""
    return smc(
        rng,
        denoiser,
        prompt,
        constraint,
        length,
        n=n,
        order=order,
        potential=potential,
        fixed=fixed,
        ess_threshold=0.0,
        limits=limits,
        cut=cut,
    )


class _Run:
    """What all particles share, and what was counted."""

    def __init__(
        self,
        chance: Chance,
        denoiser: Denoiser,
        constraint: Constrains,
        order: Order,
        potential: TextPotential | None,
        limits: LatticeLimits,
        cut: bool,
    ) -> None:
        self.chance = chance
        self.denoiser, self.constraint, self.order = denoiser, constraint, order
        self.potential, self.limits, self.cut = potential, limits, cut
        self.passes = self.rows = self.lattices = self.drawn = 0

    def stepped(self, particles: Sequence[_Particle]) -> list[_Particle]:
        """One step of each particle that is not whole; equal canvases are scored and solved once."""
        keys = [(p.canvas.tokens.tobytes(), p.canvas.known.tobytes()) for p in particles]
        open_ = {key: p.canvas for key, p in zip(keys, particles, strict=True) if p.canvas.unknown}
        scores = self.denoiser.scores(list(open_.values()))
        self.passes, self.rows = self.passes + 1, self.rows + len(open_)
        solved = {}
        for (key, canvas), row in zip(open_.items(), scores, strict=True):
            logp = log_softmax(row)
            solved[key] = (logp, self.lattice(canvas, logp))
        return [
            self._commit(particle, *solved[key]) if particle.canvas.unknown else particle
            for key, particle in zip(keys, particles, strict=True)
        ]

    def lattice(self, canvas: Canvas, logp: NDArray[np.float64]) -> Lattice:
        """The texts that fit a canvas."""
        known = {place: int(canvas.tokens[place]) for place in np.flatnonzero(canvas.known).tolist()}
        found = Lattice(self.constraint, logp, known, pad_id=self.denoiser.pad_id, limits=self.limits)
        self.lattices += 1
        if found.is_cut and not self.cut:
            raise LimitError(
                "a lattice was cut, and what was cut is never drawn: the logarithm of the constraint's mass may be "
                f"{found.bound:.3g} more",
                remedy="Pass LatticeLimits(states=..., tokens=...), or cut=True to sample among what is left.",
            )
        return found

    def _commit(self, particle: _Particle, logp: NDArray[np.float64], lattice: Lattice) -> _Particle:
        places = self.order.places(particle.canvas, logp, self.chance)
        text = lattice.sample(self.chance)[0]
        tokens = {place: int(text[place]) for place in places}
        self.drawn += len(places)
        # p over q; the lattice's mass of these tokens has p in it.
        drawn = sum(float(logp[place, token]) for place, token in tokens.items())
        added = drawn + lattice.log_z - lattice.log_mass(tokens)
        return _Particle(
            particle.canvas.filled(list(tokens), list(tokens.values())),
            particle.logw + added,
            (*particle.increments, added),
            particle.founder,
        )

    def weighed(self, particle: _Particle) -> _Particle:
        """A whole text with the potential's weight."""
        if self.potential is None:
            return particle
        weight = float(self.potential(self._text(particle.canvas)))
        if math.isnan(weight) or weight == math.inf:
            raise GuidedError(
                f"the potential of a text is {weight}",
                where=repr(self._text(particle.canvas)),
                remedy="Return a logarithm: a number, or minus infinity.",
            )
        return _Particle(particle.canvas, particle.logw + weight, (*particle.increments, weight), particle.founder)

    def _text(self, canvas: Canvas) -> tuple[int, ...]:
        tokens: list[int] = canvas.tokens.tolist()
        ends = [place for place, token in enumerate(tokens) if token in self._ends]
        return tuple(tokens[: ends[0]] if ends else tokens)

    @property
    def _ends(self) -> frozenset[int]:
        return frozenset(self.constraint.vocabulary.eos_ids)

    def population(self, particles: Sequence[_Particle], resampled: tuple[int, ...]) -> Population:
        """What was drawn."""
        logw = [particle.logw for particle in particles]
        shares = np.zeros(len(particles))
        np.add.at(shares, [particle.founder for particle in particles], normalised(logw))
        vocabulary = self.constraint.vocabulary
        return Population(
            tuple(
                particle_of(vocabulary, each.canvas.tokens.tolist(), logw=each.logw, increments=each.increments)
                for each in particles
            ),
            log_mean_exp(logw),
            Cost(constraint_calls=self.lattices, model_calls=self.passes, model_rows=self.rows, tokens=self.drawn),
            resampled,
            relative_error(shares),
        )
