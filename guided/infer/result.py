"""What samplers return: weighted populations, unweighted samples, and what they cost.  Values only, no sampling."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from guided.html import number, share
from guided.infer.shown import drawn_html, log_ml_shown
from guided.infer.weights import effective_sample_size, family_shares, log_mean_exp, normalised, relative_error
from guided.vocab.vocabulary import Vocabulary

__all__ = ["Cost", "Particle", "Population", "Samples", "particle_of", "pooled"]


@dataclass(frozen=True)
class Cost:
    """What a run asked for, counted while it ran.

    >>> import guided
    >>> from guided import infer
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.6, 0.3, 0.1], eos_ids=[2])
    >>> language = guided.compile(guided.regex("a?b"), letters)
    >>> cost = infer.importance(0, model, [0], language, n=8, max_tokens=4).cost
    >>> cost.constraint_calls, cost.model_calls, cost.acceptance
    (4, 3, 1.0)
    """

    constraint_calls: int = 0
    """Questions put to potentials: one for each token tested, each mask filled, each text scored."""
    accepted: int = 0
    """Of the tokens tested one by one, those that were allowed."""
    tested: int = 0
    """Tokens tested one by one; 0 for samplers that fill masks."""
    model_calls: int = 0
    """Forward passes of the model."""
    model_rows: int = 0
    """Positions computed by the model, equal prefixes counted once where the sampler merges them."""
    tokens: int = 0
    """Tokens drawn for particles, the end-of-text token counted."""
    drafted: int = 0
    """Positions that the model scored before anybody asked for them."""
    met: int = 0
    """Of those, ones that particles came to."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.constraint_calls + other.constraint_calls,
            self.accepted + other.accepted,
            self.tested + other.tested,
            self.model_calls + other.model_calls,
            self.model_rows + other.model_rows,
            self.tokens + other.tokens,
            self.drafted + other.drafted,
            self.met + other.met,
        )

    @property
    def acceptance(self) -> float:
        """The share of tested tokens that were allowed; 1 where none was tested."""
        return self.accepted / self.tested if self.tested else 1.0

    def shown(self) -> list[tuple[str, object]]:
        """What a notebook says of it."""
        return [
            ("passes of the model", f"{self.model_calls:,} over {self.model_rows:,} positions"),
            ("questions to potentials", f"{self.constraint_calls:,}"),
        ]


@dataclass(frozen=True)
class Particle:
    """One generated sequence and its weight.

    >>> import guided
    >>> from guided import infer
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.6, 0.3, 0.1], eos_ids=[2])
    >>> language = guided.compile(guided.regex("a?b"), letters)
    >>> particle = infer.smc(0, model, [0], language, n=4, max_tokens=4).particles[0]
    >>> particle.text, particle.tokens, particle.finished
    ('ab', (0, 1, 2), True)
    """

    tokens: tuple[int, ...]
    """Without the prompt; with the end-of-text id where it came."""
    data: bytes
    """The bytes of the tokens; end-of-text and special ids have none."""
    logw: float = 0.0
    """The log weight; minus infinity for a sequence that died."""
    finished: bool = True
    """True when an end-of-text id came, and not the limit of tokens or a death."""
    increments: tuple[float, ...] = ()
    """What each token's draw added to ``logw``, along this particle's ancestry; empty where not recorded."""

    @property
    def text(self) -> str | None:
        """The bytes as text; None where they are not UTF-8."""
        try:
            return self.data.decode("utf-8")
        except UnicodeDecodeError:
            return None


def particle_of(
    vocabulary: Vocabulary | None,
    tokens: Sequence[int],
    *,
    logw: float = 0.0,
    finished: bool = True,
    increments: Sequence[float] = (),
) -> Particle:
    """Make a particle of generated token ids, whose bytes ``vocabulary`` knows (None: nobody does, no bytes)."""
    data = b""
    if vocabulary is not None:
        data = b"".join(vocabulary.token_bytes(token) or b"" for token in tokens if token < vocabulary.size)
    return Particle(tuple(tokens), data, logw, finished, tuple(increments))


def _posterior(particles: Iterable[Particle], weights: Iterable[float]) -> dict[str, float]:
    shares: dict[str, float] = {}
    for particle, weight in zip(particles, weights, strict=True):
        text = particle.text
        if weight > 0 and particle.finished and text is not None:
            shares[text] = shares.get(text, 0.0) + weight
    total = math.fsum(shares.values())
    return {text: share / total for text, share in sorted(shares.items(), key=lambda item: -item[1])}


