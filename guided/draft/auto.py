"""`auto`: the draft to use when nothing is known: no training, no second model, off by itself where it does not pay."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from guided.constraint.protocol import Constrains
from guided.draft.drafter import Drafter
from guided.draft.guessers.best_first import BestFirst
from guided.draft.guessers.forced_bytes import ForcedBytes
from guided.draft.guessers.lookup import PromptLookup
from guided.draft.guessers.mask_counts import MaskCounts
from guided.draft.guessers.ngram_counts import NGrams
from guided.draft.guessers.recycling import Recycling
from guided.draft.loop.shared import SharedDrafts
from guided.draft.policies.goodput import Goodput
from guided.draft.policies.policy import Policy
from guided.infer.populations.prefixes import Branches, PrefixTree
from guided.lm.model import LanguageModel

__all__ = ["Drafting", "auto"]


@dataclass(frozen=True)
class Drafting:
    """A drafter, and how much it may draft; both learn, so keep one for texts that are alike."""

    drafter: Drafter
    policy: Policy
    by_block: bool = False
    """Whether drafts that are lines are verified as wholes, where tokens are drawn; not for particles."""

    def branches(
        self,
        model: LanguageModel,
        prompt: Sequence[int],
        tree: PrefixTree,
        size: int,
        *,
        constraint: Constrains | None,
        eos_ids: Iterable[int],
        max_tokens: int,
    ) -> Branches:
        """The scores of a population's prefixes, drafts scored along: `guided.infer.populations.prefixes.Drafts`."""
        return SharedDrafts(
            self.drafter,
            self.policy,
            model,
            prompt,
            tree,
            size,
            constraint=constraint,
            eos_ids=eos_ids,
            max_tokens=max_tokens,
        )


LENGTHS = (4, 8, 16, 32)
"""The third of these is tried first: see docs/SPECULATION.md for what each gives."""


def auto() -> Drafting:
    """One tree of forced bytes, prompt lookup, counts by mask and by the grammar's state, and recycled scores, under
    `Goodput`.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> from guided.draft import auto
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> drafting = auto()
    >>> _, counts = draft.speculate(0, model, [[0]], [None], drafting.drafter, greedy=True, max_tokens=30)
    >>> counts.passes < 30
    True
    """
    guessers = (ForcedBytes(), PromptLookup(), MaskCounts(), NGrams(), Recycling())
    return Drafting(BestFirst(*guessers), Goodput(LENGTHS))
