"""Which draft tokens are accepted, so that the output has exactly the law of decoding without drafts.

One rule for all: try what was proposed after a node in its order; accepting and rejecting take from the target just
what the proposal put in, so whatever is drawn in the end has the target's law.  Chains (Leviathan et al. 2023, Chen et
al. 2023), drafts chosen by rule, children without replacement (recursive rejection sampling; Jeon et al. 2024) and
independent ones (k-SEQ; Sun et al. 2023, arXiv 2310.15141) differ only in the rule of one group.

The target is the model's distribution after steering, temperature, truncation and mask.  A draft may use a mask or not:
what the target forbids is refused here with probability 1.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from guided.draft.proposal import Drawn, Group
from guided.infer.chance import Chance
from guided.infer.distribution import TokenDistribution

__all__ = ["Greedy", "Sampled", "Target", "first_accepted", "independence_factor"]


class Target(Protocol):
    """What is left of the next token's law after drafts were refused."""

    def take(self, chance: Chance, group: Group) -> int | None:
        """The token of a group that is accepted, None when all are refused: the law is then what is left of it."""

    def draw(self, chance: Chance) -> int:
        """A token by what is left."""


def first_accepted(chance: Chance, target: Target, groups: list[Group]) -> int | None:
    """Try the groups of a node in turn; the accepted token, or None."""
    for group in groups:
        token = target.take(chance, group)
        if token is not None:
            return token
    return None


class Greedy:
    """The likeliest token and nothing else: the first among equals."""

    def __init__(self, scores: NDArray[np.floating[Any]]) -> None:
        self.best = int(scores.argmax())

    def take(self, chance: Chance, group: Group) -> int | None:
        """No choice is made."""
        return self.best if self.best in group.tokens else None

    def draw(self, chance: Chance) -> int:
        """No choice is made."""
        return self.best


class Sampled:
    """A distribution, of which refused drafts have taken their part."""

    def __init__(self, distribution: TokenDistribution) -> None:
        self._whole = distribution
        self._gone: list[int] = []
        """Tokens refused for sure, not yet taken out of the arrays: drafts by rule touch one number each."""
        self._gone_weight = 0.0

    def take(self, chance: Chance, group: Group) -> int | None:
        """The accepted token of a group, or None."""
        if group.drawn is Drawn.BY_RULE:
            return next((token for token in group.tokens if self._take_token(chance, token)), None)
        assert group.probabilities is not None
        if group.drawn is Drawn.WITHOUT_REPLACEMENT:
            return self._take_without_replacement(chance, group.tokens, self._widened(group.probabilities))
        return self._take_independent(chance, group.tokens, self._widened(group.probabilities))

    def _take_token(self, chance: Chance, token: int) -> bool:
        """A point mass as the proposal: accepted by the token's own probability, and gone when it is not."""
        weight = 0.0 if token in self._gone or token >= self._whole.size else float(self._whole.weights[token])
        left = self._whole.sum - self._gone_weight
        if weight and _accepts(chance, weight / left):
            return True
        if weight:
            self._gone.append(token)
            self._gone_weight += weight
            if 2 * self._gone_weight > self._whole.sum:
                self._settle()
        return False

    def _widened(self, proposal: NDArray[np.float64]) -> NDArray[np.float64]:
        """A copy with a number for every id of the target: a draft may know fewer."""
        found = np.zeros(max(proposal.size, self._whole.size))
        found[: proposal.size] = proposal
        return found

    def _take_without_replacement(
        self, chance: Chance, tokens: tuple[int, ...], proposal: NDArray[np.float64]
    ) -> int | None:
        for token in tokens:
            probabilities = self._probabilities(proposal.size)
            if _accepts(chance, probabilities[token] / proposal[token]):
                return token
            self._leave(np.maximum(probabilities - proposal, 0.0))
            proposal[token] = 0.0
            total = proposal.sum()
            if total > 0:
                proposal /= total
        return None

    def _take_independent(self, chance: Chance, tokens: tuple[int, ...], proposal: NDArray[np.float64]) -> int | None:
        probabilities = self._probabilities(proposal.size)
        factor = independence_factor(probabilities, proposal, len(tokens))
        common = np.minimum(proposal, probabilities / factor)
        for token in tokens:
            if _accepts(chance, probabilities[token] / (factor * proposal[token])):
                return token
        share = float(common.sum())
        accepted = 1.0 - (1.0 - share) ** len(tokens)
        self._leave(np.maximum(probabilities - common * (accepted / share), 0.0) if share else probabilities)
        return None

    def draw(self, chance: Chance) -> int:
        """A token by what is left."""
        self._settle()
        return chance.token(self._whole)

    def _probabilities(self, size: int) -> NDArray[np.float64]:
        self._settle()
        found = np.zeros(size)
        n = min(size, self._whole.size)
        found[:n] = self._whole.weights[:n] / self._whole.sum
        return found

    def _leave(self, weights: NDArray[np.float64]) -> None:
        """Go on with these weights.  All 0 only where proposal and target are equal but for rounding: nothing changes,
        since then nothing is refused but by rounding."""
        if weights.any():
            with np.errstate(divide="ignore"):
                self._whole = TokenDistribution(np.log(weights))

    def _settle(self) -> None:
        if self._gone:
            self._whole = self._whole.without(self._gone)
            self._gone, self._gone_weight = [], 0.0


def independence_factor(target: NDArray[np.float64], proposal: NDArray[np.float64], n: int) -> float:
    """The factor by which ``n`` independent drafts may be trusted: the root of ``1 - (1 - b)^n = rho b`` in [1, n].

    ``b(rho) = sum min(proposal, target / rho)``; a smaller factor would accept more than the target has (SpecTr,
    algorithm 2).  By bisection, to the last digits, from above: 1 for one draft.
    """
    low, high = 1.0, float(n)
    for _ in range(60):
        middle = (low + high) / 2
        share = float(np.minimum(proposal, target / middle).sum())
        if 1.0 - (1.0 - share) ** n <= middle * share:
            high = middle
        else:
            low = middle
        if high - low <= 1e-15 * high:
            break
    return high


def _accepts(chance: Chance, share: float) -> bool:
    share = min(float(share), 1.0)
    return share >= 1.0 or (share > 0.0 and chance.index([1.0 - share, share]) == 1)
