"""Masks along drafts: what a row's constraint allows after each node, and tokens that it leaves no choice about."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from guided.constraint.protocol import Constrains

__all__ = ["RowMasks", "after"]


def after(constraint: Constrains | None, state: int, token: int) -> int:
    """The state after a token that a model may score and the vocabulary need not have; 1 without a constraint."""
    if constraint is None:
        return 1
    return constraint.advance(state, token) if token < constraint.vocabulary.size else 0


class RowMasks:
    """The masks of one row's constraint; with a budget only tokens after which the text still ends in time."""

    def __init__(self, constraint: Constrains | None, width: int, eos_ids: Collection[int], end_in_time: bool) -> None:
        self.constraint = constraint
        self.start = 0 if constraint is None else constraint.start
        self._width = width
        self._eos_ids = eos_ids
        self._end_in_time = end_in_time and constraint is not None
        words = 0 if constraint is None else constraint.vocabulary.n_words
        self._row = np.zeros(words, np.uint32)

    def advance(self, state: int, token: int) -> int:
        """The state after a token; 1 without a constraint, 0 when it is not allowed."""
        return after(self.constraint, state, token)

    def allowed(self, state: int, left: int) -> NDArray[np.bool_] | None:
        """``bool[width]``: the tokens that may come, with ``left`` tokens to the limit; None: all."""
        if self.constraint is None:
            return None
        self._fill(state, left)
        bits = np.unpackbits(self._row.view(np.uint8), bitorder="little", count=min(self._width, 32 * self._row.size))
        found = np.zeros(self._width, np.bool_)
        found[: bits.size] = bits
        return found

    def only_token(self, state: int, left: int) -> int | None:
        """The one token that may come, if there is no choice."""
        if self.constraint is None:
            return None
        self._fill(state, left)
        words = np.flatnonzero(self._row)
        if words.size != 1:
            return None
        word = int(self._row[words[0]])
        if word & (word - 1):
            return None
        token = 32 * int(words[0]) + word.bit_length() - 1
        return token if token < self._width else None

    def _fill(self, state: int, left: int) -> None:
        assert self.constraint is not None
        if self._end_in_time:
            self.constraint.fill_budget_mask(state, self._row, left)
        else:
            self.constraint.fill_mask(state, self._row)
