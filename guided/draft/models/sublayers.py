"""`Sublayer`: a part of a block that a model can be run without, and what builds such models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from guided.lm.model import LanguageModel

__all__ = ["Part", "Skippable", "Sublayer"]


class Part(Enum):
    """The two halves of a block."""

    ATTENTION = "attention"
    MLP = "mlp"


@dataclass(frozen=True)
class Sublayer:
    """One half of one block; blocks count from 0."""

    block: int
    part: Part

    def __str__(self) -> str:
        return f"the {self.part.value} of block {self.block}"


class Skippable(Protocol):
    """A model that can be run without some of its parts, on its own weights and with caches of their own."""

    @property
    def sublayers(self) -> Sequence[Sublayer]:
        """All parts that may be skipped, in order."""

    def without(self, skipped: frozenset[Sublayer]) -> LanguageModel:
        """The model without these parts."""

    def first(self, blocks: int) -> LanguageModel:
        """The model's first blocks, its final normalisation and its head."""
