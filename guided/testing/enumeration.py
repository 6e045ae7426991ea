"""Random choices enumerated instead of drawn: expectations of samplers to the last digit, on the samplers themselves.

Whatever takes a `guided.infer.chance.Chance` can be run on every outcome: see `enumerate_choices`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from guided.infer.chance import Chance, geometric
from guided.infer.distribution import TokenDistribution

__all__ = ["enumerate_choices"]

T = TypeVar("T")


def enumerate_choices(run: Callable[[Chance], T], *, failures: int = 60, pieces: int = 1) -> Iterator[tuple[float, T]]:
    """Call ``run`` once for each sequence of outcomes of its random choices; give the probability and what it returns.

    The probabilities sum to 1.  ``run`` must make the same choices whenever their outcomes so far are the same.
    Counts of failures have no upper end: those of ``failures`` and more are taken together, and where success is
    rarer than 1e-12 they are summed on a grid of 23 sizes, to 1e-4 of the sum.  A uniform number is one of as many as
    there are intervals between its cuts, each split into ``pieces``: more than one for callers that do something else
    with every number and must be right whatever its law.  The number of runs is the number of outcomes, so vocabularies
    and lengths must be tiny.

    >>> def pair(chance):
    ...     return chance.index([1, 3]), chance.index([1, 1])
    >>> [(probability, found) for probability, found in enumerate_choices(pair)]
    [(0.125, (0, 0)), (0.125, (0, 1)), (0.375, (1, 0)), (0.375, (1, 1))]
    """
    path: list[int] = []
    while True:
        chance = _Branching(path, failures, pieces)
        value = run(chance)
        yield chance.probability, value
        while chance.choices:
            outcome, probabilities = chance.choices.pop()
            later = next((i for i in range(outcome + 1, len(probabilities)) if probabilities[i] > 0), None)
            if later is not None:
                path = [outcome for outcome, _ in chance.choices] + [later]
                break
        else:
            return


class _Branching:
    """Takes the outcomes of a path, then each time the first possible one, and remembers what else there was."""

    def __init__(self, path: Sequence[int], failures: int, pieces: int) -> None:
        self._path = path
        self._failures = failures
        self._pieces = pieces
        self.choices: list[tuple[int, list[float]]] = []
        self.probability = 1.0

    def _choose(self, probabilities: list[float]) -> int:
        at = len(self.choices)
        if at < len(self._path):
            outcome = self._path[at]
        else:
            outcome = next(i for i, probability in enumerate(probabilities) if probability > 0)
        self.choices.append((outcome, probabilities))
        self.probability *= probabilities[outcome]
        return outcome

    def index(self, weights: ArrayLike) -> int:
        return self._index(np.asarray(weights, np.float64).tolist())

    def _index(self, weights: list[float]) -> int:
        # A handful of numbers, for which Python takes a tenth of what arrays do.
        total = sum(weights)
        assert total > 0 and min(weights) >= 0, f"{weights} are no weights to choose by"
        return self._choose([weight / total for weight in weights])

    def indices(self, weights: ArrayLike, n: int) -> list[int]:
        return [self.index(weights) for _ in range(n)]

    def token(self, distribution: TokenDistribution, gone: Collection[int] = ()) -> int:
        weights: list[float] = distribution.weights.tolist()
        for token in gone:
            weights[token] = 0.0
        return self._index(weights)

    def order(self, weights: NDArray[np.float64], n: int) -> NDArray[np.int64]:
        left: list[float] = weights.tolist()
        places: list[int] = []
        for _ in range(min(n, weights.size)):
            places.append(self._index(left))
            left[places[-1]] = 0.0
        return np.array(places, np.int64)

    def uniform(self, cuts: Callable[[], Sequence[float]]) -> float:
        places = [0.0, *sorted(cuts()), 1.0]
        if self._pieces > 1:
            places = [
                0.0,
                *(float(end) for a, b in pairwise(places) for end in np.linspace(a, b, self._pieces + 1)[1:]),
            ]
        widths = [end - start for start, end in pairwise(places)]
        which = self._choose(widths)
        return (places[which] + places[which + 1]) / 2

    def failures(self, log_success: float, limit: int | None) -> float:
        """What `geometric` makes of exponential deviates, one out of each interval in which the count is the same."""
        success = math.exp(log_success)
        if success < _RARE and limit is None:
            which = self._choose(_SHARES)
            return geometric(math.exp(_LOG_DEVIATES[which]), log_success)
        most = self._failures if limit is None else limit
        which = self._choose(_counts(success, most))
        width = -math.log1p(-success) if success < 1 else 0.0
        # The last interval has no end, and whatever the width, its middle is somewhere else.
        deviate = (which + 0.5) * width if which < most else most * width + 1.0
        return geometric(deviate, log_success, most)


@lru_cache(maxsize=1024)
def _counts(success: float, most: int) -> list[float]:
    """The probabilities of 0 to ``most - 1`` failures, and of more; a sampler asks for few successes, each often."""
    again = 1 - success
    return [again**count * success for count in range(most)] + [again**most]


_RARE = 1e-12
"""Below this probability of success a count is a deviate over it: rounding it down changes less than this."""

_STEP = 0.75
"""Between logarithms of deviates.  The error of the sum over such a grid is that of the density's Fourier transform at
2 pi / step, which for ``exp(t - exp(t))`` is ``|Gamma(1 + 8 pi i / 3)| = 1.4e-5``."""

_LOG_DEVIATES = np.arange(-13.5, 3.5, _STEP)
"""From where 2e-6 of the probability lies below, to where 1e-11 lies above."""

_SHARES: list[float] = (lambda density: (density / density.sum()).tolist())(
    np.exp(_LOG_DEVIATES - np.exp(_LOG_DEVIATES))
)