@dataclass(frozen=True)
class Population:
    """Weighted particles: ``mean(w f(x))`` is an unbiased estimate of ``Z`` times the target's expectation of ``f``."""

    particles: tuple[Particle, ...]
    log_ml: float
    """The logarithm of an unbiased estimate of ``Z``, the probability that the model meets the constraint (with soft
    potentials: the expected weight); minus infinity when every particle died."""
    cost: Cost = field(default_factory=Cost)
    resampled: tuple[int, ...] = ()
    """The steps after which particles were resampled."""
    log_ml_error: float = math.inf
    """The standard error of ``log_ml``: of the estimate of ``Z``, relative to it, by the weights of the families that
    descend from one first particle each (Chan and Lai, Annals of Statistics 41, 2013; without resampling these are the
    particles).  On average no less than the truth, but of single runs few see the largest weights.  Infinite where all
    weight is one family's, or one run cannot tell: see `pooled`."""
    families: tuple[int, ...] = ()
    """Which particle of the first population each one descends from; empty where sequences were merged."""

    def _repr_html_(self) -> str:
        known: list[tuple[str, object]] = [
            ("particles", len(self)),
            ("finished", sum(particle.finished for particle in self)),
            ("log_ml, nats", log_ml_shown(self.log_ml, self.log_ml_error)),
            ("effective sample size", number(self.ess)),
            ("effective number of families", number(self.ancestral_ess)),
            ("resampled", f"{len(self.resampled)} times"),
        ]
        return drawn_html("Population", [*known, *self.cost.shown()], self.posterior())

    def __len__(self) -> int:
        return len(self.particles)

    def __iter__(self) -> Iterator[Particle]:
        return iter(self.particles)

    @property
    def logw(self) -> NDArray[np.float64]:
        """``float64[n]``: the particles' log weights, not normalised."""
        return np.array([particle.logw for particle in self.particles], np.float64)

    @property
    def weights(self) -> NDArray[np.float64]:
        """``float64[n]``: normalised weights; all 0 when every particle died."""
        return normalised(self.logw)

    @property
    def ess(self) -> float:
        """The effective sample size: between 1 and n; 0 when every particle died."""
        return effective_sample_size(self.logw)

    @property
    def ancestral_ess(self) -> float:
        """The effective number of families: `ess` of the weight that descends from each of the first particles.

        Copies of one particle share most of their tokens, which `ess` does not know.  `ess` itself where
        nothing was resampled; NaN where families are not known, 0 when every particle died.
        """
        if not self.families:
            return math.nan
        shares = family_shares(self.logw, self.families)
        return 1.0 / float((shares**2).sum()) if shares.any() else 0.0

    @property
    def acceptance(self) -> float:
        """The share of tokens tested one by one that were allowed; 1 where masks were filled instead."""
        return self.cost.acceptance

    def posterior(self) -> dict[str, float]:
        """The probability of each finished text, the likeliest first; texts that are not UTF-8 are left out."""
        return _posterior(self.particles, self.weights.tolist())

    def expectation(self, values: Mapping[str, float] | Sequence[float]) -> float:
        """The weighted mean of one value for each particle, or of a value by text; NaN-free: 0 when all died.

        Raises `ValueError` for another number of values than particles.
        """
        if isinstance(values, Mapping):
            each = [values.get(particle.text or "", 0.0) for particle in self.particles]
        else:
            each = list(values)
        if len(each) != len(self.particles):
            raise ValueError(f"{len(each)} values for {len(self.particles)} particles")
        return float(self.weights @ np.asarray(each, np.float64))

    def draw(self, rng: np.random.Generator, n: int) -> list[Particle]:
        """Draw ``n`` particles by weight, with replacement; `ValueError` when every particle died."""
        if self.log_ml == -math.inf:
            raise ValueError("every particle has weight 0: there is nothing to draw")
        return [self.particles[i] for i in rng.choice(len(self.particles), n, p=self.weights)]


def pooled(populations: Sequence[Population]) -> Population:
    """Join populations that were drawn independently for the same problem into one, each weighed by its evidence.

    ``log_ml`` is that of the mean, and ``log_ml_error`` says how far the populations are apart.  Raises `ValueError`
    without populations.
    """
    if not populations:
        raise ValueError("there are no populations to join")
    largest = max(len(population) for population in populations)
    particles: list[Particle] = []
    families: list[int] = []
    known = all(population.families for population in populations)
    for population in populations:
        families += [len(particles) + family for family in population.families] if known else []
        # The mean over all must be the mean of the populations' means, whatever their sizes.
        shift = math.log(largest) - math.log(len(population))
        particles += [replace(particle, logw=particle.logw + shift) for particle in population]
    total = log_mean_exp([population.log_ml for population in populations])
    shift = math.log(len(particles)) - math.log(largest * len(populations))
    return Population(
        tuple(replace(particle, logw=particle.logw + shift) for particle in particles),
        total,
        sum((population.cost for population in populations), Cost()),
        log_ml_error=relative_error(normalised([population.log_ml for population in populations])),
        families=tuple(families),
    )


@dataclass(frozen=True)
class Samples:
    """Sequences that all count the same: draws of an unweighted sampler, ``logw`` 0 for each."""

    particles: tuple[Particle, ...]
    acceptance: float = 1.0
    """The share of attempts that were kept."""
    log_ml: float | None = None
    """What the sampler learned of ``Z``, in logarithms; the sampler's docstring says what kind of estimate."""
    cost: Cost = field(default_factory=Cost)
    log_ml_error: float | None = None
    """The standard error of ``log_ml``: of the estimate of ``Z``, relative to it.  None where ``log_ml`` is None or no
    estimate but a bound, infinite where one run cannot tell."""
    missing: int = 0
    """How many of the samples that were asked for are not here, because the attempts were used up."""

    def _repr_html_(self) -> str:
        known: list[tuple[str, object]] = [
            ("samples", f"{len(self)}, and {self.missing} missing" if self.missing else len(self)),
            ("finished", sum(particle.finished for particle in self)),
            ("log_ml, nats", log_ml_shown(self.log_ml, self.log_ml_error)),
            ("attempts kept", share(self.acceptance)),
        ]
        return drawn_html("Samples", [*known, *self.cost.shown()], self.posterior())

    def __len__(self) -> int:
        return len(self.particles)

    def __iter__(self) -> Iterator[Particle]:
        return iter(self.particles)

    def posterior(self) -> dict[str, float]:
        """The share of each finished text, the commonest first; texts that are not UTF-8 are left out."""
        return _posterior(self.particles, [1.0] * len(self.particles))
