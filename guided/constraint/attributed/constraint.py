"""`AttributedConstraint`: an L-attributed grammar over the tokens of a vocabulary."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided.collection import hold, release
from guided.constraint.attributed.rows import Rows
from guided.constraint.limits import Limits
from guided.constraint.live import LiveConstraint
from guided.errors import LimitError
from guided.grammar.attributed.language import AttributedLanguage
from guided.kernels.data.layout import FINISHED
from guided.vocab.vocabulary import Vocabulary

__all__ = ["AttributedConstraint"]


class AttributedConstraint(LiveConstraint):
    """A `LiveConstraint` whose masks come from lists of tokens where any name or string may stand."""

    def __init__(self, language: AttributedLanguage, vocabulary: Vocabulary, limits: Limits | None = None) -> None:
        super().__init__(language, vocabulary, limits)
        self._language = language
        self._rows = Rows(language, vocabulary)

    def _walk(self, at: Any) -> NDArray[np.uint32]:
        return self._rows.row(at)

    def fill_budget_mask(self, state: int, row: NDArray[np.uint32], budget: int) -> None:
        """As `fill_mask`, but only tokens after which the text can still be completed within ``budget`` tokens.

        Tokens are priced by bytes, each of which is a token of the vocabulary: a bound that may forbid what would just
        fit, and keeps what it promises.  Where none fits, the next token of a short end is left.

        Raises `LimitError` when even the shortest completion does not fit.
        """
        if state <= FINISHED:
            self.fill_mask(state, row)
            return
        held = hold()
        try:
            with self._lock:
                at = self._values[state]
                row[:] = self._rows.row_within(at, budget - 2, self._mask(state))
                if self.language.may_end(at):
                    row |= self._eos_row
                elif not row.any():
                    row[:] = self._tree.row([self._next_of_end(state, budget)])
        finally:
            if held:
                release()

    def completion_bound(self, state: int) -> int:
        """Tokens that are enough to end the text, no fewer than `shortest_completion`'s, found without a search.

        As `fill_budget_mask` prices tokens: by bytes.
        """
        if state <= FINISHED:
            return 0
        with self._lock:
            return self._language.price(self._values[state])

    def _next_of_end(self, state: int, budget: int) -> int:
        """The first token of a short end."""
        tokens = self._end(state)
        if len(tokens) + 1 > budget:
            raise LimitError(
                f"{budget} tokens are left, but the shortest completion takes {len(tokens)} and the end-of-text token",
                remedy="Raise max_new_tokens.",
            )
        return tokens[0]
