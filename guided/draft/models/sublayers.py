"""`Sublayer`: a part of a block that a model can be run without, and what builds such models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from guided.lm.model import LanguageModel

__all__ = ["Part", "Skippable", "Sublayer"]


class Part(Enum):
    """The two halves of a block.

    >>> from guided.draft import Part, Sublayer
    >>> [Sublayer(3, part).part.value for part in Part]
    ['attention', 'mlp']
    """

    ATTENTION = "attention"
    MLP = "mlp"


@dataclass(frozen=True)
class Sublayer:
    """One half of one block; blocks count from 0.

    >>> from guided.draft import Part, Sublayer
    >>> skipped = frozenset({Sublayer(2, Part.MLP), Sublayer(3, Part.ATTENTION)})
    >>> sorted((each.block, each.part.value) for each in skipped)
    [(2, 'mlp'), (3, 'attention')]
    """

    block: int
    part: Part

    def __str__(self) -> str:
        return f"the {self.part.value} of block {self.block}"


class Skippable(Protocol):
    """A model that can be run without some of its parts, on its own weights and with caches of their own.

    >>> import guided.hf
    >>> from guided import draft
    >>> from guided.lm import language_model
    >>> from guided.hf.skipped_layers import SkippedLayers
    >>> from guided.lm import next_logits
    >>> nano = guided.hf.load()
    >>> layers: draft.Skippable = SkippedLayers(language_model(nano))
    >>> len(layers.sublayers)
    8
    >>> without = layers.without(frozenset({draft.Sublayer(3, draft.Part.MLP)}))
    >>> next_logits(without, [[5, 6]]).shape == next_logits(layers.first(4), [[5, 6]]).shape
    True
    """

    @property
    def sublayers(self) -> Sequence[Sublayer]:
        """All parts that may be skipped, in order."""

    def without(self, skipped: frozenset[Sublayer]) -> LanguageModel:
        """The model without these parts."""

    def first(self, blocks: int) -> LanguageModel:
        """The model's first blocks, its final normalisation and its head."""
