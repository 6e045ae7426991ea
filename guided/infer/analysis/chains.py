"""Whether chains have mixed: rank-normalised split R-hat and effective sample sizes, of traces that `mcmc` tells.

Vehtari, Gelman, Simpson, Carpenter and Buerkner, "Rank-normalization, folding, and localization", Bayesian Analysis 16
(2021): equations 3 to 14, and Geyer's initial monotone sequence for autocorrelations.  Values alone; nothing is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided.infer.result import Particle
from guided.infer.runs.rounds import Round

__all__ = ["ChainTrace", "chain_ess", "r_hat"]


class ChainTrace:
    """The states of several chains after each move: a ``progress`` of `mcmc`, for which one chain is one particle.

    >>> trace = ChainTrace()
    >>> trace.n_moves
    0
    """

    def __init__(self) -> None:
        self._rounds: list[tuple[Particle, ...]] = []

    def __call__(self, told: Round) -> None:
        """Take in the states after a move."""
        self._rounds.append(told.particles)

    @property
    def n_moves(self) -> int:
        """How many moves were told."""
        return len(self._rounds)

    def values(self, of: Callable[[Particle], float]) -> NDArray[np.float64]:
        """``float64[chains, moves]``: a number of each state, such as its length or a score."""
        return np.array([[of(particle) for particle in states] for states in self._rounds], np.float64).T

    def r_hat(self, of: Callable[[Particle], float]) -> float:
        """`r_hat` of a number of the states; near 1 (below 1.01 in the paper) where chains agree on it."""
        return r_hat(self.values(of))

    def ess(self, of: Callable[[Particle], float]) -> float:
        """`chain_ess` of a number of the states."""
        return chain_ess(self.values(of))


def r_hat(draws: Any) -> float:
    """The larger of the rank-normalised split R-hat and that of the distances from the median.

    ``draws`` is ``float[chains, moves]`` with 4 moves or more.  NaN where all draws are equal: nothing can be said.
    Infinite where each half chain stays where it is and they are not in one place.  Raises `ValueError` for other
    shapes and for numbers that are not finite.

    >>> import numpy as np
    >>> draws = np.random.default_rng(0).normal(size=(4, 100))
    >>> round(r_hat(draws), 2), round(r_hat(draws + [[0], [0], [0], [3]]), 2)  # one chain is elsewhere
    (1.0, 1.47)
    """
    split = _split(draws)
    if bool((split == split.flat[0]).all()):
        return math.nan
    folded = np.abs(split - np.median(split))
    found = [_plain_r_hat(_ranked(values)) for values in (split, folded) if not bool((values == values.flat[0]).all())]
    return max(found)


def chain_ess(draws: Any) -> float:
    """The bulk effective sample size: of rank-normalised split chains; NaN where all draws are equal.

    >>> import numpy as np
    >>> draws = np.random.default_rng(0).normal(size=(4, 100))
    >>> chain_ess(draws) > 300  # independent
    True
    >>> chain_ess(draws.repeat(10, axis=1)) < 1000  # each drawn ten times: 4,000 numbers that are worth 400
    True
    """
    split = _split(draws)
    if bool((split == split.flat[0]).all()):
        return math.nan
    return _plain_ess(_ranked(split))


def _split(draws: Any) -> NDArray[np.float64]:
    values = np.asarray(draws, np.float64)
    if values.ndim != 2 or values.shape[1] < 4 or not values.shape[0] or not np.isfinite(values).all():
        raise ValueError(f"draws are finite numbers [chains, 4 moves or more], not of shape {values.shape}")
    half = values.shape[1] // 2
    return np.concatenate([values[:, :half], values[:, -half:]])


def _ranked(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Normal scores of the ranks over all chains, equal values their mean rank: ``(r - 3/8) / (S + 1/4)``."""
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = counts.cumsum()
    ranks = (ends - (counts - 1) / 2)[places.reshape(values.shape)]
    normal = NormalDist()
    shares: Sequence[float] = ((ranks - 0.375) / (values.size + 0.25)).ravel().tolist()
    return np.array([normal.inv_cdf(share) for share in shares]).reshape(values.shape)


def _plain_r_hat(values: NDArray[np.float64]) -> float:
    n = values.shape[1]
    within = float(values.var(axis=1, ddof=1).mean())
    between = n * float(values.mean(axis=1).var(ddof=1))
    if within == 0:
        return math.inf if between > 0 else 1.0
    return math.sqrt((n - 1) / n + between / within / n)


def _plain_ess(values: NDArray[np.float64]) -> float:
    m, n = values.shape
    centred = values - values.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, 2 * n, axis=1)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2, 2 * n, axis=1)[:, :n] / n
    within = float(covariance[:, 0].mean()) * n / (n - 1)
    total = within * (n - 1) / n + float(values.mean(axis=1).var(ddof=1))
    rho = 1 - (within - covariance.mean(axis=0)) / total
    rho[0] = 1.0
    # Pairs of neighbours: their sums are positive and fall, for chains that are reversible.
    pairs = rho[: n - n % 2].reshape(-1, 2).sum(axis=1)
    ends = np.flatnonzero(pairs < 0)
    kept = np.minimum.accumulate(pairs[: int(ends[0]) if ends.size else pairs.size])
    tau = max(-1 + 2 * float(kept.sum()), 1 / math.log10(m * n))
    return float(m * n / tau)
