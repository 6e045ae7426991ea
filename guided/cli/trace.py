"""What the mask took away, step by step: recorded while a model generates, shown in colour afterwards.

`MaskTrace` is a logits processor that changes nothing.  It stands before the grammar's processor, sees the model's raw
scores, and asks the constraint for the very mask that will be applied.  Imported only where transformers is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from transformers import LogitsProcessor

from guided import tokenset
from guided.constraint.constraint import Constraint

__all__ = ["MaskTrace", "TracedToken", "as_record"]


@dataclass(frozen=True)
class TracedToken:
    """One step: the token written, and what the model would have done without the mask."""

    token: int
    text: str
    probability: float
    """The model's probability of the token, before the mask."""
    removed: float
    """The model's probability of all tokens that the mask forbade: 1 minus the sum of the allowed ones."""
    preferred: str
    """The text of the model's likeliest token, forbidden or not."""


class MaskTrace(LogitsProcessor):
    """Records one row; `tokens` gives the steps after `generate`.  Holds the probabilities of one step at a time."""

    def __init__(self, constraint: Constraint, max_new_tokens: int) -> None:
        self._constraint = constraint
        self._left = max_new_tokens
        self._state = constraint.start
        self._now: tuple[torch.Tensor, float] | None = None
        self._steps: list[TracedToken] = []

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """Record a step and return ``scores`` themselves.  Raises `ValueError` for more than one row."""
        if input_ids.shape[0] != 1:
            raise ValueError("a trace follows one row")
        if self._now is not None:
            token = int(input_ids[0, -1])
            self._finish(token)
            self._state = self._constraint.advance(self._state, token)
        probabilities = torch.softmax(scores[0].double(), dim=-1).cpu()
        # Rounding may carry the sum past 1.
        removed = max(0.0, 1.0 - float(probabilities[self._allowed(probabilities.shape[0])].sum()))
        self._now = (probabilities, removed)
        self._left -= 1
        return scores

    def tokens(self, n_text: int) -> list[TracedToken]:
        """The steps of a generation of ``n_text`` text tokens; the end-of-text token is a step of its own."""
        if self._now is not None and len(self._steps) <= n_text:
            ends = [int(token) for token in self._constraint.vocabulary.eos_ids]
            self._finish(max(ends, key=lambda end: float(self._now[0][end]) if self._now else 0.0))
            self._now = None
        return list(self._steps)

    def _finish(self, token: int) -> None:
        """Complete the present step with the token that was taken."""
        assert self._now is not None
        probabilities, removed = self._now
        preferred = self._text(int(probabilities.argmax()))
        self._steps.append(TracedToken(token, self._text(token), float(probabilities[token]), removed, preferred))

    def _allowed(self, width: int) -> torch.Tensor:
        vocabulary = self._constraint.vocabulary
        row = np.zeros(vocabulary.n_words, np.uint32)
        self._constraint.fill_budget_mask(self._state, row, self._left)
        allowed = torch.zeros(width, dtype=torch.bool)
        allowed[: vocabulary.size] = torch.from_numpy(tokenset.flags(row, vocabulary.size))[:width]
        return allowed

    def _text(self, token: int) -> str:
        vocabulary = self._constraint.vocabulary
        if token in vocabulary.eos_ids:
            return "<end>"
        data = vocabulary.token_bytes(token) if token < vocabulary.size else None
        return f"<{token}>" if data is None else data.decode("utf-8", errors="backslashreplace")


def as_record(step: TracedToken) -> dict[str, Any]:
    """A step for machines."""
    return {
        "token": step.token,
        "text": step.text,
        "probability": round(step.probability, 6),
        "removed": round(step.removed, 6),
        "preferred": step.preferred,
    }
