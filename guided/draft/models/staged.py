"""`Staged`: a draft model that is itself sped up by drafts (staged speculation, 2308.04623).

What is proposed is the model's greedy chain, as `Model` with `Chain` drafts it by rule; another drafter, most often one
without a model, lets it be found in fewer passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from guided.draft.drafter import Context, Drafter, Observed, require_no_needs
from guided.draft.masks import RowMasks
from guided.draft.models.model import Model
from guided.draft.models.shapes import Chain
from guided.draft.proposal import Proposal, chain
from guided.infer.chance import Chance
from guided.lm.model import LanguageModel

__all__ = ["Staged"]


class Staged(Model):
    """Drafts ``length`` greedy tokens of a model whose own tokens are drafted by ``drafter``.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> drafter = draft.Staged(model, draft.PromptLookup(), length=6)  # the draft model's own tokens are drafted
    >>> _, counts = draft.speculate(0, model, [[0]], [None], drafter, greedy=True, max_tokens=14)
    >>> counts.passes
    2
    """

    def __init__(
        self, model: LanguageModel, drafter: Drafter, length: int = 8, *, target: LanguageModel | None = None
    ) -> None:
        require_no_needs(drafter, "a draft for the draft model")
        super().__init__(model, Chain(length), by_rule=True, target=target)
        self.drafter = drafter
        self.length = length

    def _drafted(self, chance: Chance, contexts: Sequence[Context]) -> list[Proposal]:
        """A chain a row."""
        self._follow(contexts)
        lines = [_Line.of(context, self.model, self.length) for context in contexts]
        for line, logits in zip(lines, self._last(contexts), strict=True):
            line.choose(logits)
        while True:
            going = [line for line in lines if line.wanted > 0]
            if not going:
                return [chain(line.tokens) for line in lines]
            proposals = self.drafter.draft(chance, [line.context_now for line in going])
            ahead = {
                line.context.row: line.first_children(proposal) for line, proposal in zip(going, proposals, strict=True)
            }
            self._pass({line.context.row: line for line in going}, ahead)

    def _pass(self, lines: dict[int, _Line], ahead: dict[int, list[int]]) -> None:
        """Feed each line's last token and what was drafted after it; keep what the model says as well."""
        assert self._sequences is not None
        sequences = self._sequences
        found = sequences.extend([[lines[row].tokens[-1], *ahead[row]] if row in lines else [] for row in self._rows])
        lengths = [len(sequences.tokens(i)) for i in range(len(self._rows))]
        for i, (row, scores) in enumerate(zip(self._rows, found, strict=True)):
            if row in lines:
                line, drafted = lines[row], ahead[row]
                agreed = 0
                line.choose(scores.logits[0])
                while agreed < len(drafted) and line.wanted > 0 and line.tokens[-1] == drafted[agreed]:
                    agreed += 1
                    line.choose(scores.logits[agreed])
                lengths[i] -= len(drafted) - agreed
        sequences.crop(lengths)

    def learn(self, observed: Sequence[Observed]) -> None:
        """The drafter learns from what the target says."""
        super().learn(observed)
        self.drafter.learn(observed)

    def leave(self, rows: Sequence[int]) -> None:
        """Pass it on."""
        super().leave(rows)
        self.drafter.leave(rows)


@dataclass
class _Line:
    """The greedy chain of one row while it grows."""

    context: Context
    masks: RowMasks
    eos_ids: frozenset[int]
    most: int
    state: int
    tokens: list[int] = field(default_factory=list)
    ended: bool = False

    @classmethod
    def of(cls, context: Context, model: LanguageModel, length: int) -> _Line:
        return cls(context, context.row_masks, model.eos_ids, min(length, context.longest), context.state)

    @property
    def wanted(self) -> int:
        """Tokens still to come."""
        return 0 if self.ended else self.most - len(self.tokens)

    @property
    def context_now(self) -> Context:
        """The row as if its chain were text."""
        context = self.context
        text = [*context.tokens, *self.tokens]
        return Context(
            context.row, text, context.n_prompt, context.constraint, self.state, self.wanted,
            depth=context.depth - len(self.tokens), width=context.width, masks=self.masks,
        )  # fmt: skip

    def choose(self, logits: torch.Tensor) -> None:
        """Append the likeliest token that is allowed; none ends the chain."""
        scores = logits[: self.context.width].cpu().numpy()
        allowed = self.masks.allowed(self.state, self.context.left(len(self.tokens)), scores.size)
        if allowed is not None:
            scores = np.where(allowed, scores, -np.inf)
        token = int(scores.argmax())
        if not np.isfinite(scores[token]):
            self.ended = True
            return
        self.tokens.append(token)
        self.state = self.masks.advance(self.state, token)
        self.ended = token in self.eos_ids

    def first_children(self, proposal: Proposal) -> list[int]:
        """The proposal's first line, at most as long as is wanted."""
        found: list[int] = []
        node = -1
        while len(found) < self.wanted and node in proposal.groups:
            token = proposal.groups[node][0].tokens[0]
            child = proposal.child(node, token)
            assert child is not None
            found.append(token)
            node = child
        return found
