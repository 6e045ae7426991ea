"""Steerers that read inner layers, or run the model without some heads: DoLa, LOL, DeCoRe, dynamic focus decoding."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Annotated

import torch

from guided.errors import GuidedError, UnsupportedError
from guided.lm.model import LanguageModel, Needs
from guided.steer.declaration import AsGiven, Branch, Declaration, Prompt, Seen
from guided.steer.fields import Checked, Range
from guided.steer.formulas.layers import Divergence, decore, dola, dynamic_focus, layers_over_layers

__all__ = ["Bucket", "DeCoRe", "DoLa", "DynamicFocus", "LayersOverLayers"]

DEEP = 40
"""Blocks above which DoLa's buckets are the first and last 20 layers instead of the halves, as in transformers."""


class Bucket(enum.Enum):
    """DoLa's candidate layers: every other one of the lower or the upper half.

    >>> from guided.steer import Bucket, DoLa
    >>> DoLa(layers=Bucket.LOW).candidate_layers(12), DoLa(layers=Bucket.HIGH).candidate_layers(12)
    ((0, 2, 4), (6, 8, 10))
    """

    LOW = "low"
    HIGH = "high"


@dataclass(frozen=True)
class DoLa(Checked):
    """Contrast with the early layer that differs most: `dola`.

    ``layers`` is a bucket, or numbers as in `Needs.layers` (0 the embedding, -1 the last block).  A model whose input
    and output embeddings are one matrix starts its low bucket at 2, because layer 0 would repeat the input;
    ``tied_embeddings`` None asks the model.  Early layers are read without the final normalisation, as the authors'
    code does, unless ``final_norm=True``.  That code also repeats tokens less (penalty 1.2), which is not part of the
    formula.

    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import DoLa, Stack
    >>> early = [lambda tokens: [2.0, 0.0, 0.0]]  # says 0 from the start; the last layer has learnt about 1
    >>> model = TableModel(lambda tokens: [2.0, 2.0, 0.0], width=3, layers=early)
    >>> next_logits(Stack([DoLa((0,))]).over(model), [[0]]).softmax(-1).numpy().round(2).tolist()
    [[0.11, 0.79, 0.11]]
    """

    layers: Bucket | tuple[int, ...] = Bucket.HIGH
    relative_top: Annotated[float, Range(0, 1)] = 0.1
    divergence: Divergence = Divergence.OFFICIAL
    final_norm: bool = False
    tied_embeddings: bool | None = None

    def declare(self, model: LanguageModel) -> Declaration:
        """The candidate layers of the model itself."""
        tied = model.can.tied_embeddings if self.tied_embeddings is None else self.tied_embeddings
        layers = self.candidate_layers(model.can.layers, tied_embeddings=tied)
        return Declaration((Branch(None, AsGiven(), Needs(layers=layers, final_norm=self.final_norm)),))

    def candidate_layers(self, n_blocks: int, *, tied_embeddings: bool = False) -> tuple[int, ...]:
        """The layers compared in a model of so many blocks; raises `UnsupportedError` if there are none.

        Buckets are those of transformers, also in models of few blocks.
        """
        half = n_blocks // 2
        first = min(2, n_blocks - 1) if tied_embeddings else 0
        if not isinstance(self.layers, Bucket):
            chosen = self.layers
        elif self.layers is Bucket.HIGH:
            chosen = tuple(range(max(half, n_blocks - DEEP // 2), n_blocks, 2))
        elif first == half and n_blocks:
            chosen = (first,)
        else:
            chosen = tuple(range(first, min(half, DEEP // 2), 2))
        if not chosen:
            raise UnsupportedError(
                f"a model of {n_blocks} readable layers has none in the bucket"
                if isinstance(self.layers, Bucket)
                else "no layers were given",
                where="DoLa",
                remedy="Pass layers=(...) with layers that the model has.",
            )
        return chosen

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """The contrast of layers."""
        early = torch.stack(list(seen.branches[0].layers.values()))
        return dola(logits, early, relative_top=self.relative_top, divergence=self.divergence)


@dataclass(frozen=True, eq=False)
class LayersOverLayers(Checked):
    """Two contrasts with an amateur, at the last and at a lower layer, and a prompt for the truth: LOL.

    `layers_over_layers` is the formula, a reconstruction.  ``layer`` is read in both models, ``truthful`` makes the
    prompt that asks for the truth.  Raises `GuidedError` where ``truth`` weighs a prompt that is not given.

    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import LayersOverLayers, Stack
    >>> model = TableModel(lambda tokens: [2.0, 2.0, 0.0], width=3, layers=[lambda tokens: [1.0, 1.5, 0.0]])
    >>> amateur = TableModel(lambda tokens: [2.0, 0.0, 0.0], width=3, layers=[lambda tokens: [1.0, 0.0, 0.0]])
    >>> steered = Stack([LayersOverLayers(amateur, layer=0)]).over(model)
    >>> next_logits(steered, [[0]]).softmax(-1).numpy().round(2).tolist()  # 1 is what the amateur lacks
    [[0.16, 0.82, 0.01]]
    """

    amateur: LanguageModel
    layer: int
    beta: float = 0.5
    weight: float = 0.5
    truth: float = 0.0
    truthful: Prompt | None = None
    final_norm: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.truth and self.truthful is None:
            raise GuidedError(
                f"truth={self.truth} weighs a prompt that was not given",
                where="LayersOverLayers",
                remedy="Pass truthful=, or leave truth=0.",
            )

    def declare(self, model: LanguageModel) -> Declaration:
        """Both models with the lower layer, and the model under the truthful prompt."""
        needs = Needs(layers=(self.layer,), final_norm=self.final_norm)
        branches = [Branch(None, AsGiven(), needs), Branch(self.amateur, AsGiven(), needs)]
        if self.truthful is not None:
            branches.append(Branch(None, self.truthful))
        return Declaration(tuple(branches))

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """The sum of contrasts."""
        own, amateur, *rest = seen.branches
        return layers_over_layers(
            logits,
            amateur.logits,
            own.layers[self.layer],
            amateur.layers[self.layer],
            rest[0].logits if rest else None,
            beta=self.beta,
            weight=self.weight,
            truth=self.truth,
        )


@dataclass(frozen=True)
class DeCoRe(Checked):
    """Contrast with the model without its retrieval heads: `decore`.

    ``heads`` are (block, head) pairs, counted from 0; ``examples/retrieval_heads.py`` finds them.  The heads are off
    for generated tokens only, as in the authors' generation, unless ``masked_prompt=True``, as in their scoring.

    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import DeCoRe, Stack
    >>> def masked(tokens, heads):  # without its retrieval head the model forgets 1
    ...     return [2.0, 0.0, 0.0]
    >>> model = TableModel(lambda tokens: [2.0, 2.0, 0.0], width=3, masked=masked)
    >>> next_logits(Stack([DeCoRe(((0, 1),))]).over(model), [[0]]).softmax(-1).numpy().round(2).tolist()
    [[0.47, 0.47, 0.06]]
    """

    heads: tuple[tuple[Annotated[int, Range(0)], Annotated[int, Range(0)]], ...]
    cap: Annotated[float, Range(0)] | None = None
    normalise: bool = False
    masked_prompt: bool = False

    def declare(self, model: LanguageModel) -> Declaration:
        """The model without those heads."""
        needs = Needs(masked_heads=self.heads, masked_prompt=self.masked_prompt)
        return Declaration((Branch(None, AsGiven(), needs if self.heads else Needs()),))

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """The contrast, as strong as the model is unsure."""
        return decore(logits, seen.branches[0].logits, cap=self.cap, normalise=self.normalise)


@dataclass(frozen=True)
class DynamicFocus(Checked):
    """A lower temperature where the layers disagree: `dynamic_focus`.

    ``layers`` None takes all between the embedding and the last block.  Published values: ``sigma`` 0.25 or 4.0,
    ``temperature`` 1.1.

    >>> from guided.lm import TableModel, next_logits
    >>> from guided.steer import DynamicFocus, Stack
    >>> early = [lambda tokens: [0.0, 0.0, 0.0], lambda tokens: [0.0, 3.0, 0.0]]  # the first block would say 1
    >>> model = TableModel(lambda tokens: [2.0, 1.0, 0.0], width=3, layers=early)
    >>> focused = Stack([DynamicFocus(sigma=4.0)]).over(model)
    >>> [next_logits(each, [[0]]).softmax(-1).numpy().round(2).tolist() for each in (model, focused)]
    [[[0.67, 0.24, 0.09]], [[0.74, 0.2, 0.05]]]
    """

    layers: tuple[int, ...] | None = None
    relative_top: Annotated[float, Range(0, 1)] = 0.1
    sigma: Annotated[float, Range(1e-6, infinite=True)] = 0.25
    temperature: Annotated[float, Range(1e-6)] = 1.0
    final_norm: bool = True

    def declare(self, model: LanguageModel) -> Declaration:
        """The layers between.  Raises `UnsupportedError` where the model has no readable layers between."""
        chosen = tuple(range(1, model.can.layers)) if self.layers is None else self.layers
        if not chosen:
            raise UnsupportedError(
                f"a model of {model.can.layers} readable layers has none between",
                where="DynamicFocus",
                remedy="Pass layers=(...) with layers that the model has.",
            )
        return Declaration((Branch(None, AsGiven(), Needs(layers=chosen, final_norm=self.final_norm)),))

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        """The focused logits."""
        early = torch.stack(list(seen.branches[0].layers.values()))
        return dynamic_focus(
            logits, early, relative_top=self.relative_top, sigma=self.sigma, temperature=self.temperature
        )
