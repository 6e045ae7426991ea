"""`ModelReward`: rewards of candidate continuations by a head on a model's hidden states."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch

from guided.lm.model import LanguageModel, Needs
from guided.steer.declaration import AsGiven, Branch, Prompt
from guided.steer.fields import Checked
from guided.steer.rewards.text_reward import RewardError, checked_rewards

__all__ = ["ModelReward"]


@dataclass(frozen=True, eq=False)
class ModelReward(Checked):
    """A reward that a causal model gives after each token: ``head`` of its last hidden state.

    The model keeps its own cache, so a step costs one pass over the candidates, not over the text.  ``head`` takes
    ``[m, d]`` and gives ``[m]``; ``model`` None is the steered model.  `guided.steer.rewards.scorer` trains such heads.

    >>> import torch
    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import ARGS, ModelReward, Stack
    >>> model = TableModel(lambda tokens: [1.0, 0.5, 0.0], width=3, hidden=lambda tokens: [float(tokens.count(2))])
    >>> reward = ModelReward(lambda states: 3 * states[:, 0])  # the number of 2s, read from the hidden state
    >>> next_logits(Stack([ARGS(reward, top_k=3)]).over(model), [[0]]).softmax(-1).numpy().round(2).tolist()
    [[0.03, 0.02, 0.95]]
    """

    head: Callable[[torch.Tensor], torch.Tensor]
    model: LanguageModel | None = None
    prompt: Prompt = field(default_factory=AsGiven)

    @property
    def branch(self) -> Branch:
        """What must run beside the steered model."""
        return Branch(self.model, self.prompt, Needs(hidden=True))

    def of(self, hidden: torch.Tensor) -> torch.Tensor:
        """The rewards ``[n, k]`` of hidden states ``[n, k, d]``; raises `RewardError`."""
        n, k, width = hidden.shape
        try:
            values = self.head(hidden.reshape(n * k, width))
        except Exception as error:
            raise RewardError(
                f"the reward's head raised {type(error).__name__}: {error}",
                where=f"hidden states of {width} dimensions",
                remedy="Use the head with the model that it was trained on.",
            ) from error
        return checked_rewards(values, (n * k,)).reshape(n, k).detach()
