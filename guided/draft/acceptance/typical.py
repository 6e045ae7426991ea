"""`Typical`: a lossy way to accept drafts, by how typical they are.  The output does *not* have the target's law.

Medusa's rule (Cai et al., 2024, arXiv 2401.10774): a draft token is accepted where its probability is above
``min(epsilon, delta * exp(-entropy))``: where the model is unsure, much will do.  What is accepted depends on what was
drafted.  Tokens that the constraint forbids have probability 0, so texts stay in its language.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from guided.draft.acceptance.lossy import HiddenAfter
from guided.draft.acceptance.verify import Target
from guided.draft.proposal import Group
from guided.errors import GuidedError
from guided.infer.chance import Chance
from guided.infer.distribution import TokenDistribution
from guided.lm.model import NOTHING, Needs

__all__ = ["Typical"]


@dataclass(frozen=True)
class Typical:
    """The rule's two thresholds; raises `GuidedError` for any outside (0, 1].

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> unsure = TableModel.of({}, otherwise=[0.4, 0.3, 0.3, 0.0])
    >>> drafter = draft.Datastore.of([[1, 1, 1, 1, 1, 1, 1, 1]])
    >>> def passes(lossy):
    ...     return draft.speculate(0, unsure, [[1, 1]], [None], drafter, max_tokens=12, lossy=lossy)[1].passes
    >>> passes(draft.Typical()) < passes(None)  # what is likely enough stays, and the law is another
    True
    """

    epsilon: float = 0.09
    delta: float = 0.3

    def __post_init__(self) -> None:
        for name, value in (("epsilon", self.epsilon), ("delta", self.delta)):
            if not 0 < value <= 1:
                raise GuidedError(f"{name} is {value}", remedy="It must be above 0 and at most 1.")

    @property
    def needs(self) -> Needs:
        """Logits are enough."""
        return NOTHING

    def target(self, distribution: TokenDistribution, after: HiddenAfter) -> Target:
        """What decides about drafts at one place."""
        shares = distribution.weights / distribution.sum
        entropy = -float((shares[shares > 0] * np.log(shares[shares > 0])).sum())
        return _Typical(distribution, min(self.epsilon, self.delta * math.exp(-entropy)))


class _Typical:
    """Takes the first draft above the threshold, and else draws from the whole distribution."""

    def __init__(self, distribution: TokenDistribution, threshold: float) -> None:
        self._distribution = distribution
        self._threshold = threshold

    def take(self, chance: Chance, group: Group) -> int | None:
        """No choice is made."""
        least = self._threshold * self._distribution.sum
        known = self._distribution.size
        return next((t for t in group.tokens if t < known and self._distribution.weights[t] > least), None)

    def draw(self, chance: Chance) -> int:
        """A token of the whole distribution."""
        return chance.token(self._distribution)
