"""The seam of lossy verification: rules that accept more drafts than the target's law allows, each named by its class.

Whoever passes one to `guided.draft.speculate` gets *another* law.  Tokens that the constraint forbids have probability
0 in what a rule is given, and no rule may accept them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch

from guided.draft.acceptance.verify import Target
from guided.infer.distribution import TokenDistribution
from guided.lm.model import Needs

__all__ = ["HiddenAfter", "Lossy"]

HiddenAfter = Callable[[int], "torch.Tensor | None"]
"""The target's hidden state ``[d]`` after a token that was drafted at this place; None for one that was not scored."""


class Lossy(Protocol):
    """Decides about drafts by a law of its own.

    >>> import torch
    >>> from guided import draft
    >>> rules: list[draft.Lossy] = [draft.Typical(), draft.Judge(torch.nn.Linear(4, 1))]
    >>> [rule.needs.hidden for rule in rules]
    [False, True]
    """

    @property
    def needs(self) -> Needs:
        """What it wants of the target besides logits."""

    def target(self, distribution: TokenDistribution, after: HiddenAfter) -> Target:
        """What decides about drafts at one place, given the target's law there."""
