"""What a draft is asked, and what it learns from: the seam between `guided.draft.speculate` and all drafts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch

from guided.constraint.protocol import Constrains
from guided.draft.proposal import Proposal
from guided.infer.chance import Chance
from guided.lm.model import Tree

__all__ = ["Context", "Drafter", "Observed"]


@dataclass(frozen=True)
class Context:
    """One row at the moment at which a draft is wanted."""

    row: int
    """The row's number in the run; stays the same while others end."""
    tokens: Sequence[int]
    """Prompt and text so far, up to the last token that was emitted: the row's own list, which grows, so that what is
    learned from later finds the tokens emitted since at its end; not to be written to."""
    n_prompt: int
    """How many of them are the prompt."""
    constraint: Constrains | None
    """What the row's text must satisfy."""
    state: int
    """The constraint's state after the text; 0 without a constraint."""
    budget: int
    """The most nodes that are wanted."""


@dataclass(frozen=True)
class Observed:
    """What one verification showed of one row."""

    context: Context
    proposal: Proposal
    accepted: tuple[int, ...]
    """The nodes that were accepted, from the text downwards."""
    emitted: tuple[int, ...]
    """The tokens that the round added: forced ones, accepted ones, and the one drawn after them."""
    tree: Tree
    """What the model has scored in this round: pending tokens in a line, then nodes of the proposal."""
    before: int | None
    """The token in front of them; None where the model saw them first."""
    logits: torch.Tensor
    """``[len(tree), V]``: after each of them, on the model's device; not to be written to."""

    @property
    def fed(self) -> tuple[int, ...]:
        """The tokens of ``tree``."""
        return self.tree.tokens


class Drafter(Protocol):
    """Proposes what may come next.  Any proposal is safe: verification keeps the target's law whatever it holds."""

    def draft(self, chance: Chance, contexts: Sequence[Context]) -> list[Proposal]:
        """A proposal for each row; an empty one where nothing comes to mind.

        The tokens drawn at random must come from ``chance``, and from the distribution that the proposal names.
        """

    def learn(self, observed: Sequence[Observed]) -> None:
        """See what came of the last proposals of rows that are still there or have just ended."""

    def leave(self, rows: Sequence[int]) -> None:
        """Forget what was kept for rows of the run that have ended."""
