"""Our own engine, as `guided.hf.generate` drives it: masks under the token budget, so that every text is whole."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import guided
from guided.constraint.constraint import Constraint
from guided.eval.engines.protocol import TokenSpace

__all__ = ["open_engine"]


class _Matcher:
    def __init__(self, constraint: Constraint) -> None:
        self._constraint = constraint
        self._state = constraint.start

    def fill_mask(self, row: NDArray[np.uint32], left: int | None) -> None:
        n_words = self._constraint.vocabulary.n_words
        if left is None:
            self._constraint.fill_mask(self._state, row[:n_words])
        else:
            self._constraint.fill_budget_mask(self._state, row[:n_words], left)
        row[n_words:] = 0

    def advance(self, token: int) -> None:
        self._state = self._constraint.advance(self._state, token)
        if not self._state:
            raise RuntimeError(f"the mask allows token {token}, advance does not")


class _Compiled:
    def __init__(self, constraint: Constraint) -> None:
        self._constraint = constraint
        self.notes = constraint.grammar.notes

    def start(self) -> _Matcher:
        return _Matcher(self._constraint)


class _Engine:
    def __init__(self, tokens: TokenSpace) -> None:
        self._vocabulary = tokens.vocabulary

    def compile(self, schema: Any) -> _Compiled:
        return _Compiled(guided.compile(guided.json_schema(schema), self._vocabulary))


def open_engine(tokens: TokenSpace) -> _Engine:
    """The adapter."""
    return _Engine(tokens)
