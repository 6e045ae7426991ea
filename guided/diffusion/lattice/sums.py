"""Sums and greatest values of runs of logarithms."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from guided.kernels.tokens.log_masses import product_sums, sum_maxima

__all__ = ["log_sum", "log_sums", "pair_maxima", "pair_sums", "run_maxima"]

Floats = NDArray[np.float64]

_TINY = 1e-290
"""Sums below have lost digits, or all that they had: they are taken again, each beside its own greatest term."""


def run_maxima(values: Floats, starts: NDArray[np.int64]) -> Floats:
    """The greatest of each run, which begins at ``starts[i]`` and has at least one value."""
    found: Floats = np.maximum.reduceat(values, starts) if starts.size else np.zeros(0)
    return found


def log_sums(values: Floats, starts: NDArray[np.int64]) -> Floats:
    """The logarithm of the sum of each run's exponentials; -inf where all of a run are -inf.

    All terms are taken beside the greatest of all, since most runs are long and near it; see `_TINY` for the others.
    """
    if not starts.size:
        return np.zeros(0)
    top = values.max()
    if not np.isfinite(top):
        return np.full(starts.size, top)
    shifted = values - top
    sums = np.add.reduceat(np.exp(shifted, out=shifted), starts)
    with np.errstate(divide="ignore"):
        found: Floats = np.log(sums) + top
    tiny = sums < _TINY
    if tiny.any():
        sizes = np.diff(starts, append=values.size)
        found[tiny] = _apart(values[np.repeat(tiny, sizes)], sizes[tiny])
    return found


def pair_sums(
    one: Floats, at_one: NDArray[np.int64], other: Floats, at_other: NDArray[np.int64], starts: NDArray[np.int64]
) -> Floats:
    """As `log_sums` of ``one[at_one] + other[at_other]``, with no exponential for each pair."""
    if not starts.size:
        return np.zeros(0)
    top, other_top = one.max(), other.max()
    if not (np.isfinite(top) and np.isfinite(other_top)):
        return log_sums(one[at_one] + other[at_other], starts)
    sums = np.empty(starts.size)
    product_sums(np.exp(one - top), at_one, np.exp(other - other_top), at_other, starts, sums)
    with np.errstate(divide="ignore"):
        found: Floats = np.log(sums) + (top + other_top)
    tiny = sums < _TINY
    if tiny.any():
        sizes = np.diff(starts, append=at_one.size)
        of_tiny = np.repeat(tiny, sizes)
        found[tiny] = _apart(one[at_one[of_tiny]] + other[at_other[of_tiny]], sizes[tiny])
    return found


def pair_maxima(
    one: Floats, at_one: NDArray[np.int64], other: Floats, at_other: NDArray[np.int64], starts: NDArray[np.int64]
) -> Floats:
    """As `run_maxima` of ``one[at_one] + other[at_other]``."""
    found = np.empty(starts.size)
    sum_maxima(one, at_one, other, at_other, starts, found)
    return found


def _apart(values: Floats, sizes: NDArray[np.int64]) -> Floats:
    """As `log_sums`, each run beside its own greatest term."""
    starts = np.cumsum(sizes) - sizes
    tops = np.maximum.reduceat(values, starts)
    # Runs of -inf alone: any number in the place of the top leaves them so.
    around = np.where(np.isfinite(tops), tops, 0.0)
    with np.errstate(divide="ignore"):
        found: Floats = np.log(np.add.reduceat(np.exp(values - np.repeat(around, sizes)), starts)) + around
    return found


def log_sum(values: Floats) -> float:
    """The logarithm of the sum of some exponentials."""
    top = values.max(initial=-np.inf)
    if not np.isfinite(top):
        return float(top)
    return float(top + np.log(np.exp(values - top).sum()))
