"""Resampling: which particles go on, and with what weights.  Functions of weights alone; none knows particles.

Each takes the log weights of a population and gives ``n`` ancestors with new log weights, so that for every particle
the expected weight of its copies is its old weight.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from guided.infer.chance import Random, chance_of
from guided.infer.weights import log_sum_exp, normalised

__all__ = ["Resample", "Resampled", "multinomial", "optimal", "residual", "stratified", "systematic"]


_BELOW_ONE = float(np.nextafter(1.0, 0.0))
"""The last point of the unit interval: an offset just below 1 rounds up to 1, behind all sums."""


class Resampled(NamedTuple):
    """New particle i continues old particle ``ancestors[i]`` with log weight ``logw[i]``.

    >>> import math
    >>> from guided import infer
    >>> ancestors, logw = infer.multinomial(0, [0.0, -math.inf, 0.0], 4)
    >>> ancestors, [round(weight, 3) for weight in logw]
    ([2, 0, 0, 0], [-0.693, -0.693, -0.693, -0.693])
    """

    ancestors: list[int]
    logw: list[float]


class Resample(Protocol):
    """A way of resampling ``len(logw)`` particles to at most ``n``; at least one weight is not minus infinity.

    >>> from guided import infer
    >>> def heaviest(rng, logw, n):  # any function of this kind; this one is a bad idea, as it is not fair
    ...     return infer.Resampled([max(range(len(logw)), key=logw.__getitem__)] * n, [max(logw)] * n)
    >>> ways = [infer.multinomial, infer.systematic, infer.stratified, infer.residual, infer.optimal, heaviest]
    >>> [len(way(0, [0.0, -1.0, -2.0], 4).ancestors) for way in ways]
    [4, 4, 4, 4, 4, 4]
    """

    def __call__(self, rng: Random, logw: Sequence[float], n: int, /) -> Resampled:
        """Ancestors and weights of the next population."""


def _equal(ancestors: list[int], logw: Sequence[float]) -> Resampled:
    average = log_sum_exp(logw) - math.log(len(ancestors))
    return Resampled(ancestors, [average] * len(ancestors))


def _ends(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Running sums in [0, 1] whose last one with weight is exactly 1."""
    ends = weights.cumsum()
    ends[int(np.flatnonzero(weights)[-1]) :] = 1.0
    return ends


def multinomial(rng: Random, logw: Sequence[float], n: int) -> Resampled:
    """``n`` independent ancestors by weight."""
    return _equal(chance_of(rng).indices(normalised(logw), n), logw)


def systematic(rng: Random, logw: Sequence[float], n: int) -> Resampled:
    """``n`` equally spaced points with one random offset: a particle of expected m copies gets m rounded up or down."""
    ends = _ends(normalised(logw))
    return _equal(_spaced(rng, ends, n), logw)


def _spaced(rng: Random, ends: NDArray[np.float64], n: int) -> list[int]:
    """The indices at ``(i + U) / n`` of running sums that end at 1."""
    offset = chance_of(rng).uniform(lambda: [cut for cut in sorted({*(ends * n % 1.0).tolist()}) if 0 < cut < 1])
    points = np.minimum((np.arange(n) + offset) / n, _BELOW_ONE)
    found: list[int] = np.searchsorted(ends, points, side="right").tolist()
    return found


def stratified(rng: Random, logw: Sequence[float], n: int) -> Resampled:
    """One point in each of ``n`` equal strata, each with an offset of its own."""
    chance = chance_of(rng)
    ends = _ends(normalised(logw))
    ancestors = []
    for i in range(n):
        offset = chance.uniform(lambda i=i: [cut for cut in (ends * n - i).tolist() if 0 < cut < 1])  # type: ignore[misc]
        ancestors.append(int(np.searchsorted(ends, min((i + offset) / n, _BELOW_ONE), side="right")))
    return _equal(ancestors, logw)


def residual(rng: Random, logw: Sequence[float], n: int) -> Resampled:
    """The whole part of each expected number of copies for sure, the rest of them by their fractions."""
    copies = normalised(logw) * n
    sure = np.floor(copies).astype(np.int64)
    ancestors: list[int] = np.repeat(np.arange(copies.size), sure).tolist()
    missing = n - len(ancestors)
    if missing > 0:
        ancestors += chance_of(rng).indices(copies - sure, missing)
    return _equal(ancestors, logw)


def optimal(rng: Random, logw: Sequence[float], n: int) -> Resampled:
    """The thinning of Fearnhead and Clifford (JRSS B 65, 2003): no particle is drawn twice, heavy ones are kept as are.

    With c such that ``sum min(1, c W) = n``: particles of ``c W >= 1`` keep their weights, of the others systematic
    sampling leaves some, each with weight ``1 / c``.  Where no more than ``n`` have weight, all are kept for sure, and
    the heaviest are split until there are ``n``; so on a population that is not larger than ``n`` this does nothing
    but refill the places of dead particles.

    >>> import numpy as np
    >>> kept = optimal(0, np.log([0.7, 0.1, 0.1, 0.1]), 2)
    >>> kept.ancestors[0], np.exp(kept.logw).round(2).tolist()  # the heavy one is kept, one other stands for three
    (0, [0.7, 0.3])
    """
    # Not those whose share is above 0 in float64: where there is room, e^-800 of the whole is kept as well.
    live = np.flatnonzero(np.asarray(logw, np.float64) > -math.inf)
    if live.size <= n:
        return _split(logw, live.tolist(), n)
    weights = normalised(logw)
    order = live[np.argsort(-weights[live], kind="stable")]
    sorted_weights = weights[order]
    # What is left after the k heaviest, summed from the light end, for k = 0 ... size - 1.
    rest = sorted_weights[::-1].cumsum()[::-1]
    kept = 0
    while kept < n and sorted_weights[kept] * (n - kept) >= rest[kept]:
        kept += 1
    total = log_sum_exp(logw)
    ancestors: list[int] = sorted(order[:kept].tolist())
    out = [float(logw[i]) for i in ancestors]
    if kept < n:
        light = np.sort(order[kept:])
        ends = _ends(weights[light] / rest[kept])
        ancestors += light[_spaced(rng, ends, n - kept)].tolist()
        out += [total + math.log(float(rest[kept])) - math.log(n - kept)] * (n - kept)
    return Resampled(ancestors, out)


def _split(logw: Sequence[float], live: list[int], n: int) -> Resampled:
    """All live particles, and copies of the heaviest that share their weight."""
    copies = dict.fromkeys(live, 1)
    heap = [(-float(logw[i]), i) for i in live]
    heapq.heapify(heap)
    for _ in range(n - len(live)):
        _, i = heap[0]
        copies[i] += 1
        heapq.heapreplace(heap, (math.log(copies[i]) - float(logw[i]), i))
    ancestors = [i for i in live for _ in range(copies[i])]
    return Resampled(ancestors, [float(logw[i]) - math.log(copies[i]) for i in ancestors])
