"""What speculation cost and gave, returned with every result."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from guided.html import card, facts, share

__all__ = ["Statistics"]


@dataclass(frozen=True)
class Statistics:
    """Counts and times of one run over all its rows.

    >>> import numpy as np
    >>> from guided import draft
    >>> from guided.lm import TableModel
    >>> model = TableModel(lambda tokens: 4 * np.eye(4)[(tokens[-1] + 1) % 3], width=4, eos_ids=[3])  # 0 1 2 0 1 2 ...
    >>> _, counts = draft.speculate(0, model, [[0]], [None], draft.PromptLookup(), greedy=True, max_tokens=16)
    >>> counts.tokens, counts.passes, counts.tokens_per_pass, round(counts.acceptance, 2)
    (16, 5, 3.2, 1.0)
    """

    passes: int = 0
    """Forward passes of the target after the prompts were read."""
    row_passes: int = 0
    """The same, each counted once for every row in it."""
    tokens: int = 0
    """Tokens emitted, end-of-text tokens counted."""
    forced: int = 0
    """Of those, tokens that the constraint left no choice about."""
    drafted: int = 0
    """Draft nodes that the target scored."""
    accepted: int = 0
    draft_seconds: float = 0.0
    model_seconds: float = 0.0
    constraint_seconds: float = 0.0
    """Masks, and the states of draft nodes."""
    verify_seconds: float = 0.0
    trees: bool = True
    """False where the model takes no draft trees, so that of a tree only the first child of each node was scored."""

    def __add__(self, other: Statistics) -> Statistics:
        numbers = [each.name for each in fields(self) if each.name != "trees"]
        added: dict[str, Any] = {name: getattr(self, name) + getattr(other, name) for name in numbers}
        return Statistics(**added, trees=self.trees and other.trees)

    def record(self) -> dict[str, Any]:
        """All of it as JSON data; seconds by part, in milliseconds' digits."""
        return {
            "passes": self.passes,
            "tokens": self.tokens,
            "tokens_per_pass": round(self.tokens_per_pass, 3),
            "forced": self.forced,
            "drafted": self.drafted,
            "accepted": self.accepted,
            "trees": self.trees,
            "seconds": {
                part: round(seconds, 4)
                for part, seconds in (
                    ("draft", self.draft_seconds),
                    ("model", self.model_seconds),
                    ("constraint", self.constraint_seconds),
                    ("verify", self.verify_seconds),
                )
            },
        }

    def _repr_html_(self) -> str:
        times = {
            "model": self.model_seconds, "drafts": self.draft_seconds, "constraint": self.constraint_seconds,
            "verification": self.verify_seconds,
        }  # fmt: skip
        counts: list[tuple[str, object]] = [
            ("tokens", f"{self.tokens:,}, of them {self.forced:,} forced"),
            ("passes of the model", f"{self.passes:,}: {self.tokens_per_pass:.2f} tokens a pass and row"),
            ("drafted", f"{self.drafted:,}, accepted {share(self.acceptance)}"),
        ]
        return card(
            "What drafts gave", facts([*counts, *((f"{name}, s", f"{took:.3f}") for name, took in times.items())])
        )

    @property
    def tokens_per_pass(self) -> float:
        """Tokens that a row gained from each forward pass; 1 without drafts and forced tokens."""
        return self.tokens / self.row_passes if self.row_passes else 0.0

    @property
    def passes_per_token(self) -> float:
        """Forward passes for each token of a row."""
        return self.row_passes / self.tokens if self.tokens else 0.0

    @property
    def acceptance(self) -> float:
        """The share of scored draft nodes that were accepted; 0 where none was drafted."""
        return self.accepted / self.drafted if self.drafted else 0.0
