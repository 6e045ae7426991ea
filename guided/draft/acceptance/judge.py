"""`Judge`: a lossy way to accept drafts, by a trained judge.  The output does *not* have the target's law.

Judge decoding (Bachmann et al., 2025, arXiv 2501.19309): a linear head reads the target's hidden state after a draft
token and says whether the token is a correct way to go on, whatever the target would have written itself.  What it
accepts is kept; other drafts are verified as usual.  Tokens that the constraint forbids are never accepted.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from guided.draft.acceptance.lossy import HiddenAfter
from guided.draft.acceptance.verify import Sampled, Target
from guided.draft.proposal import Group
from guided.errors import GuidedError
from guided.infer.chance import Chance
from guided.infer.distribution import TokenDistribution
from guided.lm.model import Needs

__all__ = ["Judge", "fit_judge"]


@dataclass(frozen=True)
class Judge:
    """Accepts allowed draft tokens to which ``head``, ``[d]`` to one number, gives at least ``threshold``.

    Raises `GuidedError` where ``threshold`` is not above 0 and at most 1.

    >>> import numpy as np
    >>> import torch
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> base = draft.Base(torch.eye(4), 4 * torch.eye(4))  # the state says which token was last
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3],  # 0 1 2 0 1 2 ...
    ...     hidden=lambda tokens: np.eye(4)[(0, *tokens)[-1]])
    >>> judge = draft.Judge(torch.nn.Linear(4, 1), threshold=0.5)
    >>> with torch.no_grad():
    ...     judge.head.weight[:] = torch.tensor([[9.0, -9.0, 0.0, 0.0]])
    ...     judge.head.bias[:] = 0.0
    >>> judge.holds(torch.eye(4)[0]), judge.holds(torch.eye(4)[1])
    (True, False)
    """

    head: nn.Module
    threshold: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.threshold <= 1:
            raise GuidedError(f"threshold is {self.threshold}", remedy="It must be above 0 and at most 1.")

    @property
    def needs(self) -> Needs:
        """The target's hidden states."""
        return Needs(hidden=True)

    def target(self, distribution: TokenDistribution, after: HiddenAfter) -> Target:
        """What decides about drafts at one place."""
        return _Judged(self, distribution, after)

    def holds(self, hidden: torch.Tensor) -> bool:
        """Whether the judge takes a token with this state after it."""
        parameter = next(self.head.parameters())
        with torch.inference_mode():
            odds = self.head(hidden.to(parameter.device, parameter.dtype)[None]).reshape(())
        return bool(torch.sigmoid(odds) >= self.threshold)


class _Judged:
    """The target's law, with the judge asked first."""

    def __init__(self, judge: Judge, distribution: TokenDistribution, after: HiddenAfter) -> None:
        self._judge = judge
        self._distribution = distribution
        self._after = after
        self._rest = Sampled(distribution)

    def take(self, chance: Chance, group: Group) -> int | None:
        """The first token that the judge takes, or else as without a judge."""
        for token in group.tokens:
            if token < self._distribution.size and self._distribution.weights[token] > 0:
                hidden = self._after(token)
                if hidden is not None and self._judge.holds(hidden):
                    return token
        return self._rest.take(chance, group)

    def draw(self, chance: Chance) -> int:
        """A token by what is left."""
        return self._rest.draw(chance)


def fit_judge(
    hidden: torch.Tensor,
    right: torch.Tensor,
    *,
    steps: int = 300,
    rate: float = 1e-2,
    decay: float = 1e-2,
    seed: int = 0,
) -> nn.Linear:
    """A linear judge from the target's states ``[n, d]`` after tokens, and whether each token was right, ``bool[n]``.

    Logistic regression with both kinds weighing the same.  Raises `GuidedError` where one kind is missing.

    >>> import torch
    >>> from guided.draft import Judge, fit_judge
    >>> states = torch.eye(4).repeat(5, 1)
    >>> right = torch.tensor([True, False, True, False] * 5)  # tokens 0 and 2 were right wherever they came
    >>> judge = Judge(fit_judge(states, right, steps=60, rate=0.1))
    >>> [judge.holds(state) for state in torch.eye(4)]
    [True, False, True, False]
    """
    right = right.bool()
    if right.all() or not right.any():
        raise GuidedError("a judge needs right tokens and wrong ones", remedy="Give examples of both.")
    torch.manual_seed(seed)
    head = nn.Linear(int(hidden.shape[1]), 1)
    weights = torch.where(right, 0.5 / right.sum(), 0.5 / (~right).sum())
    optimizer = torch.optim.AdamW(head.parameters(), lr=rate, weight_decay=decay)
    states, labels = hidden.float(), right.float()
    for _ in range(steps):
        loss = nn.functional.binary_cross_entropy_with_logits(
            head(states)[:, 0], labels, weight=weights, reduction="sum"
        )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return head.eval()
