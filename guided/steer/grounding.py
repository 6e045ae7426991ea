"""Steering by what a model said in reference texts: `ReferenceSpace` remembers, `ContextAdaptive` (CAAD) reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import torch

from guided.errors import GuidedError, VocabularyError
from guided.lm.model import LanguageModel, Needs
from guided.steer.declaration import AsGiven, Branch, Declaration, Seen
from guided.steer.fields import Checked, Count, Range
from guided.steer.formulas.combining import log_probabilities
from guided.steer.formulas.grounding import context_adaptive

__all__ = ["ContextAdaptive", "ReferenceSpace"]


class ReferenceSpace:
    """Hidden states of a model in reference texts, and the log-probabilities of the next token there.

    States are compared by the cosine of their differences from the mean of the space: without that all of a model's
    states are alike.  Immutable.

    >>> import torch
    >>> from guided.lm import TableModel
    >>> from guided.steer import ReferenceSpace
    >>> model = TableModel(lambda tokens: [1.0, 0.5, 0.0], width=3, hidden=lambda tokens: [float(tokens[-1]), 1.0])
    >>> space = ReferenceSpace.of(model, [[0, 2, 2, 2]])  # contexts before its second, third and fourth token
    >>> space.similarities(torch.tensor([[2.0, 1.0]])).numpy().round(2).tolist()
    [[-1.0, 1.0, 1.0]]
    """

    def __init__(self, states: torch.Tensor, remembered: torch.Tensor) -> None:
        self.mean = states.mean(dim=0)
        self.keys = torch.nn.functional.normalize(states - self.mean, dim=-1)
        """``[m, d]``."""
        self.remembered = remembered
        """``[m, V]``."""

    @classmethod
    def of(
        cls, model: LanguageModel, texts: Sequence[Sequence[int]], *, prompt_lengths: Sequence[int] = ()
    ) -> ReferenceSpace:
        """The space of some texts, one context before each token behind a text's prompt (its first token unless given).

        Memory: the hidden state and a row of scores for each.  Raises `GuidedError` for texts that do not go on behind
        their prompts, `UnsupportedError` for a model without hidden states.
        """
        lengths = list(prompt_lengths) or [1] * len(texts)
        states: list[torch.Tensor] = []
        rows: list[torch.Tensor] = []
        for text, length in zip(texts, lengths, strict=True):
            if not 1 <= length < len(text):
                raise GuidedError(
                    f"a text of {len(text)} tokens has a prompt of {length}",
                    where="ReferenceSpace",
                    remedy="Pass texts that go on behind their prompts.",
                )
            sequences = model.start([text[:length]], Needs(hidden=True))
            parts = [sequences.last]
            if len(text) > length + 1:
                parts.append(sequences.extend([text[length:-1]])[0])
            states += [part.hidden for part in parts if part.hidden is not None]
            rows += [log_probabilities(part.logits) for part in parts]
        if not states:
            raise GuidedError("there are no reference texts", where="ReferenceSpace", remedy="Pass at least one.")
        return cls(torch.cat(states), torch.cat(rows))

    def __len__(self) -> int:
        """Number of contexts."""
        return len(self.keys)

    def similarities(self, states: torch.Tensor) -> torch.Tensor:
        """The cosines of states ``[n, d]`` and all contexts, ``[n, m]``."""
        own = torch.nn.functional.normalize(states - self.mean.to(states), dim=-1)
        return own @ self.keys.to(states).T


@dataclass(frozen=True, eq=False)
class ContextAdaptive(Checked):
    """Context-aware adaptive decoding (CAAD): what the model said in similar contexts of reference texts.

    `context_adaptive` is the formula, a reconstruction.

    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import ContextAdaptive, ReferenceSpace, Stack
    >>> def scores(tokens):  # behind the reference 0 the model says 1
    ...     return [0.0, 3.0, 0.0] if tokens[0] == 0 else [1.0, 0.0, 0.0]
    >>> model = TableModel(scores, width=3, hidden=lambda tokens: [float(tokens[-1]), 1.0])
    >>> space = ReferenceSpace.of(model, [[0, 2, 1]])
    >>> steered = Stack([ContextAdaptive(space, weight=0.9, top_n=1)]).over(model)
    >>> [next_logits(each, [[2]]).softmax(-1).numpy().round(2).tolist() for each in (model, steered)]
    [[[0.58, 0.21, 0.21]], [[0.07, 0.88, 0.06]]]
    """

    space: ReferenceSpace
    weight: Annotated[float, Range(0, 1)] = 0.5
    top_n: Count = 5

    def declare(self, model: LanguageModel) -> Declaration:
        """The model's hidden states.  Raises `VocabularyError` for a space of another width."""
        if self.space.remembered.shape[1] != model.width:
            raise VocabularyError(
                f"the reference texts have scores of {self.space.remembered.shape[1]} ids, the model of {model.width}",
                where="ContextAdaptive",
                remedy="Make the space with the model that is steered: ReferenceSpace.of(model, texts).",
            )
        return Declaration((Branch(None, AsGiven(), Needs(hidden=True)),))

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """The model's own scores, drawn towards those of similar contexts."""
        states = seen.branches[0].hidden
        assert states is not None
        return context_adaptive(
            logits, self.space.similarities(states), self.space.remembered, weight=self.weight, top_n=self.top_n
        )
