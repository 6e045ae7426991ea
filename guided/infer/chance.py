"""Every random choice that samplers make, behind one protocol: drawn in production, enumerated in proofs.

`chance_of` makes one from a seed or a generator.  `guided.testing.enumerate_choices` gives another that branches over
every outcome, so that the samplers themselves, not copies of them, are summed over.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from guided.infer.distribution import TokenDistribution

__all__ = ["Chance", "Drawn", "Pool", "Random", "chance_of"]

_MOST = 1 << 62
"""Failures are counted up to here; a count this large has no weight left in float64."""


class Pool(Protocol):
    """Tokens to draw from, with replacement until one is removed."""

    def draw(self) -> int | None:
        """A token by its probability among those that are left; None when none is."""

    def remove(self, token: int) -> None:
        """Take a token out."""

    def keep(self, allowed: NDArray[np.bool_]) -> None:
        """Take out all tokens but those of ``bool[V]``."""

    @property
    def log_left(self) -> float:
        """The log probability of what is left, relative to the whole pool at first; minus infinity for nothing."""


class Chance(Protocol):
    """A source of the random choices that samplers need."""

    def index(self, weights: ArrayLike) -> int:
        """An index by weights, ``float[n]``: not negative, not all 0."""

    def indices(self, weights: ArrayLike, n: int) -> list[int]:
        """``n`` independent indices by weights."""

    def token(self, distribution: TokenDistribution) -> int:
        """A token of a distribution that has any."""

    def uniform(self, cuts: Callable[[], Sequence[float]]) -> float:
        """A number in [0, 1).

        ``cuts()`` are all the places in (0, 1) at which what the caller does with the number changes.
        """

    def failures(self, log_failure: float, limit: int | None) -> int:
        """Failures before the first success, each of log probability ``log_failure``; at most ``limit``."""

    def pool(self, distribution: TokenDistribution) -> Pool:
        """The tokens of a distribution, to be drawn and removed."""


Random = np.random.Generator | int | None | Chance
"""What samplers take: a generator, a seed, None for a seed from the system, or any `Chance`."""


def chance_of(rng: Random) -> Chance:
    """Return the choices that a generator or seed makes.

    >>> chance_of(0).index([0.0, 1.0])
    1
    """
    if rng is None or isinstance(rng, (int, np.random.Generator)):
        return Drawn(np.random.default_rng(rng))
    return rng


class Drawn:
    """Choices drawn with a NumPy generator, which advances."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def index(self, weights: ArrayLike) -> int:
        """One uniform number, inverted."""
        return self.indices(weights, 1)[0]

    def indices(self, weights: ArrayLike, n: int) -> list[int]:
        """``n`` uniform numbers, inverted."""
        ends = np.cumsum(np.asarray(weights, np.float64))
        last = int(ends.searchsorted(ends[-1], side="left"))
        places = np.minimum(ends.searchsorted(self.rng.random(n) * ends[-1], side="right"), last)
        found: list[int] = places.tolist()
        return found

    def token(self, distribution: TokenDistribution) -> int:
        """One uniform number, inverted."""
        return distribution.find(self.rng.random())

    def uniform(self, cuts: Callable[[], Sequence[float]]) -> float:
        """One uniform number."""
        return float(self.rng.random())

    def failures(self, log_failure: float, limit: int | None) -> int:
        """One uniform number, inverted: ``floor(log U / log_failure)`` with U in (0, 1]."""
        most = _MOST if limit is None else limit
        if log_failure == -math.inf:
            return 0
        # Where failure is all but certain, its logarithm may round to 0.
        count = math.log1p(-float(self.rng.random())) / min(log_failure, -5e-324)
        return most if count >= most else int(count)

    def pool(self, distribution: TokenDistribution) -> Pool:
        """A pool that draws again when a removed token comes, and scales anew when half of the weight is gone."""
        return _DrawnPool(self.rng, distribution)


class _DrawnPool:
    """Each draw is one from the table, good if its token is still there."""

    __slots__ = ("_gone", "_gone_weight", "_rng", "_table", "_whole")

    def __init__(self, rng: np.random.Generator, distribution: TokenDistribution) -> None:
        self._rng = rng
        self._table = distribution
        self._whole = distribution.log_mass
        self._gone: set[int] = set()
        self._gone_weight = 0.0

    def draw(self) -> int | None:
        """One token; at most two draws for each on average."""
        if self._gone:
            self._settle()
        table = self._table
        if not table.sum:
            return None
        while True:
            token = table.find(self._rng.random())
            if token not in self._gone:
                return token

    def remove(self, token: int) -> None:
        """Remember what is gone, and its weight."""
        if token not in self._gone:
            self._gone.add(token)
            self._gone_weight += self._table.weights.item(token)

    def keep(self, allowed: NDArray[np.bool_]) -> None:
        """One product of arrays."""
        self._table = self._table.only(allowed)
        self._gone = {token for token in self._gone if allowed[token]}
        self._gone_weight = math.fsum(self._table.weights[list(self._gone)]) if self._gone else 0.0

    @property
    def log_left(self) -> float:
        """Never a difference of nearly equal numbers: at least half of the table is left."""
        if not self._gone:
            return self._table.log_mass - self._whole if self._table.sum else -math.inf
        self._settle()
        if not self._table.sum:
            return -math.inf
        return self._table.log_mass - self._whole + math.log1p(-self._gone_weight / self._table.sum)

    def _settle(self) -> None:
        if 2 * self._gone_weight > self._table.sum:
            self._table = self._table.without(list(self._gone))
            self._gone, self._gone_weight = set(), 0.0
