"""`Chosen`: one drafter of several for each row and round, by an upper confidence bound (UCBSpec over drafters)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from guided.draft.drafter import Context, Drafter, Observed, needs_of
from guided.draft.proposal import Proposal
from guided.errors import GuidedError
from guided.infer.chance import Chance
from guided.lm.model import Needs

__all__ = ["Chosen"]


class Chosen:
    """Lets the drafter draft whose rounds gave the most tokens; all learn from every round.

    Rewards are accepted tokens as a share of the budget; ``counts`` has the rounds of each drafter.  A round for which
    nothing came to mind counts as one without accepted tokens.  Raises `GuidedError` without drafters.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> drafter = draft.Chosen(draft.Datastore.of([[2, 2, 1], [0, 0, 2]]), draft.PromptLookup())
    >>> _ = draft.speculate(0, model, [[0]], [None], drafter, greedy=True, max_tokens=40)
    >>> wrong, right = drafter.counts
    >>> right > wrong
    True
    """

    def __init__(self, *drafters: Drafter, exploration: float = 0.5) -> None:
        if not drafters:
            raise GuidedError("there are no drafters to choose from", remedy="Give one or more.")
        self.drafters = drafters
        self.exploration = exploration
        self.counts = [0] * len(drafters)
        self.sums = [0.0] * len(drafters)
        self._chosen: dict[int, int] = {}

    @property
    def needs(self) -> Needs:
        """What its drafters need of the target."""
        return needs_of(*self.drafters)

    def draft(self, chance: Chance, contexts: Sequence[Context]) -> list[Proposal]:
        """The chosen drafter's proposal for each row."""
        found = [Proposal() for _ in contexts]
        asked: dict[int, list[int]] = {}
        for i, context in enumerate(contexts):
            arm = self._chosen[context.row] = self._best()
            asked.setdefault(arm, []).append(i)
        for arm, rows in asked.items():
            for i, proposal in zip(rows, self.drafters[arm].draft(chance, [contexts[i] for i in rows]), strict=True):
                found[i] = proposal
        return found

    def _best(self) -> int:
        for arm, n in enumerate(self.counts):
            if not n and arm not in self._chosen.values():
                return arm
        total = sum(self.counts)
        return max(
            range(len(self.drafters)),
            key=lambda arm: (
                self.sums[arm] / self.counts[arm] + math.sqrt(self.exploration * math.log(total) / self.counts[arm])
                if self.counts[arm]
                else -math.inf
            ),
        )

    def learn(self, observed: Sequence[Observed]) -> None:
        """Credit the choices, and let every drafter learn."""
        for seen in observed:
            arm = self._chosen.pop(seen.context.row, None)
            if arm is not None and seen.context.budget:
                self.counts[arm] += 1
                self.sums[arm] += len(seen.accepted) / seen.context.budget
        for drafter in self.drafters:
            drafter.learn(observed)

    def leave(self, rows: Sequence[int]) -> None:
        """Pass it on."""
        for row in rows:
            self._chosen.pop(row, None)
        for drafter in self.drafters:
            drafter.leave(rows)
