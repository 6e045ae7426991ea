"""`Union`: the drafts of several drafters merged into one tree for one forward pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from guided.draft.drafter import Context, Drafter, Observed, needs_of
from guided.draft.proposal import Proposal
from guided.infer.chance import Chance
from guided.lm.model import Needs

__all__ = ["Union"]


class Union:
    """Asks its drafters in turn, each for as many nodes as the ones before have left; equal beginnings are one.

    A place where several drafters have children tries them in the drafters' order, which keeps the target's law: see
    `guided.draft.acceptance.verify`.  What a drafter has drawn is taken whole, since to leave out some of it after it
    was drawn would change its law.  ``share`` is the most of the whole budget that one drafter is asked for.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> drafter = draft.Union(draft.Datastore.of([[2, 2, 1], [0, 0, 2]]), draft.PromptLookup())
    >>> _, counts = draft.speculate(0, model, [[0]], [None], drafter, greedy=True, max_tokens=16)
    >>> counts.passes < 16  # where one knows nothing, or the wrong thing, the other has its say
    True
    """

    def __init__(self, *drafters: Drafter, share: float = 1.0) -> None:
        self.drafters = drafters
        self.share = share

    @property
    def needs(self) -> Needs:
        """What its drafters need of the target."""
        return needs_of(*self.drafters)

    def draft(self, chance: Chance, contexts: Sequence[Context]) -> list[Proposal]:
        """One merged tree a row."""
        merged = [Proposal() for _ in contexts]
        for drafter in self.drafters:
            asked = [
                i for i, (context, one) in enumerate(zip(contexts, merged, strict=True)) if len(one) < context.budget
            ]
            if not asked:
                break
            own = [replace(contexts[i], budget=self._budget(contexts[i].budget, len(merged[i]))) for i in asked]
            for i, proposal in zip(asked, drafter.draft(chance, own), strict=True):
                merged[i].graft(proposal)
        return merged

    def _budget(self, whole: int, used: int) -> int:
        return min(whole - used, max(1, round(self.share * whole)))

    def learn(self, observed: Sequence[Observed]) -> None:
        """Every drafter sees what became of the merged tree."""
        for drafter in self.drafters:
            drafter.learn(observed)

    def leave(self, rows: Sequence[int]) -> None:
        """Pass it on."""
        for drafter in self.drafters:
            drafter.leave(rows)
