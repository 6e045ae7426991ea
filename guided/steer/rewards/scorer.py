"""Prefix scorers: small heads on a frozen model's hidden states that say what reward a text is heading for.

`train_scorer` fits one to finished texts with their rewards, for `ControlledDecoding(ModelReward(scorer, ...))` or RAD.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from guided.errors import GuidedError
from guided.lm.model import LanguageModel, Needs
from guided.steer.declaration import Tokens
from guided.steer.fields import Range, checked_count, checked_number

__all__ = ["Example", "PrefixScorer", "Target", "train_scorer"]


class Target(enum.Enum):
    """What the scorer is taught to say after each token."""

    FUDGE = "fudge"
    """The text's final reward (Yang and Klein 2021; CD-FUDGE in Mudgal et al. 2023)."""
    Q = "q"
    """Its own value after the next token of the text, the reward at the end (CD-Q): a temporal difference.

    The next token is the one in the text, which estimates the mean over the model's next tokens without bias if the
    model itself wrote the texts.
    """


@dataclass(frozen=True)
class Example:
    """A finished text and what it is worth."""

    tokens: Tokens
    """Prompt included."""
    reward: float
    prompt_length: int = 1
    """Nothing is learnt about states inside the prompt, but its last."""


class PrefixScorer(torch.nn.Module):
    """A linear head, or one with a hidden layer of ``width`` units: ``[m, d]`` hidden states to ``[m]`` values.

    >>> import torch
    >>> from guided.steer import PrefixScorer
    >>> scorer = PrefixScorer(4, width=8)
    >>> tuple(scorer(torch.zeros(3, 4)).shape), sum(weights.numel() for weights in scorer.parameters())
    ((3,), 49)
    """

    def __init__(self, dimensions: int, width: int = 0) -> None:
        super().__init__()
        self.dimensions = dimensions
        self.width = width
        self.inner = torch.nn.Sequential(torch.nn.Linear(dimensions, width), torch.nn.GELU()) if width else None
        self.head = torch.nn.Linear(width or dimensions, 1)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """The values of hidden states."""
        states = hidden.to(self.head.weight)
        if self.inner is not None:
            states = self.inner(states)
        values: torch.Tensor = self.head(states)[:, 0]
        return values


def train_scorer(
    model: LanguageModel,
    examples: Sequence[Example],
    *,
    target: Target = Target.FUDGE,
    width: int = 0,
    steps: int = 500,
    learning_rate: float = 1e-2,
    weight_decay: float = 0.0,
    seed: int = 0,
) -> PrefixScorer:
    """A scorer fitted by full-batch Adam on squared errors; the model reads each text once and is not changed.

    Deterministic for a seed on one machine.  Memory: the hidden states of all examples' tokens.  Raises
    `UnsupportedError` for a model without hidden states.

    >>> import torch
    >>> from guided.lm import TableModel
    >>> from guided.steer import train_scorer
    >>> from guided.steer.rewards.scorer import Example
    >>> model = TableModel(lambda tokens: [0.0, 0.0], width=2, hidden=lambda tokens: [float(tokens.count(1))])
    >>> scorer = train_scorer(model, [Example((0, 1, 1), 1.0), Example((0, 0, 0), -1.0)], steps=60, learning_rate=0.3)
    >>> none, two = scorer(torch.tensor([[0.0], [2.0]])).tolist()  # texts with that many 1s
    >>> none < 0 < two
    True
    """
    checked_count("steps", steps, of="train_scorer")
    checked_count("width", width, least=0, of="train_scorer")
    checked_number("learning_rate", learning_rate, Range(0), of="train_scorer")
    checked_number("weight_decay", weight_decay, Range(0), of="train_scorer")
    for number, example in enumerate(examples):
        checked_number(f"the reward of example {number}", example.reward, of="train_scorer")
    if not examples:
        raise GuidedError("there are no examples to learn from", where="train_scorer", remedy="Pass finished texts.")
    states, rewards, ends, starts = _states(model, examples)
    generator = torch.Generator().manual_seed(seed)
    scorer = PrefixScorer(states.shape[1], width).to(states)
    with torch.no_grad():
        for parameter in scorer.parameters():
            drawn = torch.randn(parameter.shape, generator=generator) * 0.1 / max(parameter.shape[-1], 1) ** 0.5
            parameter.copy_(drawn)
    optimiser = torch.optim.AdamW(scorer.parameters(), lr=learning_rate, weight_decay=weight_decay)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(steps):
        values = scorer(states)
        goal = rewards
        if target is Target.Q:
            # A state's successor is the next row of the same text.
            goal = torch.where(ends, rewards, values.detach().roll(-1))
        loss = ((values - goal)[starts] ** 2).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return scorer.requires_grad_(False).eval()


def _states(
    model: LanguageModel, examples: Sequence[Example]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Hidden states of all tokens, and for each its text's reward, whether it is the last, and whether it is learnt."""
    states: list[torch.Tensor] = []
    rewards: list[float] = []
    ends: list[bool] = []
    learnt: list[bool] = []
    for number, example in enumerate(examples):
        size = len(example.tokens)
        if not 1 <= example.prompt_length <= size:
            raise GuidedError(
                f"prompt_length={example.prompt_length} in a text of {size} tokens",
                where=f"example {number}",
                remedy="Pass texts of at least one token, and prompts that they begin with.",
            )
        sequences = model.start([example.tokens[:1]], Needs(hidden=True))
        parts = [sequences.last.hidden]
        if size > 1:
            parts.append(sequences.extend([example.tokens[1:]])[0].hidden)
        states += [part for part in parts if part is not None]
        rewards += [example.reward] * size
        ends += [False] * (size - 1) + [True]
        learnt += [False] * (example.prompt_length - 1) + [True] * (size - example.prompt_length + 1)
    hidden = torch.cat(states).detach()
    if hidden.dtype not in (torch.float32, torch.float64):
        hidden = hidden.float()
    return (
        hidden.clone(),
        torch.tensor(rewards, dtype=hidden.dtype, device=hidden.device),
        torch.tensor(ends, device=hidden.device),
        torch.tensor(learnt, device=hidden.device),
    )
