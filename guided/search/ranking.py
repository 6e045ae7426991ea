"""Answers chosen among samples: minimum Bayes risk, and the consensus game between a generator and a discriminator.

What is chosen among was drawn before, by `guided.infer` or anything else.  Nothing here asks a model.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from guided.errors import GuidedError
from guided.infer.result import Population, Samples

__all__ = ["Consensus", "RankedText", "consensus_game", "exact_match", "minimum_bayes_risk", "word_f1"]

Utility = Callable[[str, str], float]
"""``utility(answer, truth)``: what an answer is worth if the truth were this one."""


@dataclass(frozen=True)
class RankedText:
    """A candidate with its expected utility.

    >>> from guided.search import minimum_bayes_risk
    >>> best, *_ = minimum_bayes_risk({"the cat sat": 0.3, "a dog": 0.4, "the cat sat down": 0.3})
    >>> best.text, round(best.utility, 2), best.probability
    ('the cat sat', 0.56, 0.3)
    """

    text: str
    utility: float
    probability: float
    """Its share of the samples' weight."""


def exact_match(answer: str, truth: str) -> float:
    """1 for equal texts: minimum Bayes risk is then the likeliest text, or a majority vote.

    >>> exact_match("Oslo", "Oslo"), exact_match("Oslo", "oslo")
    (1.0, 0.0)
    """
    return float(answer == truth)


def word_f1(answer: str, truth: str) -> float:
    """The harmonic mean of precision and recall of words, with their numbers.

    >>> word_f1("a b b", "b b c d")
    0.5714285714285714
    """
    one, other = Counter(answer.split()), Counter(truth.split())
    common = sum((one & other).values())
    return 2 * common / (sum(one.values()) + sum(other.values())) if common else float(answer == truth)


def minimum_bayes_risk(
    samples: Population | Samples | Mapping[str, float],
    utility: Utility = word_f1,
    *,
    candidates: Sequence[str] | None = None,
) -> tuple[RankedText, ...]:
    """Candidates by their expected utility, ``sum_y P(y) utility(candidate, y)``, best first.

    ``P`` is the posterior of what was drawn, or a mapping from texts to weights; ``candidates`` are its texts unless
    others are given.  Equal utilities go by probability, then in the order of ``P``.  Bickel and Doksum's rule, for
    translation Kumar and Byrne (NAACL 2004); sampled candidates Eikema and Aziz (EMNLP 2022).  Costs a utility for each
    pair.  Raises `GuidedError` where there is nothing to choose among.

    >>> from guided.search import exact_match, minimum_bayes_risk
    >>> drawn = {"the cat sat": 0.3, "a dog": 0.4, "the cat sat down": 0.3}
    >>> minimum_bayes_risk(drawn)[0].text, minimum_bayes_risk(drawn, exact_match)[0].text
    ('the cat sat', 'a dog')
    """
    given = samples if isinstance(samples, Mapping) else samples.posterior()
    total = math.fsum(given.values())
    if not given or not total > 0 or min(given.values()) < 0:
        raise GuidedError("there are no samples with weight to choose among", remedy="Draw more, or loosen the goal.")
    shares = {text: weight / total for text, weight in given.items() if weight > 0}
    texts = list(shares) if candidates is None else list(dict.fromkeys(candidates))
    ranked = [
        RankedText(
            text, math.fsum(share * utility(text, truth) for truth, share in shares.items()), shares.get(text, 0.0)
        )
        for text in texts
    ]
    return tuple(sorted(ranked, key=lambda each: (-each.utility, -each.probability)))


