"""Steerers that score the likeliest tokens with a reward: RAD, ARGS, FUDGE, controlled decoding token by token.

The reward is a function of texts (`TextReward`) or a head on a causal model's hidden states (`ModelReward`).  All other
tokens than the candidates are excluded.  ARM, whose reward model scores all tokens at once, is in `second_model`.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from guided.lm.model import LanguageModel
from guided.steer.declaration import Candidates, Declaration, Seen
from guided.steer.fields import Checked, Count
from guided.steer.formulas.rewards import args, controlled, fudge, rad
from guided.steer.rewards.model_reward import ModelReward
from guided.steer.rewards.text_reward import RewardError, TextReward

__all__ = ["ARGS", "FUDGE", "RAD", "ControlledDecoding"]

Reward = TextReward | ModelReward


def _declared(reward: Reward, k: int) -> Declaration:
    if isinstance(reward, ModelReward):
        return Declaration(candidates=Candidates(k, ahead=reward.branch))
    return Declaration(candidates=Candidates(k, reward=reward))


def _values(reward: Reward, seen: Seen) -> torch.Tensor:
    if isinstance(reward, ModelReward):
        assert seen.ahead is not None
        return reward.of(seen.ahead).to(seen.ahead)
    assert seen.rewards is not None
    return seen.rewards


@dataclass(frozen=True, eq=False)
class RAD(Checked):
    """Reward-augmented decoding, rewards between 0 and 1: `rad`.  Published strengths: 10 to 300."""

    reward: Reward
    beta: float = 10.0
    top_k: Count = 20

    def declare(self, model: LanguageModel) -> Declaration:
        """Candidates and their rewards."""
        return _declared(self.reward, self.top_k)

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """Logits and rewards, added."""
        return rad(logits, seen.scored, _values(self.reward, seen), beta=self.beta)


@dataclass(frozen=True, eq=False)
class ARGS(Checked):
    """Alignment as reward-guided search, any rewards: `args`."""

    reward: Reward
    weight: float = 1.5
    top_k: Count = 10

    def declare(self, model: LanguageModel) -> Declaration:
        """Candidates and their rewards."""
        return _declared(self.reward, self.top_k)

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """Logits and rewards, added."""
        return args(logits, seen.scored, _values(self.reward, seen), weight=self.weight)


@dataclass(frozen=True, eq=False)
class FUDGE(Checked):
    """Future discriminators: rewards are log-probabilities of an attribute, `fudge`.

    Raises `RewardError` for a reward above 0, which is no log-probability.

    >>> import math
    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import FUDGE, Stack, TextReward
    >>> model = TableModel.of({}, otherwise=[0.5, 0.3, 0.2])
    >>> def formal(texts):  # log-probabilities that a text will turn out formal
    ...     return [math.log(0.9 if text.endswith("2") else 0.1) for text in texts]
    >>> judge = TextReward(formal, lambda ids: "".join(map(str, ids)))
    >>> next_logits(Stack([FUDGE(judge, top_k=3)]).over(model), [[0]]).softmax(-1).numpy().round(3).tolist()
    [[0.192, 0.115, 0.692]]
    """

    reward: Reward
    strength: float = 1.0
    top_k: Count = 200

    def declare(self, model: LanguageModel) -> Declaration:
        """Candidates and the attribute's log-probabilities."""
        return _declared(self.reward, self.top_k)

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """Bayes' rule on the candidates.  Raises `RewardError` for a reward above 0, which is no log-probability."""
        values = _values(self.reward, seen)
        # A float32 log-sigmoid of a large score may come out a rounding error above 0.
        if bool((values > 1e-6).any()):
            raise RewardError(
                f"the reward {float(values.max()):g} is no log-probability",
                where="FUDGE",
                remedy="Return log P(attribute | text), or use ControlledDecoding for rewards of any size.",
            )
        return fudge(logits, seen.scored, values, strength=self.strength)


@dataclass(frozen=True, eq=False)
class ControlledDecoding(Checked):
    """Controlled decoding, token by token, with a prefix scorer: `controlled`.

    `guided.steer.rewards.scorer` trains scorers, `guided.steer.blocks` chooses whole blocks instead.

    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import ControlledDecoding, Stack, TextReward
    >>> model = TableModel.of({}, otherwise=[0.5, 0.3, 0.2])
    >>> def twos(texts):
    ...     return [float(text.count("2")) for text in texts]
    >>> value = TextReward(twos, lambda ids: "".join(map(str, ids)))
    >>> for beta in (0.0, 1.0, 3.0):
    ...     steered = Stack([ControlledDecoding(value, beta)]).over(model)
    ...     print(next_logits(steered, [[0]]).softmax(-1).numpy().round(2).tolist())
    [[0.5, 0.3, 0.2]]
    [[0.37, 0.22, 0.4]]
    [[0.1, 0.06, 0.83]]
    """

    reward: Reward
    beta: float = 1.0
    top_k: Count = 20

    def declare(self, model: LanguageModel) -> Declaration:
        """Candidates and their values."""
        return _declared(self.reward, self.top_k)

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """Log-probabilities and values, added."""
        return controlled(logits, seen.scored, _values(self.reward, seen), beta=self.beta)
