"""Arithmetic with log weights, where minus infinity is a legal weight and NaN never comes out.

Nothing here knows what the weights belong to.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "effective_sample_size",
    "family_shares",
    "log_add_exp",
    "log_mean_exp",
    "log_one_minus_exp",
    "log_sum_exp",
    "normalised",
    "relative_error",
]

Weights = Sequence[float] | NDArray[np.float64]


def log_sum_exp(logw: Weights) -> float:
    """Return the logarithm of the sum of ``exp(logw)``; minus infinity for no weights, or none above zero.

    >>> log_sum_exp([-math.inf, 0.0]), log_sum_exp([])
    (0.0, -inf)
    """
    values = np.asarray(logw, np.float64)
    top = float(values.max(initial=-math.inf))
    if top == -math.inf:
        return -math.inf
    return top + math.log(float(np.exp(values - top).sum()))


def log_add_exp(a: float, b: float) -> float:
    """Return ``log(exp(a) + exp(b))``.

    >>> log_add_exp(-math.inf, -900.0), log_add_exp(-math.inf, -math.inf)
    (-900.0, -inf)
    """
    high, low = max(a, b), min(a, b)
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))


def log_mean_exp(logw: Weights) -> float:
    """Return the logarithm of the mean of ``exp(logw)``, dead weights counted; minus infinity for no weights."""
    return log_sum_exp(logw) - math.log(len(logw)) if len(logw) else -math.inf


def normalised(logw: Weights) -> NDArray[np.float64]:
    """Return weights that sum to 1, ``float64[n]``; all 0 where all are dead.

    >>> normalised([math.log(3.0), 0.0, -math.inf]).tolist()
    [0.75, 0.25, 0.0]
    """
    values = np.asarray(logw, np.float64)
    top = float(values.max(initial=-math.inf))
    if top == -math.inf:
        return np.zeros(values.shape)
    weights = np.exp(values - top)
    weights /= weights.sum()
    return weights


def effective_sample_size(logw: Weights) -> float:
    """Return ``(sum w)^2 / sum w^2``: between 1 and n, and 0 where all are dead."""
    squares = float((normalised(logw) ** 2).sum())
    return 1.0 / squares if squares else 0.0


def log_one_minus_exp(x: float) -> float:
    """Return ``log(1 - exp(x))`` for ``x <= 0`` without cancellation.

    >>> log_one_minus_exp(-math.inf), log_one_minus_exp(0.0)
    (0.0, -inf)
    """
    if x >= 0:
        return -math.inf
    if x == -math.inf:
        return 0.0
    # Two branches at log 2, each of which keeps the digits: Maechler, "Accurately computing log(1 - exp(-|a|))", 2012.
    return math.log(-math.expm1(x)) if x > -math.log(2.0) else math.log1p(-math.exp(x))


def family_shares(logw: Weights, families: Sequence[int]) -> NDArray[np.float64]:
    """Return the share of the weight that belongs to each family, ``float64[n]``; all 0 where all are dead.

    >>> family_shares([0.0, 0.0, math.log(2.0)], [1, 1, 0]).tolist()
    [0.5, 0.5, 0.0]
    """
    shares = np.zeros(max(len(logw), 1 + max(families, default=-1)))
    np.add.at(shares, list(families), normalised(logw))
    return shares


def relative_error(shares: Sequence[float] | NDArray[np.float64]) -> float:
    """Return the standard error of a sum of independent parts over the sum, from the parts' shares of it.

    ``sqrt((n sum s^2 - 1) / (n - 1))`` of n shares: what the mean of n weights is known by.  Infinite where one part
    is all there is, or none.

    >>> relative_error([0.5, 0.5]), relative_error([1.0, 0.0]), relative_error([])
    (0.0, inf, inf)
    """
    values = np.asarray(shares, np.float64)
    n, largest = values.size, float(values.max(initial=0.0))
    if n < 2 or largest == 0 or largest > 1 - 1e-9:
        return math.inf
    return math.sqrt(max(n * float((values**2).sum()) - 1, 0.0) / (n - 1))
