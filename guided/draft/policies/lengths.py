"""Numbers of draft nodes that follow how drafting goes: the heuristic of transformers, and a batch's bandits.

Bandits (BanditSpec, 2505.15141): every length is an arm, its reward what a round of that length gave.  Each arm has
its own count of rounds, without which exploring ends after the first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from guided.draft.policies.policy import Round
from guided.errors import GuidedError
from guided.infer.chance import Random, chance_of

__all__ = ["EXP3", "UCB", "Heuristic", "Reward", "emitted_share"]

Reward = Callable[[Round, int], float]
"""What a round was worth, from 0 to 1, given the longest length of all arms."""


def emitted_share(round_: Round, longest: int) -> float:
    """The tokens of a round as a share of the most that any arm can give: forced ones are not the draft's."""
    return (round_.accepted + 1) / (longest + 1)


class Heuristic:
    """Two more after a round in which all was accepted, one fewer after any other, at least one: as transformers does.

    Each row has its own number.

    >>> from guided.draft import Heuristic, Round
    >>> policy = Heuristic(nodes=5)
    >>> policy.saw([Round(row=0, drafted=5, accepted=5, emitted=6, batch=2, draft_seconds=0.0, model_seconds=0.1)])
    >>> policy.saw([Round(row=1, drafted=5, accepted=2, emitted=3, batch=2, draft_seconds=0.0, model_seconds=0.1)])
    >>> policy.budget(0, 2), policy.budget(1, 2)
    (7, 4)
    """

    def __init__(self, nodes: int = 5, *, most: int = 64) -> None:
        self.nodes = nodes
        self.most = most
        self._rows: dict[int, int] = {}

    def budget(self, row: int, batch: int) -> int:
        """The row's number."""
        return self._rows.get(row, self.nodes)

    def saw(self, rounds: list[Round]) -> None:
        """Count up or down; rounds for which no draft came to mind say nothing."""
        for one in rounds:
            if one.drafted:
                now = self.budget(one.row, one.batch)
                more = one.accepted == one.drafted
                self._rows[one.row] = min(now + 2, self.most) if more else max(now - 1, 1)

    def leave(self, rows: Sequence[int]) -> None:
        """Forget the numbers of rows that have ended."""
        for row in rows:
            self._rows.pop(row, None)


class UCB:
    """Takes the length with the best upper confidence bound of its reward; every length is tried once first.

    ``exploration`` is the constant c of ``mean + sqrt(c log t / n)``, n being the arm's own rounds.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> policy = draft.UCB(lengths=(0, 4))
    >>> look = draft.PromptLookup()
    >>> _, counts = draft.speculate(0, model, [[0]], [None], look, greedy=True, max_tokens=60, policy=policy)
    >>> counts.passes < 40
    True
    """

    def __init__(
        self,
        lengths: Sequence[int] = (0, 2, 4, 8, 16),
        *,
        exploration: float = 0.5,
        reward: Reward = emitted_share,
    ) -> None:
        self.lengths = _checked(lengths)
        self.exploration = exploration
        self.reward = reward
        self.counts = [0] * len(self.lengths)
        self.sums = [0.0] * len(self.lengths)
        self._chosen: dict[int, int] = {}

    def budget(self, row: int, batch: int) -> int:
        """The best arm's length."""
        total = sum(self.counts)
        bounds = [
            math.inf if not n else s / n + math.sqrt(self.exploration * math.log(total) / n)
            for n, s in zip(self.counts, self.sums, strict=True)
        ]
        arm = self._chosen[row] = bounds.index(max(bounds))
        return self.lengths[arm]

    def saw(self, rounds: list[Round]) -> None:
        """Credit each round to its row's arm."""
        for one in rounds:
            arm = self._chosen.pop(one.row, None)
            if arm is not None:
                self.counts[arm] += 1
                self.sums[arm] += self.reward(one, max(self.lengths))

    def leave(self, rows: Sequence[int]) -> None:
        """Forget choices that were not played."""
        for row in rows:
            self._chosen.pop(row, None)


class EXP3:
    """Draws the length with probabilities that fall with the losses of each, for rewards that change as they like.

    Losses are weighed by the probability of the choice, so that arms drawn seldom are not judged too well;
    the rate is ``sqrt(log K / (t K))`` for K arms after t rounds.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> policy = draft.EXP3(0, lengths=(0, 4))
    >>> look = draft.PromptLookup()
    >>> _, counts = draft.speculate(0, model, [[0]], [None], look, greedy=True, max_tokens=60, policy=policy)
    >>> nothing, four = policy.probabilities
    >>> four > nothing  # drafts pay here, and it has learned so
    True
    """

    def __init__(
        self, rng: Random, lengths: Sequence[int] = (0, 2, 4, 8, 16), *, reward: Reward = emitted_share
    ) -> None:
        self.lengths = _checked(lengths)
        self.reward = reward
        self.losses = np.zeros(len(self.lengths))
        self.rounds = 0
        self._chance = chance_of(rng)
        self._chosen: dict[int, tuple[int, float]] = {}

    @property
    def probabilities(self) -> list[float]:
        """Of each length at this moment."""
        arms = len(self.lengths)
        rate = math.sqrt(math.log(arms) / (max(1, self.rounds) * arms))
        weights = np.exp(-rate * (self.losses - self.losses.min()))
        found: list[float] = (weights / weights.sum()).tolist()
        return found

    def budget(self, row: int, batch: int) -> int:
        """A length by its probability."""
        probabilities = self.probabilities
        arm = self._chance.index(probabilities)
        self._chosen[row] = arm, probabilities[arm]
        return self.lengths[arm]

    def saw(self, rounds: list[Round]) -> None:
        """Credit each round to its row's arm."""
        for one in rounds:
            found = self._chosen.pop(one.row, None)
            if found is not None:
                arm, probability = found
                self.rounds += 1
                self.losses[arm] += (1.0 - self.reward(one, max(self.lengths))) / probability

    def leave(self, rows: Sequence[int]) -> None:
        """Forget choices that were not played."""
        for row in rows:
            self._chosen.pop(row, None)


def _checked(lengths: Sequence[int]) -> tuple[int, ...]:
    if len(set(lengths)) < 2 or min(lengths) < 0:
        raise GuidedError(
            f"{list(lengths)} are no lengths to choose from", remedy="Give two or more different numbers, 0 or more."
        )
    return tuple(sorted(set(lengths)))
