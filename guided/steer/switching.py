"""Steerers that choose between models token by token: nudging, deferral, mixtures by the posterior of domains.

Unlike `guided.steer.adaptive`, which saves passes, every model runs at every step: these are functions of logits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated

import torch

from guided.errors import GuidedError
from guided.lm.likelihood import Likelihoods
from guided.lm.model import LanguageModel, Needs
from guided.steer.declaration import AsGiven, Branch, Declaration, Seen
from guided.steer.fields import Checked, Count, Range, checked_count, checked_number
from guided.steer.formulas.experts import domain_mixture, nudged, routed
from guided.steer.rewards.scorer import PrefixScorer
from guided.steer.rewards.text_reward import RewardError, checked_rewards

__all__ = ["Deferral", "DomainMixture", "Nudging", "train_deferral"]

Gate = Annotated[Callable[[torch.Tensor], torch.Tensor], "a function from hidden states to log-odds"]


@dataclass(frozen=True, eq=False)
class Nudging(Checked):
    """Another model's token where this one is unsure, below ``threshold`` for its likeliest token: `nudged`.

    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import Nudging, Stack
    >>> model = TableModel.of({(0,): [0.9, 0.05, 0.05]}, otherwise=[0.34, 0.33, 0.33])
    >>> other = TableModel.of({}, otherwise=[0.1, 0.1, 0.8])
    >>> steered = Stack([Nudging(other, threshold=0.4)]).over(model)
    >>> next_logits(steered, [[0], [1]]).softmax(-1).numpy().round(2).tolist()  # sure after 0, not after 1
    [[0.9, 0.05, 0.05], [0.1, 0.1, 0.8]]
    """

    other: LanguageModel
    threshold: Annotated[float, Range(0, 1)] = 0.4

    def declare(self, model: LanguageModel) -> Declaration:
        """The other model."""
        return Declaration((Branch(self.other),))

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """One model's logits or the other's."""
        return nudged(logits, seen.branches[0].logits, threshold=self.threshold)


@dataclass(frozen=True, eq=False)
class Deferral(Checked):
    """Another model's token where a head on this model's hidden states says so: `routed`.

    ``gate`` maps hidden states ``[n, d]`` to the log-odds ``[n]`` that the other model writes the next token;
    `train_deferral` makes one.  ``threshold`` None mixes both by the odds.  Raises `RewardError` for a gate that fails
    or returns another shape.

    >>> import torch
    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import Deferral, Stack
    >>> model = TableModel(lambda tokens: [1.0, 0.0], width=2, hidden=lambda tokens: [float(tokens[-1])])
    >>> other = TableModel(lambda tokens: [0.0, 3.0], width=2)
    >>> gate = torch.nn.Flatten(0)  # the state itself is the log-odds: after 1 the other model writes
    >>> steered = Stack([Deferral(other, lambda states: gate(states) * 4 - 2)]).over(model)
    >>> next_logits(steered, [[0], [1]]).softmax(-1).numpy().round(2).tolist()
    [[0.73, 0.27], [0.05, 0.95]]
    """

    other: LanguageModel
    gate: Gate
    threshold: Annotated[float, Range(0, 1)] | None = 0.5

    def declare(self, model: LanguageModel) -> Declaration:
        """The other model, and the hidden states of this one."""
        return Declaration((Branch(self.other), Branch(None, AsGiven(), Needs(hidden=True))))

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """One model's logits or the other's, or a mixture of both."""
        other, own = seen.branches
        assert own.hidden is not None
        try:
            odds = torch.as_tensor(self.gate(own.hidden))
        except Exception as error:
            raise RewardError(f"the gate raised {type(error).__name__}: {error}", where="Deferral") from error
        odds = checked_rewards(odds, (len(logits),))
        return routed(logits, other.logits, odds, threshold=self.threshold)


@dataclass(frozen=True, eq=False)
class DomainMixture(Checked):
    """Models of several domains, each weighed by how likely it is that it wrote the text so far: `domain_mixture`.

    ``prior`` has the probability of each domain, the steered model first; all alike unless given, and divided by their
    sum.  With 0 for the steered model its own likelihood is not asked for, which else is a second pass of it.  The text
    is all tokens but the first, prompt included.  Raises `GuidedError` where all are 0.

    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import DomainMixture, Stack
    >>> model, law = TableModel.of({}, otherwise=[0.9, 0.1]), TableModel.of({}, otherwise=[0.1, 0.9])
    >>> steered = Stack([DomainMixture((law,))]).over(model)
    >>> shares = next_logits(steered, [[0], [0, 1], [0, 1, 1]]).softmax(-1).numpy()
    >>> shares[:, 1].round(2).tolist()  # the more 1s, the likelier it is that law writes
    [0.5, 0.82, 0.89]
    """

    models: tuple[LanguageModel, ...]
    prior: tuple[Annotated[float, Range(0)], ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        prior = self.prior or (1.0,) * (len(self.models) + 1)
        if len(prior) != len(self.models) + 1 or not sum(prior) > 0:
            raise GuidedError(
                f"prior={prior} for the steered model and {len(self.models)} others",
                where="DomainMixture",
                remedy="Pass a prior for each, one above 0 at least.",
            )
        object.__setattr__(self, "prior", tuple(float(each) / math.fsum(prior) for each in prior))

    def declare(self, model: LanguageModel) -> Declaration:
        """Every model that may have written the text, with the text's likelihood."""
        weighed = [model, *self.models] if self.prior[0] > 0 else self.models
        needs = Needs(hidden=True)
        return Declaration(tuple(Branch(Likelihoods(each), AsGiven(), needs) for each in weighed))

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """The mixture by the posterior."""
        sums = [scores.hidden.to(torch.float64) for scores in seen.branches if scores.hidden is not None]
        if self.prior[0] <= 0:
            sums = [torch.zeros_like(sums[0]), *sums]
        prior = torch.tensor(self.prior, dtype=torch.float64, device=logits.device).log()
        others = seen.branches[-len(self.models) :] if self.models else ()
        return domain_mixture(logits, [each.logits for each in others], torch.cat(sums, dim=-1) + prior)


