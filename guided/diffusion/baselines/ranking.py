"""`Ranking`: which token of which position a checking decoder tries next."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from guided.diffusion.law import Proposal, Standing, end_for_pad, folded, log_softmax, pinned

__all__ = ["Ranking", "free_proposal"]


class Ranking:
    """The likeliest token of each position that was not refused; a refusal holds for one step, as published."""

    def __init__(self, probabilities: NDArray[np.float64]) -> None:
        self._left = probabilities.copy()
        self._tokens = self._left.argmax(1)
        self._sure = self._left.max(1)

    def surest(self, open_places: NDArray[np.int64]) -> tuple[int, int] | None:
        """The position whose best token is likeliest, the leftmost of equals, and the token; None: none is left."""
        if not open_places.size:
            return None
        place = int(open_places[self._sure[open_places].argmax()])
        return (place, int(self._tokens[place])) if self._sure[place] > 0 else None

    def surest_of(self, open_places: NDArray[np.int64], n: int) -> list[tuple[int, int, float]]:
        """Up to ``n`` positions whose best tokens are likeliest, with those tokens and their probabilities."""
        order = open_places[np.argsort(-self._sure[open_places], kind="stable")[:n]].tolist()
        return [(place, int(self._tokens[place]), float(self._sure[place])) for place in order if self._sure[place] > 0]

    def refuse(self, place: int) -> None:
        """Take the position's best token out."""
        row = self._left[place]
        row[self._tokens[place]] = -1.0
        self._tokens[place] = row.argmax()
        self._sure[place] = row[self._tokens[place]]


def free_proposal(at: Standing, scores: NDArray[np.float32], ends: frozenset[int], pad_id: int | None) -> Proposal:
    """The model's own law with padding read as the end, and the likeliest token of each position."""
    logp = folded(log_softmax(scores), end_for_pad(ends, pad_id), pad_id)
    return pinned(at.canvas, np.exp(logp), logp.argmax(1))
