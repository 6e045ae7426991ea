"""How sure an estimate of the evidence is: standard errors by genealogy or over independent runs, and intervals.

A population knows the family of each particle, that is, which of the first particles it descends from.  Families would
be independent but for resampling, so their weights tell the variance of the whole.  Nothing here draws.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from statistics import NormalDist

from guided.infer.result import Population, pooled
from guided.infer.weights import family_shares

__all__ = ["Genealogy", "Interval", "genealogical_variance", "log_ml_interval", "student_quantile"]

Interval = tuple[float, float]
"""From and to, in logarithms."""


class Genealogy(Enum):
    """How the weights of families give a variance; s is a family's share of the weight, n their number.

    >>> import guided
    >>> from guided import infer
    >>> from guided.lm import TableModel
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.6, 0.3, 0.1], eos_ids=[2])
    >>> language = guided.compile(guided.regex("a?b"), letters)
    >>> drawn = infer.importance(0, model, [0], language, n=50, max_tokens=4)
    >>> round(infer.genealogical_variance(drawn, infer.Genealogy.CHAN_LAI), 4)
    0.0076
    >>> round(infer.genealogical_variance(drawn, infer.Genealogy.LEE_WHITELEY), 4)
    0.0076
    """

    CHAN_LAI = "chan-lai"
    """``(n sum s^2 - 1) / (n - 1)``: Chan and Lai (Annals of Statistics 41, 2013), with the correction of a sample's
    variance.  Consistent; of few particles too large, because families that die out by chance look like variance."""
    LEE_WHITELEY = "lee-whiteley"
    """``1 - (n / (n - 1))^(r + 1) (1 - sum s^2)`` after r resamplings: Lee and Whiteley (Biometrika 105, 2018), eq. 4.
    Unbiased with `multinomial`: ``E[Z'^2 v] = Var Z'``.  Single values may be negative.  Other ways of resampling draw
    fewer pairs of one family, and nothing is promised then."""


def genealogical_variance(population: Population, by: Genealogy = Genealogy.LEE_WHITELEY) -> float:
    """The variance of the estimate of ``Z``, relative to its square, from one run of `smc` or `importance`.

    1 where one family has all the weight: then nothing is known.  0 when every particle died, as Z' is 0.  Raises
    `ValueError` for a population without families, or of one particle.
    """
    n = len(population)
    if n < 2 or not population.families:
        raise ValueError("genealogy needs two particles or more whose families are known: pool independent runs")
    shares = family_shares(population.logw, population.families)
    if not shares.any():
        return 0.0
    apart = 1.0 - float((shares**2).sum())
    resamplings = len(population.resampled) if by is Genealogy.LEE_WHITELEY else 0
    return 1.0 - (n / (n - 1)) ** (resamplings + 1) * apart


def log_ml_interval(runs: Population | Sequence[Population], *, level: float = 0.9) -> Interval:
    """An interval that holds the true ``log Z`` with probability ``level``, asymptotically.

    Of one population by its ``log_ml_error`` and the normal distribution; of several independent ones by how far they
    are apart and Student's with one degree of freedom fewer than runs.  Estimates of Z are skewed, those of log Z less
    so: the interval is symmetric in logarithms, around the expectation of ``log_ml`` moved by half its variance, which
    is the bias that Jensen's inequality gives.  Everything, where nothing is known.  Raises `ValueError` for a level
    that is not between 0 and 1, and without populations.
    """
    if not 0 < level < 1:
        raise ValueError(f"level is a probability between 0 and 1, not {level}")
    several = not isinstance(runs, Population)
    joined = pooled(list(runs)) if not isinstance(runs, Population) else runs
    error = joined.log_ml_error
    if not math.isfinite(error) or joined.log_ml == -math.inf:
        return -math.inf, math.inf
    # The logarithm of a mean that is log-normal with this coefficient of variation.
    spread = math.sqrt(math.log1p(error**2))
    middle = joined.log_ml + spread**2 / 2
    tail = (1 + level) / 2
    reach = spread * (student_quantile(tail, len(list(runs)) - 1) if several else NormalDist().inv_cdf(tail))
    return middle - reach, middle + reach


def student_quantile(probability: float, degrees: int) -> float:
    """The quantile of Student's t distribution, for probabilities of 1/2 and more.

    By bisection of the finite series of Abramowitz and Stegun, 26.7.3 and 26.7.4.

    >>> round(student_quantile(0.95, 7), 4), round(student_quantile(0.975, 2), 4)
    (1.8946, 4.3027)
    """
    if not 0.5 <= probability < 1 or degrees < 1:
        raise ValueError(f"a quantile at {probability} with {degrees} degrees of freedom")
    low, high = 0.0, 1.0
    while _student(high, degrees) < probability:
        high *= 2
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if _student(middle, degrees) < probability else (low, middle)
    return high


def _student(t: float, degrees: int) -> float:
    """The distribution function at t of 0 and more."""
    angle = math.atan(t / math.sqrt(degrees))
    sine, square = math.sin(angle), math.cos(angle) ** 2
    term = total = 1.0 if degrees % 2 == 0 else math.cos(angle)
    for k in range(2 if degrees % 2 else 1, degrees - 1, 2):
        term *= k / (k + 1) * square
        total += term
    if degrees % 2 == 0:
        inside = sine * total
    else:
        inside = 2 / math.pi * (angle + (sine * total if degrees > 1 else 0.0))
    return 0.5 + inside / 2
