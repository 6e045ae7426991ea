"""How many draft tokens are worth a forward pass: the seam, and the fixed number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Fixed", "Policy", "Round"]


@dataclass(frozen=True)
class Round:
    """What one round of one row cost and gave.

    >>> from guided.draft import Round
    >>> told = Round(row=0, drafted=5, accepted=3, emitted=4, batch=1, draft_seconds=0.01, model_seconds=0.1)
    >>> told.gained, told.emitted  # three passes saved
    (3, 4)
    """

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
    chosen: tuple[int, ...] | None = None
    """The accepted nodes about which the constraint left a choice, numbered in the order in which the draft named
    them; None where nodes were not accepted one after the other."""

    @property
    def gained(self) -> int:
        """Accepted nodes that saved a pass each: what the constraint forces would have come without one."""
        return self.accepted if self.chosen is None else len(self.chosen)

    def first(self, nodes: int) -> int | None:
        """How many of those were among the draft's first ``nodes``; None where that is not known."""
        return None if self.chosen is None else sum(number < nodes for number in self.chosen)


class Policy(Protocol):
    """Says before each round how many nodes a row may draft; learns from how the last ones went.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> class Whole:  # a policy of your own: drafts of as many nodes as the text has rounds behind it
    ...     def __init__(self):
    ...         self.rounds = 0
    ...     def budget(self, row, batch):
    ...         return self.rounds
    ...     def saw(self, rounds):
    ...         self.rounds += len(rounds)
    ...     def leave(self, rows):
    ...         self.rounds = 0
    >>> look = draft.PromptLookup()
    >>> _, counts = draft.speculate(0, model, [[0]], [None], look, greedy=True, max_tokens=16, policy=Whole())
    >>> counts.passes < 16
    True
    """

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
