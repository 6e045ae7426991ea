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
    """Asks its drafters in turn; equal beginnings are one, and each may use what the ones before have left.

    A place where several drafters have children tries them in the drafters' order, which keeps the target's law: see
    `guided.draft.verify`.  ``share`` is the most of the whole budget that one drafter gets.
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
            own = [
                replace(contexts[i], budget=min(contexts[i].budget, max(1, round(self.share * contexts[i].budget))))
                for i in asked
            ]
            for i, proposal in zip(asked, drafter.draft(chance, own), strict=True):
                merged[i].graft(proposal, contexts[i].budget - len(merged[i]))
        return merged

    def learn(self, observed: Sequence[Observed]) -> None:
        """Every drafter sees what became of the merged tree."""
        for drafter in self.drafters:
            drafter.learn(observed)

    def leave(self, rows: Sequence[int]) -> None:
        """Pass it on."""
        for drafter in self.drafters:
            drafter.leave(rows)
