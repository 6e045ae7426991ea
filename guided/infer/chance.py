"""Every random choice that samplers make, behind one protocol: drawn in production, enumerated in proofs.

`chance_of` makes one from a seed or a generator.  `guided.testing.enumerate_choices` gives another that branches over
every outcome, so that the samplers themselves, not copies of them, are summed over.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from guided.infer.distribution import FAINT, TokenDistribution
from guided.infer.weights import log_one_minus_exp

__all__ = ["Chance", "Drawn", "Pool", "Random", "chance_of", "geometric"]


class Chance(Protocol):
    """A source of the random choices that samplers need.

    >>> import guided
    >>> from guided import infer
    >>> from guided.lm import TableModel
    >>> from guided.testing import enumerate_choices
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> model = TableModel.of({}, otherwise=[0.6, 0.3, 0.1], eos_ids=[2])
    >>> language = guided.compile(guided.regex("a?b"), letters)
    >>> def first(chance):  # a chance that branches over all outcomes
    ...     return infer.importance(chance, model, [0], language, n=1, max_tokens=4).particles[0].text
    >>> sorted((text, round(share, 3)) for share, text in enumerate_choices(first))
    [('ab', 0.667), ('b', 0.333)]
    """

    def index(self, weights: ArrayLike) -> int:
        """An index by weights, ``float[n]``: not negative, not all 0."""

    def indices(self, weights: ArrayLike, n: int) -> list[int]:
        """``n`` independent indices by weights."""

    def token(self, distribution: TokenDistribution, gone: Collection[int] = ()) -> int:
        """A token of a distribution that has any besides those that are gone."""

    def order(self, weights: NDArray[np.float64], n: int) -> NDArray[np.int64]:
        """The first ``n`` places of ``float64[k]``, all above 0, in the order of drawing without replacement."""

    def uniform(self, cuts: Callable[[], Sequence[float]]) -> float:
        """A number in [0, 1).

        ``cuts()`` are all the places in (0, 1) at which what the caller does with the number changes.
        """

    def failures(self, log_success: float, limit: int | None) -> float:
        """The logarithm of the number of failures before the first success, of at most ``limit``; see `geometric`."""


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

    def token(self, distribution: TokenDistribution, gone: Collection[int] = ()) -> int:
        """Uniform numbers, inverted, until one is of a token that is there."""
        while True:
            token = distribution.find(self.rng.random())
            if token not in gone:
                return token

    def order(self, weights: NDArray[np.float64], n: int) -> NDArray[np.int64]:
        """By ascending E / weight, with E exponential."""
        times = self.rng.standard_exponential(weights.size) / weights
        if weights.size <= n:
            return times.argsort()
        places = times.argpartition(n)[:n]
        return places[times[places].argsort()]

    def uniform(self, cuts: Callable[[], Sequence[float]]) -> float:
        """One uniform number."""
        return float(self.rng.random())

    def failures(self, log_success: float, limit: int | None) -> float:
        """One uniform number, inverted."""
        share, grain = float(self.rng.random()), _GRAIN
        while share < _COARSE * grain and grain > _SMALLEST_GRAIN:
            # Close to 0 the grid of uniform numbers is too coarse for successes that are rarer than its points.
            share += float(self.rng.random()) * grain
            grain *= _GRAIN
        return geometric(-math.log1p(-share), log_success, limit)


_GRAIN = 2.0**-53
"""Uniform numbers are multiples of this."""

_COARSE = 2.0**20
"""Fewer points of the grid than this below a number leave it too few digits."""

_SMALLEST_GRAIN = 1e-290

_CERTAIN = -40.0
"""From this log probability of success on ``-log(1 - p)`` is p to the last digit (e^-40 / 2 = 2e-18)."""

_LOG_WHOLE = 53 * math.log(2.0)
"""Larger counts are no whole numbers in float64, and need not be."""


def geometric(exponential: float, log_success: float, limit: int | None = None) -> float:
    """Turn an exponential deviate E into the logarithm of a count of failures before the first success.

    The count is ``floor(E / -log(1 - p))`` for successes of log probability ``log_success``, at most ``limit``.  It is
    a logarithm because it may be above every float: where p is e^-800, it is e^800 or so.  Minus infinity is none.

    >>> round(math.exp(geometric(2.5, math.log(0.5)))), geometric(0.5, math.log(0.5)), geometric(1.0, -900.0)
    (3, -inf, 900.0)
    """
    if exponential <= 0 or log_success >= 0:
        return -math.inf
    log_rate = log_success if log_success < _CERTAIN else math.log(-log_one_minus_exp(log_success))
    log_count = math.log(exponential) - log_rate
    if log_count < _LOG_WHOLE:
        count = math.floor(math.exp(log_count))
        log_count = math.log(count) if count else -math.inf
    return log_count if limit is None else min(log_count, math.log(limit))


LONG_SEARCH = 16
"""Removed tokens after which the order of those that come next is drawn at once.  That costs as much as some 10 single
draws at 2,048 ids (150 us) and at 128,000 (2.5 ms); each draw is then a look into a list."""

ORDERED = 1024
"""Tokens in one such order, if there are more: to sort 128,000 takes four times as long as to find the first ones."""


class Pool:
    """Tokens to draw from, with replacement until one is removed.

    Each draw is one from the table, good if its token is still there; in a long search, the next one of an order.  A
    draw of a token that stays in the pool ends the order: the next one is independent of it.
    """

    __slots__ = ("_at", "_chance", "_drawn", "_gone", "_gone_weight", "_order", "_removed", "_rest", "_table", "_whole")

    def __init__(self, chance: Chance, distribution: TokenDistribution) -> None:
        self._chance = chance
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
        """A token by its probability among those that are left; None when none is."""
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
        # At most two draws on average: more than half of the table is there.
        return self._chance.token(table, self._gone)

    def remove(self, token: int) -> None:
        """Take a token out."""
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
        """Take out all tokens but those of ``bool[V]``."""
        self._end_order()
        self._table = self._table.only(allowed)
        self._gone = {token for token in self._gone if allowed[token]}
        self._gone_weight = math.fsum(self._table.weights[list(self._gone)]) if self._gone else 0.0

    @property
    def log_left(self) -> float:
        """The log probability of what is left, relative to the whole pool at first; minus infinity for nothing.

        Never a difference of nearly equal numbers: at least half of the table is left, or what is left is summed.
        """
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
        # Faint ones are nothing beside the sum, and have their turn when it is scaled anew.
        tokens = np.flatnonzero(weights > FAINT)
        if not tokens.size:
            return False
        shares = weights[tokens]
        places = self._chance.order(shares, ORDERED)
        ordered = shares[places]
        behind = 0.0
        if tokens.size > places.size:
            shares[places] = 0.0
            behind = float(shares.sum())
        self._order = tokens[places].tolist()
        self._rest = (ordered[::-1].cumsum()[::-1] + behind).tolist()
        self._at, self._drawn = 0, False
        return True

    def _end_order(self) -> None:
        """Go on drawing from the table, which misses what the order has lost."""
        if self._order is None:
            return
        self._table = self._table.without(self._order[: self._at])
        self._removed = self._at  # a search that was long goes on with the next order
        self._order = None
