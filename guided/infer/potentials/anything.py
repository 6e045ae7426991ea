"""The potential that says nothing: sampling under it is sampling from the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided.infer.potentials.potential import Potential
from guided.vocab.vocabulary import Vocabulary

__all__ = ["Anything"]

_ZERO = 0.0


class Anything(Potential[None]):
    """The potential that allows every text: sampling under it is sampling from the model."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    @property
    def boolean(self) -> bool:
        """Always True."""
        return True

    def content(self) -> Any:
        """The vocabulary."""
        return self.vocabulary

    def start(self) -> None:
        """There is one state."""

    def advance(self, state: None, token: int) -> None:
        """There is one state."""

    def prefix_at(self, state: None) -> float:
        """Always 0."""
        return _ZERO

    def complete_at(self, state: None) -> float:
        """Always 0."""
        return _ZERO

    def step_bytes(self, state: None, data: bytes) -> tuple[None, float]:
        """Any bytes go on."""
        return None, _ZERO

    def allowed_each(self, states: Sequence[None]) -> NDArray[np.bool_]:
        """Every id with text or that ends it."""
        return np.repeat(self.usable[None], len(states), axis=0)
