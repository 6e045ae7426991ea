"""How many draft tokens are worth a forward pass: the seam, and the fixed number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Fixed", "Policy", "Round"]


@dataclass(frozen=True)
class Round:
    """What one round of one row cost and gave."""

    row: int
    drafted: int
    """Draft nodes that the model scored."""
    accepted: int
    emitted: int
    """Tokens that the round added."""
    batch: int
    """Rows that shared its forward pass."""
    draft_seconds: float
    """The row's share of the time for drafting and for the constraint's states along the draft."""
    model_seconds: float
    """The time of the forward pass."""


class Policy(Protocol):
    """Says before each round how many nodes a row may draft; learns from how the last ones went."""

    def budget(self, row: int, batch: int) -> int:
        """The most nodes for a row in a batch of so many rows; 0: decode plainly."""

    def saw(self, rounds: list[Round]) -> None:
        """The rounds that one forward pass made."""

    def leave(self, rows: Sequence[int]) -> None:
        """Forget what was kept for rows that have ended."""


@dataclass(frozen=True)
class Fixed:
    """Always the same number."""

    nodes: int = 8

    def budget(self, row: int, batch: int) -> int:
        """Return the number."""
        return self.nodes

    def saw(self, rounds: list[Round]) -> None:
        """Nothing is learned."""

    def leave(self, rows: Sequence[int]) -> None:
        """Nothing is kept."""
