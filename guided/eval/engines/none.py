"""No engine: every token is allowed, so the output is what the model writes by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.eval.engines.protocol import TokenSpace

__all__ = ["open_engine"]


class _Unconstrained:
    """Engine, compiled schema and matcher in one: none of them has anything to remember."""

    notes: tuple[str, ...] = ()

    def __init__(self, tokens: TokenSpace) -> None:
        self._row = tokenset.of_ids(range(min(tokens.vocabulary.size, tokens.width)), tokens.n_words)

    def compile(self, schema: Any) -> _Unconstrained:
        return self

    def start(self) -> _Unconstrained:
        return self

    def fill_mask(self, row: NDArray[np.uint32], left: int | None) -> None:
        row[:] = self._row

    def advance(self, token: int) -> None:
        return None


def open_engine(tokens: TokenSpace) -> _Unconstrained:
    """The adapter."""
    return _Unconstrained(tokens)
