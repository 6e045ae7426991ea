"""Is a difference more than chance: paired tests over prompts, and the correction for having made many of them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

__all__ = ["holm", "sign_flip_test"]

EXACT = 14
"""Differences up to which all signs are tried: 16,384 of them."""
FLIPS = 100_000
"""Random signs else: the least p is 1e-5, far below 0.05 over the number of comparisons of a whole run."""
BLOCK = 2_000
SEED = 0


def sign_flip_test(differences: Sequence[float]) -> float:
    """The two-sided p of paired differences under the hypothesis that each might as well have the other sign.

    The share of sign patterns whose sum is as far from 0 as that observed (Fisher 1935): of all patterns where few
    differences are not 0, else of 100,000 random ones and the observed one, always the same.

    >>> sign_flip_test([1.0, 1.0, 1.0, 0.0])
    0.25
    """
    found = np.asarray([each for each in differences if each], dtype=np.float64)
    if not len(found):
        return 1.0
    # Sums that are equal on paper may differ by rounding.
    least = abs(found.sum()) - 1e-9 * np.abs(found).sum()
    if len(found) <= EXACT:
        signs = np.array(list(itertools.product((1.0, -1.0), repeat=len(found))))
        return float(np.mean(np.abs(signs @ found) >= least))
    rng = np.random.default_rng(SEED)
    extreme = sum(
        int(np.count_nonzero(np.abs((2.0 * rng.integers(0, 2, (BLOCK, len(found))) - 1) @ found) >= least))
        for _ in range(FLIPS // BLOCK)
    )
    return (extreme + 1) / (FLIPS + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p values adjusted by Holm's step-down procedure (1979): below a level, the error of all together is, too.

    >>> holm([0.01, 0.5, 0.02])
    [0.03, 0.5, 0.04]
    """
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, place in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - rank) * p_values[place]))
        adjusted[place] = largest
    return adjusted
