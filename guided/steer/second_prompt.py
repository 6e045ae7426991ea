"""Steerers that run the same model on other prompts: context-aware, classifier-free, instructive, debiasing, PREADD.

All their branches and the steered model itself are rows of one batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

import torch

from guided.lm.model import LanguageModel
from guided.steer.declaration import Branch, Declaration, LastToken, Prompt, Seen
from guided.steer.fields import Checked, Range
from guided.steer.formulas.prompts import (
    classifier_free,
    context_aware,
    instructive,
    prefix_adaptive,
    self_debiasing,
)

__all__ = ["ClassifierFree", "ContextAware", "Instructive", "PrefixAdaptive", "SelfDebiasing"]


@dataclass(frozen=True)
class ContextAware(Checked):
    """More of what the context changes: `context_aware`.

    ``without_context`` makes the prompt without it: `Without(context's tokens)`, or any function of the prompt's ids.
    Published strengths: 0.5 (summaries), 1.0 (context against knowledge).
    """

    without_context: Prompt
    alpha: float = 0.5

    def declare(self, model: LanguageModel) -> Declaration:
        """The prompt without its context."""
        return Declaration((Branch(None, self.without_context),))

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """The contrast of with and without."""
        return context_aware(logits, seen.branches[0].logits, alpha=self.alpha)


@dataclass(frozen=True)
class ClassifierFree(Checked):
    """Classifier-free guidance: `classifier_free`, away from the prompt's last token alone or a negative prompt.

    ``negative_prompt`` is `Replaced(tokens)` or any function of the prompt's ids.
    """

    scale: float = 1.5
    negative_prompt: Prompt = field(default_factory=LastToken)

    def declare(self, model: LanguageModel) -> Declaration:
        """The unconditional prompt."""
        return Declaration((Branch(None, self.negative_prompt),))

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """The extrapolation."""
        return classifier_free(logits, seen.branches[0].logits, scale=self.scale)


@dataclass(frozen=True)
class Instructive(Checked):
    """Away from a misleading instruction: `instructive`.

    ``noisy`` makes the prompt with the other instruction: `Prefixed(tokens)`, or any function of the prompt's ids.

    >>> import numpy as np
    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import Instructive, Prefixed, Stack
    >>> def misled(tokens):  # an instruction that begins with 2 makes 0 likelier
    ...     return np.log([0.7, 0.2, 0.1] if tokens[0] == 2 else [0.4, 0.4, 0.2])
    >>> model = TableModel(misled, width=3)
    >>> steered = Stack([Instructive(Prefixed((2,)), epsilon=0.5)]).over(model)
    >>> next_logits(steered, [[0]]).softmax(-1).numpy().round(2).tolist()
    [[0.24, 0.45, 0.32]]
    """

    noisy: Prompt
    epsilon: float = 0.3

    def declare(self, model: LanguageModel) -> Declaration:
        """The misleading prompt."""
        return Declaration((Branch(None, self.noisy),))

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """The difference."""
        return instructive(logits, seen.branches[0].logits, epsilon=self.epsilon)


@dataclass(frozen=True)
class PrefixAdaptive(Checked):
    """Towards what a prefix of the prompt asks for, or away from it: `prefix_adaptive` (PREADD).

    ``prefixed`` makes the prompt with the prefix: `Prefixed(tokens)`, or any function of the prompt's ids.  Above 0
    ``alpha`` steers towards the prefix, below 0 away from it.

    >>> import numpy as np
    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import PrefixAdaptive, Prefixed, Stack
    >>> def toxic(tokens):  # behind the prefix 2 the model writes more of 0
    ...     return np.log([0.7, 0.2, 0.1] if tokens[0] == 2 else [0.4, 0.4, 0.2])
    >>> model = TableModel(toxic, width=3)
    >>> for alpha in (-1.0, 1.0):
    ...     steered = Stack([PrefixAdaptive(Prefixed((2,)), alpha)]).over(model)
    ...     print(next_logits(steered, [[0]]).softmax(-1).numpy().round(2).tolist())
    [[0.16, 0.56, 0.28]]
    [[0.7, 0.2, 0.1]]
    """

    prefixed: Prompt
    alpha: float

    def declare(self, model: LanguageModel) -> Declaration:
        """The prompt behind its prefix."""
        return Declaration((Branch(None, self.prefixed),))

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """So many times what the prefix changes."""
        return prefix_adaptive(logits, seen.branches[0].logits, alpha=self.alpha)


@dataclass(frozen=True)
class SelfDebiasing(Checked):
    """Fewer of the tokens that a biased prompt makes likelier: `self_debiasing`.

    ``biased`` makes the prompts, each encouraging one kind of text that is not wanted.

    >>> import numpy as np
    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import Prefixed, SelfDebiasing, Stack
    >>> def biased(tokens):  # asked for insults (2) the model writes more of 0
    ...     return np.log([0.7, 0.2, 0.1] if tokens[0] == 2 else [0.4, 0.4, 0.2])
    >>> model = TableModel(biased, width=3)
    >>> steered = Stack([SelfDebiasing((Prefixed((2,)),), decay=10.0)]).over(model)
    >>> next_logits(steered, [[0]]).softmax(-1).numpy().round(2).tolist()
    [[0.03, 0.65, 0.32]]
    """

    biased: tuple[Prompt, ...]
    decay: Annotated[float, Range(0)] = 50.0
    epsilon: Annotated[float, Range(0, 1)] = 0.01

    def declare(self, model: LanguageModel) -> Declaration:
        """Every biased prompt."""
        return Declaration(tuple(Branch(None, prompt) for prompt in self.biased))

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """The debiased log-probabilities."""
        return self_debiasing(logits, [each.logits for each in seen.branches], decay=self.decay, epsilon=self.epsilon)
