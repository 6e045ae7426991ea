"""Steerers that need other models of the same vocabulary: contrastive decoding, DExperts, proxies, pools, ARM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch

from guided.errors import GuidedError
from guided.lm.model import LanguageModel
from guided.steer.declaration import Branch, Declaration, Seen
from guided.steer.fields import Checked, Count, Range
from guided.steer.formulas.combining import candidates
from guided.steer.formulas.contrast import contrastive, contrastive_reasoning, dexperts, proxy_tuning
from guided.steer.formulas.experts import mixture, product
from guided.steer.formulas.rewards import arm

__all__ = ["ARM", "Contrastive", "DExperts", "Mixture", "Product", "ProxyTuning"]


@dataclass(frozen=True, eq=False)
class Contrastive(Checked):
    """Contrastive decoding against an amateur: `contrastive_reasoning`, or with ``beta=None`` `contrastive`.

    ``alpha`` bounds the plausible set; ``temperature`` divides the amateur's logits (None: 1, or 0.5 with
    ``beta=None``, the value for GPT-2 amateurs).
    """

    amateur: LanguageModel
    alpha: Annotated[float, Range(0, 1)] = 0.1
    beta: Annotated[float, Range(0)] | None = 0.5
    temperature: Annotated[float, Range(0, above=True)] | None = None

    def declare(self, model: LanguageModel) -> Declaration:
        """The amateur."""
        return Declaration((Branch(self.amateur),))

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """The contrast."""
        amateur = seen.branches[0].logits
        if self.beta is None:
            return contrastive(logits, amateur, alpha=self.alpha, temperature=self.temperature or 0.5)
        return contrastive_reasoning(
            logits, amateur, alpha=self.alpha, beta=self.beta, temperature=self.temperature or 1.0
        )


@dataclass(frozen=True, eq=False)
class DExperts(Checked):
    """An expert and an anti-expert: `dexperts`.  Published strengths: 2.0 (detoxification), 3.2 (sentiment)."""

    expert: LanguageModel
    anti_expert: LanguageModel
    alpha: float = 2.0
    top_p: Annotated[float, Range(0, 1)] = 0.9

    def declare(self, model: LanguageModel) -> Declaration:
        """Both."""
        return Declaration((Branch(self.expert), Branch(self.anti_expert)))

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """The difference of both, added on the model's nucleus."""
        expert, anti_expert = seen.branches
        return dexperts(logits, expert.logits, anti_expert.logits, alpha=self.alpha, top_p=self.top_p)


@dataclass(frozen=True, eq=False)
class ProxyTuning(Checked):
    """What tuning did to a small model, done to the large one: `proxy_tuning`."""

    tuned: LanguageModel
    untuned: LanguageModel
    alpha: float = 1.0

    def declare(self, model: LanguageModel) -> Declaration:
        """The small pair."""
        return Declaration((Branch(self.tuned), Branch(self.untuned)))

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """The difference of the pair, added."""
        tuned, untuned = seen.branches
        return proxy_tuning(logits, tuned.logits, untuned.logits, alpha=self.alpha)


@dataclass(frozen=True, eq=False)
class Mixture(Checked):
    """A weighted mean of distributions, the first weight for the steered model: `mixture`.

    Raises `GuidedError` where all weights are 0.
    """

    models: tuple[LanguageModel, ...]
    weights: tuple[Annotated[float, Range(0)], ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "weights", _weights(self.weights, len(self.models), "Mixture"))
        if not sum(self.weights) > 0:
            raise GuidedError(
                f"the weights {self.weights} are all 0", where="Mixture", remedy="Pass one that is above 0."
            )

    def declare(self, model: LanguageModel) -> Declaration:
        """Every model."""
        return Declaration(tuple(Branch(each) for each in self.models))

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """The mixture's log-probabilities."""
        return mixture(logits, [each.logits for each in seen.branches], self.weights)


@dataclass(frozen=True, eq=False)
class Product(Checked):
    """A weighted product of distributions, normalised token by token; the first weight is the model's: `product`."""

    models: tuple[LanguageModel, ...]
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "weights", _weights(self.weights, len(self.models), "Product"))

    def declare(self, model: LanguageModel) -> Declaration:
        """Every model."""
        return Declaration(tuple(Branch(each) for each in self.models))

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """The product's log-probabilities, up to a constant."""
        return product(logits, [each.logits for each in seen.branches], self.weights)


@dataclass(frozen=True, eq=False)
class ARM(Checked):
    """A reward model that scores every next token in one pass: `arm`.

    ``reward`` is a model of the same vocabulary whose logits are rewards.  ``top_k`` None keeps all tokens.

    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import ARM, Stack
    >>> model = TableModel.of({}, otherwise=[0.5, 0.3, 0.2])
    >>> reward = TableModel(lambda tokens: [0.0, 0.0, 2.0], width=3)  # its scores are rewards: 2 is wanted
    >>> next_logits(Stack([ARM(reward)]).over(model), [[0]]).softmax(-1).numpy().round(2).tolist()
    [[0.22, 0.13, 0.65]]
    """

    reward: LanguageModel
    beta: float = 1.0
    top_k: Count | None = 20

    def declare(self, model: LanguageModel) -> Declaration:
        """The reward model: one pass a step."""
        return Declaration((Branch(self.reward),))

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """Log-probabilities and rewards, added."""
        kept = None
        if self.top_k is not None:
            ids = candidates(logits, self.top_k)
            kept = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, ids, True)
        return arm(logits, seen.branches[0].logits, beta=self.beta, top_k=kept)


def _weights(weights: tuple[float, ...], n_models: int, where: str) -> tuple[float, ...]:
    if not weights:
        return (1.0,) * (n_models + 1)
    if len(weights) != n_models + 1:
        raise GuidedError(
            f"{len(weights)} weights for {n_models} models",
            where=where,
            remedy="Pass one for the steered model, then one for each of the others.",
        )
    return tuple(float(weight) for weight in weights)
