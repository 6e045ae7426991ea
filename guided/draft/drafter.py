"""What a draft is asked, and what it learns from: the seam between `guided.draft.speculate` and all drafts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch

from guided.constraint.protocol import Constrains
from guided.draft.masks import RowMasks
from guided.draft.proposal import Proposal
from guided.errors import UnsupportedError
from guided.infer.chance import Chance
from guided.lm.model import NOTHING, Needs, Tree

__all__ = ["Context", "Drafter", "Observed", "needs_of", "reads_prompts", "require_lines", "require_no_needs"]


@dataclass(frozen=True)
class Context:
    """One row at the moment at which a draft is wanted.

    >>> from guided import draft
    >>> context = draft.Context(row=0, tokens=[0, 1, 2, 0, 1], n_prompt=1, constraint=None, state=1, budget=3)
    >>> (proposal,) = draft.PromptLookup().draft(None, [context])
    >>> proposal.tree.tokens, context.longest
    ((2, 0, 1), 3)
    """

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
    """The most nodes that are wanted; a drafter stops there while it draws, and never drops what it has drawn."""
    n_unseen: int = 1
    """How many of the last tokens the model has not seen: the one drawn last, and those forced after it."""
    hidden: torch.Tensor | None = field(default=None, compare=False)
    """``[d]``: the model's hidden state after the last token that it has seen, for drafts that need it."""
    depth: int = sys.maxsize
    """The most nodes in a line that can still be accepted before the limit of tokens; deeper ones are not scored."""

    width: int = sys.maxsize
    """How many ids the target scores: a draft model with more of them draws none of those."""
    shaping: Callable[[torch.Tensor], torch.Tensor] | None = field(default=None, compare=False)
    """What temperature and truncation make of the scores of allowed tokens, ``[V]``, where the target's tokens are
    drawn after both: a draft that is drawn the same way is accepted more often."""

    prompt_hidden: torch.Tensor | None = field(default=None, compare=False)
    """``[n_prompt, d]``: the states after each token of the prompt, for drafts that need them: see `reads_prompts`."""

    masks: RowMasks | None = field(default=None, compare=False)
    """The masks of the row in the run: what a draft asks for here need not be filled again to verify it."""

    @property
    def row_masks(self) -> RowMasks:
        """The row's masks; of a context outside of a run, masks of its own, which know no limit of tokens."""
        return RowMasks(self.constraint, end_in_time=False) if self.masks is None else self.masks

    def left(self, drafted: int) -> int:
        """How many tokens are left to the limit after so many drafted ones."""
        return self.depth + 1 - drafted

    @property
    def longest(self) -> int:
        """The most tokens that a chain may have."""
        return min(self.budget, self.depth)


@dataclass(frozen=True)
class Observed:
    """What one verification showed of one row.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> class Watching(draft.PromptLookup):
    ...     def learn(self, observed):
    ...         told.extend((each.proposal.tree.tokens, each.accepted, each.emitted) for each in observed)
    ...         super().learn(observed)
    >>> told = []
    >>> two = draft.Fixed(2)
    >>> _ = draft.speculate(0, model, [[0, 2, 0, 1, 2, 0]], [None], Watching(), greedy=True, max_tokens=4, policy=two)
    >>> told[0]  # what was drafted, which nodes of it were right, what was written
    ((2, 0), (0, 1), (2, 0, 1))
    """

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
    layers: Mapping[int, torch.Tensor] = field(default_factory=dict)
    """The same read early, for drafts that need it: by layer as they named it."""

    hidden: torch.Tensor | None = None
    """``[len(tree), d]``: the hidden states there, for drafts that need them."""
    prompted: Mapping[int, torch.Tensor] = field(default_factory=dict)
    """By node, -1 being the text, the scores ``[n, V]`` after the prompt tokens that were read behind it."""

    @property
    def fed(self) -> tuple[int, ...]:
        """The tokens of ``tree``."""
        return self.tree.tokens


class Drafter(Protocol):
    """Proposes what may come next.  Any proposal is safe: verification keeps the target's law whatever it holds.

    A drafter that wants more of the target than logits has an attribute ``needs``, see `needs_of`; one whose proposals
    are always lines says so by an attribute ``lines``, see `require_lines`, and one that reads the states of the
    prompt by ``reads_prompts``.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> class NextNumbers:
    ...     def draft(self, chance, contexts):
    ...         return [draft.chain([(each.tokens[-1] + i) % 3 for i in range(1, 5)]) for each in contexts]
    ...     def learn(self, observed):
    ...         pass
    ...     def leave(self, rows):
    ...         pass
    >>> four = draft.Fixed(4)
    >>> _, counts = draft.speculate(0, model, [[0]], [None], NextNumbers(), greedy=True, max_tokens=16, policy=four)
    >>> counts.acceptance, counts.passes
    (1.0, 3)
    """

    def draft(self, chance: Chance, contexts: Sequence[Context]) -> list[Proposal]:
        """A proposal for each row; an empty one where nothing comes to mind.

        The tokens drawn at random must come from ``chance``, and from the distribution that the proposal names.
        """

    def learn(self, observed: Sequence[Observed]) -> None:
        """See what came of the last proposals of rows that are still there or have just ended."""

    def leave(self, rows: Sequence[int]) -> None:
        """Forget what was kept for rows of the run that have ended."""


def needs_of(*parts: object) -> Needs:
    """What drafters or parts of drafters want of the target: all that their attributes ``needs`` name, together."""
    named: Iterable[Needs] = (getattr(part, "needs", NOTHING) for part in parts)
    found = list(named)
    layers = tuple(dict.fromkeys(layer for needs in found for layer in needs.layers))
    states = {needs.blocks for needs in found if needs.hidden}
    if len(states) > 1:
        raise UnsupportedError(
            "drafts that read the outputs of blocks do not go with others that read hidden states",
            remedy="Draft with one kind of heads, beside drafts that read no states.",
        )
    return Needs(layers=layers, hidden=bool(states), blocks=next(iter(states), ()))


def reads_prompts(*parts: object) -> bool:
    """Whether a drafter, or one that it is made of, wants the states after the prompt's tokens.

    The prompt is then read in two passes, and scores are computed for all of it.
    """
    return any(getattr(part, "reads_prompts", False) or reads_prompts(*getattr(part, "drafters", ())) for part in parts)


def require_no_needs(drafter: object, where: str) -> None:
    """Raise `UnsupportedError` for a draft that wants more of the model than ``where`` can show it."""
    if needs_of(drafter) != NOTHING:
        raise UnsupportedError(
            f"{type(drafter).__name__} reads the model's hidden states or early layers",
            where=where,
            remedy="Draft with something else there: heads and early exits need guided.draft.speculate itself.",
        )


def require_lines(drafter: object) -> None:
    """Raise `UnsupportedError` for a draft that may propose other trees than lines.

    It is not enough that a tree happens to be a line: where a drafter draws a second child or none depends on the first
    one, and a law that is kept over all outcomes is not kept over a part of them.
    """
    if drafter is not None and not getattr(drafter, "lines", False):
        raise UnsupportedError(
            f"{type(drafter).__name__} drafts trees, and only lines are verified by block",
            where="by_block",
            remedy="Leave out by_block, or draft with a guided.draft.Model in a Chain, HeadStopped or EarlyExit.",
        )
