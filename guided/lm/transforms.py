"""`transformed`: temperature and truncation of a model's distribution, as a language model again.

The order is temperature, top-k, top-p, min-p, typical, epsilon, eta, as in transformers.  What comes out is the
distribution that weighted samplers take as their reference: steering comes before (its result is what is passed in), a
constraint's mask after.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from guided.errors import GuidedError
from guided.lm.model import NOTHING, LanguageModel, Needs, Scores, Sequences
from guided.lm.wrapped import WrappedModel, WrappedSequences

__all__ = ["TransformedModel", "Truncation", "transformed"]


@dataclass(frozen=True)
class Truncation:
    """Temperature, then what is left of the distribution; the defaults change nothing.

    Each truncation sees what the one before has left, renormalised, and keeps at least the most probable id.  Ids that
    tie with the last one kept are kept too, so that the result does not depend on the order of ids.  Raises
    `GuidedError` for a value out of range.

    >>> import torch
    >>> from guided.lm import Truncation
    >>> cut = Truncation(temperature=0.5, top_p=0.9)
    >>> cut(torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64).log()).softmax(-1).numpy().round(2).tolist()
    [0.8, 0.2, 0.0]
    """

    temperature: float = 1.0
    """Logits are divided by it; 0 keeps the most probable ids alone."""
    top_k: int | None = None
    """Keep the k most probable ids."""
    top_p: float = 1.0
    """Keep the most probable ids that together reach this mass, the one that reaches it included."""
    min_p: float = 0.0
    """Keep the ids that are at least this times as probable as the most probable one."""
    typical_p: float = 1.0
    """Keep the ids whose surprise is nearest to the entropy, as many as together reach this mass: locally typical
    sampling, Meister et al. 2022, arXiv 2202.00666."""
    epsilon_cutoff: float = 0.0
    """Keep the ids of at least this probability: epsilon sampling, Hewitt et al. 2022, arXiv 2210.15191."""
    eta_cutoff: float = 0.0
    """Keep the ids of at least ``min(eta, sqrt(eta) exp(-entropy))``, of the same paper's eta sampling."""

    def __post_init__(self) -> None:
        for name, value, good, range_ in (
            ("temperature", self.temperature, 0 <= self.temperature < math.inf, "0 or more, and finite"),
            ("top_k", self.top_k, self.top_k is None or self.top_k >= 1, "1 or more"),
            ("top_p", self.top_p, 0 < self.top_p <= 1, "above 0 and at most 1"),
            ("min_p", self.min_p, 0 <= self.min_p <= 1, "from 0 to 1"),
            ("typical_p", self.typical_p, 0 < self.typical_p <= 1, "above 0 and at most 1"),
            ("epsilon_cutoff", self.epsilon_cutoff, 0 <= self.epsilon_cutoff < 1, "from 0 to below 1"),
            ("eta_cutoff", self.eta_cutoff, 0 <= self.eta_cutoff < 1, "from 0 to below 1"),
        ):
            if not good:
                raise GuidedError(f"{name} is {value}", remedy=f"It must be {range_}.")

    def __call__(self, logits: torch.Tensor) -> torch.Tensor:
        """The logits, ``float[..., width]``, divided by the temperature, with ids cut off at -inf; a new tensor."""
        best = logits.amax(-1, keepdim=True)
        if self.temperature == 0:
            return torch.zeros_like(logits).masked_fill_(logits < best, -torch.inf)
        scores = logits / self.temperature
        if self.top_k is not None and self.top_k < scores.shape[-1]:
            least = scores.topk(self.top_k, dim=-1).values[..., -1:]
            scores = scores.masked_fill(scores < least, -torch.inf)
        if self.top_p < 1:
            scores = scores.masked_fill(scores < _least_of_nucleus(scores, self.top_p), -torch.inf)
        if self.min_p > 0:
            least = scores.amax(-1, keepdim=True) + math.log(self.min_p)
            scores = scores.masked_fill(scores < least, -torch.inf)
        if self.typical_p < 1:
            scores = scores.masked_fill(_untypical(scores, self.typical_p), -torch.inf)
        if self.epsilon_cutoff > 0:
            scores = _without_unlikely(scores, scores.new_tensor(self.epsilon_cutoff))
        if self.eta_cutoff > 0:
            least = math.sqrt(self.eta_cutoff) * torch.exp(-_entropy(torch.log_softmax(scores, -1)))
            scores = _without_unlikely(scores, least.clamp(max=self.eta_cutoff))
        return scores


