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

from guided.infer.distribution import SMALLEST, TokenDistribution

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
        """A pool whose draws cost little while few tokens are gone, and next to nothing in a long search."""
        return _DrawnPool(self.rng, distribution)


LONG_SEARCH = 16
"""Removed tokens after which the order of those that come next is drawn at once.  That costs as much as some 10 single
draws at 2,048 ids (150 us) and at 128,000 (2.5 ms); each draw is then a look into a list."""

ORDERED = 1024
"""Tokens in one such order, if there are more: to sort 128,000 takes four times as long as to find the first ones."""


class _DrawnPool:
    """Each draw is one from the table, good if its token is still there; in a long search, the next one of an order.

    Tokens by ascending E / weight, with E exponential, are in the order in which drawing without replacement meets
    them.  A draw of a token that stays in the pool ends the order: the next one is independent of it.
    """

    __slots__ = ("_at", "_drawn", "_gone", "_gone_weight", "_order", "_removed", "_rest", "_rng", "_table", "_whole")

    def __init__(self, rng: np.random.Generator, distribution: TokenDistribution) -> None:
        self._rng = rng
        self._table = distribution
        self._whole = distribution.log_mass
        self._gone: set[int] = set()
        self._gone_weight = 0.0
        self._removed = 0
        """Since the last order ended."""
        self._order: list[int] | None = None
        """Tokens of the table, which then misses none but those of the order's beginning."""
        self._rest: list[float] = []
        """The weight of each token of the order and of all that come after it."""
        self._at = 0
        """Tokens of the order that are removed."""
        self._drawn = False
        """Was the order's next token drawn?"""

    def draw(self) -> int | None:
        """One token; at most two draws for each on average."""
        if self._order is not None:
            if not self._drawn and self._at < len(self._order):
                self._drawn = True
                return self._order[self._at]
            self._end_order()
        elif self._removed >= LONG_SEARCH and self._begin_order():
            return self.draw()
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
        if self._order is not None:
            if self._drawn and token == self._order[self._at]:
                self._at += 1
                self._drawn = False
                return
            self._end_order()
        if token not in self._gone:
            self._gone.add(token)
            self._gone_weight += self._table.weights.item(token)
            self._removed += 1

    def keep(self, allowed: NDArray[np.bool_]) -> None:
        """One product of arrays."""
        self._end_order()
        self._table = self._table.only(allowed)
        self._gone = {token for token in self._gone if allowed[token]}
        self._gone_weight = math.fsum(self._table.weights[list(self._gone)]) if self._gone else 0.0

    @property
    def log_left(self) -> float:
        """Never a difference of nearly equal numbers: at least half of the table is left, or what is left is summed."""
        if self._order is not None:
            if self._at < len(self._order):
                return math.log(self._rest[self._at]) + self._table.shift - self._table.log_norm - self._whole
            self._end_order()
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

    def _begin_order(self) -> bool:
        """Draw the order of all that is left; False where nothing is."""
        self._table = self._table.without(list(self._gone))
        self._gone, self._gone_weight, self._removed = set(), 0.0, 0
        weights = self._table.weights
        tokens = np.flatnonzero(weights >= SMALLEST)
        if not tokens.size:
            return False
        shares = weights[tokens]
        times = self._rng.standard_exponential(tokens.size) / shares
        behind = 0.0
        if tokens.size > ORDERED:
            places = times.argpartition(ORDERED)
            behind = float(shares[places[ORDERED:]].sum())
            places = places[:ORDERED]
            places = places[times[places].argsort()]
        else:
            places = times.argsort()
        self._order = tokens[places].tolist()
        self._rest = (shares[places][::-1].cumsum()[::-1] + behind).tolist()
        self._at, self._drawn = 0, False
        return True

    def _end_order(self) -> None:
        """Go on drawing from the table, which misses what the order has lost."""
        if self._order is None:
            return
        self._table = self._table.without(self._order[: self._at])
        self._removed = self._at  # a search that was long goes on with the next order
        self._order = None