def train_deferral(
    model: LanguageModel,
    other: LanguageModel,
    texts: Sequence[Sequence[int]],
    *,
    prompt_lengths: Sequence[int] = (),
    width: int = 0,
    steps: Count = 500,
    learning_rate: float = 1e-2,
    seed: int = 0,
) -> PrefixScorer:
    """A gate fitted to texts by their marginal likelihood under both models: Shen et al. 2024, arXiv 2403.03870.

    Minimises ``-mean log((1 - g(h)) p(x) + g(h) p_other(x))`` over the tokens behind each text's prompt (its first
    token unless given) by full-batch Adam.  Neither model is changed, and each reads a text once.  Deterministic for a
    seed on one machine.  Raises `GuidedError` for texts of fewer than two tokens.

    >>> import torch
    >>> from guided.lm import TableModel
    >>> from guided.steer import train_deferral
    >>> model = TableModel(lambda tokens: [2.0, 0.0], width=2, hidden=lambda tokens: [float(tokens[-1])])
    >>> other = TableModel(lambda tokens: [0.0, 2.0], width=2)  # right where 1 follows 1
    >>> gate = train_deferral(model, other, [[0, 0, 0, 1, 1, 1]], steps=40, learning_rate=0.1)
    >>> after_0, after_1 = gate(torch.tensor([[0.0], [1.0]], dtype=torch.float64)).tolist()
    >>> after_0 < 0 < after_1
    True
    """
    checked_count("steps", steps, of="train_deferral")
    checked_count("width", width, least=0, of="train_deferral")
    checked_number("learning_rate", learning_rate, Range(0), of="train_deferral")
    lengths = list(prompt_lengths) or [1] * len(texts)
    if not len(texts) or len(lengths) != len(texts):
        raise GuidedError(
            f"{len(texts)} texts and {len(lengths)} prompt lengths", where="train_deferral", remedy="Pass one for each."
        )
    states: list[torch.Tensor] = []
    gains: list[torch.Tensor] = []
    for number, (text, length) in enumerate(zip(texts, lengths, strict=True)):
        if not 1 <= length < len(text):
            raise GuidedError(
                f"text {number} has {len(text)} tokens, of which {length} are its prompt",
                where="train_deferral",
                remedy="Pass texts that go on behind their prompts.",
            )
        hidden, own = _read(model, text, length)
        assert hidden is not None
        states.append(hidden)
        gains.append(torch.stack([own, _read(other, text, length, hidden=False)[1].to(own)]))
    features, known = torch.cat(states).detach().clone(), torch.cat(gains, dim=-1)
    generator = torch.Generator().manual_seed(seed)
    gate = PrefixScorer(features.shape[1], width).to(features)
    with torch.no_grad():
        for parameter in gate.parameters():
            drawn = torch.randn(parameter.shape, generator=generator) * 0.1 / max(parameter.shape[-1], 1) ** 0.5
            parameter.copy_(drawn)
    optimiser = torch.optim.Adam(gate.parameters(), lr=learning_rate)
    for _ in range(steps):
        odds = gate(features)
        turns = torch.stack([torch.nn.functional.logsigmoid(-odds), torch.nn.functional.logsigmoid(odds)])
        loss = -torch.logsumexp(turns + known, dim=0).mean()
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
    return gate.requires_grad_(False).eval()


def _read(
    model: LanguageModel, text: Sequence[int], length: int, *, hidden: bool = True
) -> tuple[torch.Tensor | None, torch.Tensor]:
    """Before each token behind a text's prompt the hidden state, and the token's log-probability."""
    sequences = model.start([text[:length]], Needs(hidden=hidden))
    parts = [sequences.last]
    if len(text) > length + 1:
        parts.append(sequences.extend([text[length:-1]])[0])
    logits = torch.cat([part.logits for part in parts])
    ids = torch.tensor([int(token) for token in text[length:]], device=logits.device)[:, None]
    states = [part.hidden for part in parts if part.hidden is not None]
    return (torch.cat(states) if states else None), torch.log_softmax(logits, dim=-1).gather(-1, ids)[:, 0]