def _least_of_nucleus(scores: torch.Tensor, mass: float) -> torch.Tensor:
    """The score of the least probable id of the smallest set that reaches ``mass``, ``[..., 1]``."""
    ordered = scores.sort(-1, descending=True).values
    probabilities = torch.softmax(ordered, -1)
    # What is before an id: it belongs to the set as long as that has not reached the mass.
    before = probabilities.cumsum(-1) - probabilities
    count = (before < mass).sum(-1, keepdim=True).clamp_(min=1)
    return ordered.gather(-1, count - 1)


def _entropy(logprobs: torch.Tensor) -> torch.Tensor:
    """In nats, ``[..., 1]``."""
    terms = torch.where(logprobs == -torch.inf, 0.0, logprobs.exp() * logprobs)
    return -terms.sum(-1, keepdim=True)


def _untypical(scores: torch.Tensor, mass: float) -> torch.Tensor:
    """Which ids are further from the entropy than the last one of the nearest that reach ``mass``."""
    logprobs = torch.log_softmax(scores, -1)
    # What is excluded is infinitely far.
    distance = (-logprobs - _entropy(logprobs)).abs()
    ordered, ids = distance.sort(dim=-1, stable=True)
    probabilities = logprobs.exp().gather(-1, ids)
    before = probabilities.cumsum(-1) - probabilities
    count = (before < mass).sum(-1, keepdim=True).clamp_(min=1)
    return distance > ordered.gather(-1, count - 1)


def _without_unlikely(scores: torch.Tensor, least: torch.Tensor) -> torch.Tensor:
    """The scores without ids below a probability, but for the most probable ones."""
    gone = (torch.softmax(scores, -1) < least) & (scores < scores.amax(-1, keepdim=True))
    return scores.masked_fill(gone, -torch.inf)


class TransformedModel(WrappedModel):
    """A language model whose logits pass through a `Truncation`; everything else is the inner model's."""

    def __init__(self, model: LanguageModel, truncation: Truncation) -> None:
        super().__init__(model)
        self.truncation = truncation

    def start(self, prompts: Sequence[Sequence[int]], needs: Needs = NOTHING) -> Sequences:
        """Sequences of the inner model with transformed logits; layers read early stay as they are."""
        return WrappedSequences(self.model.start(prompts, needs), self._change)

    def _change(self, scores: Scores) -> Scores:
        return replace(scores, logits=self.truncation(scores.logits))


def transformed(
    model: LanguageModel,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float = 1.0,
    min_p: float = 0.0,
    typical_p: float = 1.0,
    epsilon_cutoff: float = 0.0,
    eta_cutoff: float = 0.0,
) -> LanguageModel:
    """The model with its next-token distribution made flatter or sharper, then truncated; the order is fixed.

    A temperature other than 1 defines the product of tempered steps, not the tempered distribution of whole texts.

    >>> from guided.lm import TableModel, next_logits
    >>> table = TableModel.of({}, otherwise=[0.5, 0.3, 0.2])
    >>> next_logits(transformed(table, top_k=2), [[0]]).softmax(-1)
    tensor([[0.6250, 0.3750, 0.0000]], dtype=torch.float64)
    """
    truncation = Truncation(temperature, top_k, top_p, min_p, typical_p, epsilon_cutoff, eta_cutoff)
    return model if truncation == Truncation() else TransformedModel(model, truncation)
