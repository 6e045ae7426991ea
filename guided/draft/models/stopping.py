"""`HeadStopped`: a draft model that stops when a trained head expects a refusal (SpecDec++; Huang et al., 2024).

The head reads the draft model's hidden state after each of its tokens and says how likely the target accepts that token
if it accepted those before.  Drafting ends when the probability that some token was refused exceeds a threshold.  What
is decided on is what was drawn before, so the law is kept (arXiv 2405.19715).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch

from guided.draft.drafter import Context
from guided.draft.models.acceptance_head import AcceptanceHead
from guided.draft.models.model import Model
from guided.draft.models.shapes import Chain, Leaf, Shaping
from guided.draft.proposal import Drawn, Group, Proposal
from guided.errors import GuidedError
from guided.infer.chance import Chance
from guided.lm.model import LanguageModel, Needs, check_needs

__all__ = ["HeadStopped"]


class HeadStopped(Model):
    """Drafts chains of ``least`` to ``most`` tokens, as long as 1 - (product of the head's values) <= ``threshold``.

    ``by_rule``: the likeliest tokens instead of drawn ones.  Raises `UnsupportedError` for a model without hidden
    states.

    >>> import numpy as np
    >>> import torch
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> base = draft.Base(torch.eye(4), 4 * torch.eye(4))  # the state says which token was last
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3],  # 0 1 2 0 1 2 ...
    ...     hidden=lambda tokens: np.eye(4)[(0, *tokens)[-1]])
    >>> _ = torch.manual_seed(0)
    >>> head = draft.AcceptanceHead(hidden=4)
    >>> doubtful, sure = (draft.HeadStopped(model, head, threshold=t, most=8, by_rule=True) for t in (0.0, 1.0))
    >>> context = draft.Context(0, [0], 1, None, 1, budget=8)
    >>> [len(each.draft(None, [context])[0].tree.tokens) for each in (doubtful, sure)]
    [2, 8]
    """

    def __init__(
        self,
        model: LanguageModel,
        head: AcceptanceHead,
        *,
        threshold: float = 0.3,
        least: int = 2,
        most: int = 20,
        by_rule: bool = False,
        target: LanguageModel | None = None,
    ) -> None:
        if not 0 <= threshold <= 1 or not 1 <= least <= most:
            raise GuidedError(
                f"drafts of {least} to {most} tokens cannot stop at {threshold}",
                where="HeadStopped",
                remedy="Give a probability, and lengths from 1 on, the least one first.",
            )
        super().__init__(model, Chain(most), by_rule=by_rule, target=target)
        self._asked = Needs(hidden=True)
        check_needs(self._asked, model.can, "the draft model")
        self.head = head.eval()
        self.threshold = threshold
        self.least = least
        self.most = most

    def _drafted(self, chance: Chance, contexts: Sequence[Context]) -> list[Proposal]:
        """One pass of the draft model for each token but the last, for all rows together."""
        self._follow(contexts)
        assert self._sequences is not None
        lines = {context.row: _Line(context, self.model, self._shaping(context)) for context in contexts}
        logits = dict(zip(lines, self._last(contexts), strict=True))
        for _ in range(self.most):
            for row, line in lines.items():
                if line.going:
                    line.add(chance, logits[row], self.by_rule)
            fed = [lines[row].fresh if row in lines and lines[row].going else [] for row in self._rows]
            if not any(fed):
                break
            found = self._sequences.extend(fed)
            for row, new, scores in zip(self._rows, fed, found, strict=True):
                if new:
                    assert scores.hidden is not None
                    logits[row] = scores.logits[-1]
                    lines[row].survival *= self.head.chance(scores.hidden[-1])
                    if len(lines[row].proposal) >= self.least and 1.0 - lines[row].survival > self.threshold:
                        lines[row].going = False
        return [lines[context.row].proposal for context in contexts]


@dataclass
class _Line:
    """One row's chain while it grows."""

    context: Context
    model: LanguageModel
    shaping: Shaping | None
    proposal: Proposal = field(default_factory=Proposal)
    survival: float = 1.0
    going: bool = True
    node: int = -1

    def __post_init__(self) -> None:
        self.width = min(self.model.width, self.context.width)
        self.masks = self.context.row_masks
        self.state = self.context.state
        self.fresh: list[int] = []

    def add(self, chance: Chance, logits: torch.Tensor, by_rule: bool) -> None:
        """One more token."""
        allowed = self.masks.allowed(self.state, self.context.left(len(self.proposal)), self.width)
        leaf = Leaf.after(self.node, logits[: self.width], allowed, shaping=self.shaping)
        if leaf is None:
            self.going, self.fresh = False, []
            return
        token = leaf.take(None if by_rule else chance)
        group = Group((token,)) if by_rule else Group((token,), Drawn.WITHOUT_REPLACEMENT, leaf.probabilities)
        (self.node,) = self.proposal.add(self.node, group)
        self.state = self.masks.advance(self.state, token)
        self.fresh = [token]
        ended = token in self.model.eos_ids or not self.state or len(self.proposal) >= self.context.longest
        self.going = not ended