@dataclass(frozen=True)
class Consensus:
    """What generator and discriminator agree on; candidates in the order in which they were given.

    >>> import numpy as np
    >>> from guided import search
    >>> found = search.consensus_game(np.log([[0.2, 0.8], [0.6, 0.4]]), np.log([[0.3, 0.9], [0.7, 0.1]]), rounds=500)
    >>> found.by_generator, found.by_discriminator, found.discriminator.round(2).tolist()
    ([0, 1], [0, 1], [[0.02, 0.99], [0.98, 0.01]])
    """

    generator: NDArray[np.float64]
    """``float64[2, n]``: of each candidate, where an incorrect (row 0) and a correct (row 1) one is asked for."""
    discriminator: NDArray[np.float64]
    """``float64[2, n]``: the probability that each candidate is incorrect (row 0) and correct (row 1)."""

    @property
    def by_discriminator(self) -> list[int]:
        """ER-D: the candidates by the discriminator's probability of correct, best first."""
        return np.argsort(-self.discriminator[1], kind="stable").tolist()  # type: ignore[no-any-return]

    @property
    def by_generator(self) -> list[int]:
        """ER-G: the candidates by the generator's probability when asked for a correct one, best first."""
        return np.argsort(-self.generator[1], kind="stable").tolist()  # type: ignore[no-any-return]


def consensus_game(
    generator: ArrayLike,
    discriminator: ArrayLike,
    *,
    rounds: int = 5000,
    rate: float = 0.1,
    stay: float = 0.1,
) -> Consensus:
    """Equilibrium ranking: Jacob, Shen, Farina and Andreas, "The Consensus Game" (ICLR 2024, arXiv 2310.09139).

    ``generator`` is ``[2, n]`` log-probabilities of the candidates, asked for an incorrect and a correct answer, and
    ``discriminator`` ``[2, n]`` log-probabilities that each is incorrect and correct; both are normalised here, over
    candidates and over correctness.  Each player is paid where they agree on the correctness, and updates by

        ``pi(t+1) ~ exp((Q(t) + stay log pi(1)) / (1 / (rate t) + stay))``

    with ``Q(t)`` half the mean of the other's policies so far: no-regret learning that stays near where it began (piKL;
    Jacob et al., ICML 2022).  The defaults are the paper's.  Reconstructed from the paper's text, section 2.  Ties
    stay in order.  Raises `GuidedError` for other shapes, candidates that nothing gives a probability, and settings
    that are not positive.

    >>> import numpy as np
    >>> from guided.search import consensus_game
    >>> asked_wrong_and_right = np.log([[0.5, 0.3, 0.2], [0.4, 0.35, 0.25]])  # the generator likes the first answer
    >>> judged_wrong_and_right = np.log([[0.9, 0.1, 0.8], [0.1, 0.9, 0.2]])  # the discriminator believes the second
    >>> consensus_game(asked_wrong_and_right, judged_wrong_and_right, rounds=500).by_discriminator
    [1, 2, 0]
    """
    first_g, first_d = (np.asarray(values, np.float64) for values in (generator, discriminator))
    if first_g.ndim != 2 or first_g.shape[0] != 2 or first_g.shape != first_d.shape or not first_g.shape[1]:
        raise GuidedError(f"policies of shapes {first_g.shape} and {first_d.shape}", remedy="Give two of [2, n].")
    if rounds < 1 or not rate > 0 or not stay > 0:
        raise GuidedError(f"{rounds} rounds, rate {rate}, stay {stay}", remedy="All are positive.")
    first_g, first_d = _normalised(first_g, 1), _normalised(first_d, 0)
    now_g, now_d = np.exp(first_g), np.exp(first_d)
    sum_g, sum_d = np.zeros_like(now_g), np.zeros_like(now_d)
    for t in range(1, rounds + 1):
        sum_g += now_g
        sum_d += now_d
        scale = 1 / (rate * t) + stay
        now_g = np.exp(_normalised((sum_d / (2 * t) + stay * first_g) / scale, 1))
        now_d = np.exp(_normalised((sum_g / (2 * t) + stay * first_d) / scale, 0))
    return Consensus(now_g, now_d)


def _normalised(logs: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    top = logs.max(axis=axis, keepdims=True)
    if not np.isfinite(top).all():
        raise GuidedError("a policy gives nothing a probability, or is no number", remedy="Give finite logarithms.")
    shifted: Any = logs - top
    values: NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))
    return values
