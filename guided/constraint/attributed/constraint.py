"""`AttributedConstraint`: an L-attributed grammar over the tokens of a vocabulary."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided.collection import hold, release
from guided.constraint.attributed.budgets import Budgets
from guided.constraint.attributed.rows import Rows
from guided.constraint.limits import Limits
from guided.constraint.live import LiveConstraint
from guided.errors import LimitError
from guided.grammar.attributed.language import AttributedLanguage
from guided.kernels.data.layout import DEAD, FINISHED
from guided.vocab.vocabulary import Vocabulary

__all__ = ["AttributedConstraint"]


class AttributedConstraint(LiveConstraint):
    """A `LiveConstraint` whose masks come from lists of tokens where any name or string may stand."""

    def __init__(self, language: AttributedLanguage, vocabulary: Vocabulary, limits: Limits | None = None) -> None:
        super().__init__(language, vocabulary, limits)
        self._language = language
        self._rows = Rows(language, vocabulary)
        self._budgets = Budgets(self._rows)

    def forget(self) -> None:
        """Forget all that can be found again, which may be 300 MB; states stay what they are."""
        with self._lock:
            self.language = self._language = self._language.afresh()
            self._rows = Rows(self._language, self.vocabulary)
            self._budgets = Budgets(self._rows)
            self._states.forget(self._language.start, self._language.step)
            self._masks.clear()

    def _walk(self, at: Any) -> NDArray[np.uint32]:
        return self._rows.row(at)

    def fill_budget_mask(self, state: int, row: NDArray[np.uint32], budget: int) -> None:
        """As `fill_mask`, but only tokens after which the text can still be completed within ``budget`` tokens.

        Where the budget is near, ends are searched for: bounds that may forbid what would just fit, and keep what they
        promise.  Where none fits, the next token of a short end is left.

        Raises `LimitError` when even the shortest completion does not fit, or nothing may come.
        """
        if state <= FINISHED:
            self.fill_mask(state, row)
            return
        held = hold()
        try:
            with self._lock:
                at = self._states.value(state)
                if not self._language.pricing.tells_beyond:
                    # Its ends are told with the mask, which is found once then.
                    self._budgets.prepare(at)
                mask = self._mask(state)
                if not mask.any():
                    # A fault of the grammar's, which must not end a whole batch.
                    raise LimitError("no token may come, and the text may not end", remedy="Report the grammar.")
                enough = self._budgets.enough(at)
                if enough is not None and budget - 2 >= enough:
                    row[:] = mask
                    return
                row[:] = self._budgets.row(at, budget - 2, mask)
                if self.language.may_end(at):
                    row |= self._eos_row
                elif not row.any():
                    row[:] = self._tree.row([self._next_of_end(state, budget)])
        finally:
            if held:
                release()

    def takes(self, state: int, token: int, budget: int | None = None) -> bool | None:
        """As `JudgesTokens.takes`: the cost of a step, and under a budget perhaps that of one search for an end."""
        after = self.advance(state, token)
        if after <= FINISHED or budget is None:
            return after != DEAD
        held = hold()
        try:
            with self._lock:
                at = self._states.value(after)
                if self._language.fits(at, budget - 2):
                    return True
                end = self._budgets.end(at)
                return True if end is not None and len(end) <= budget - 2 else None
        finally:
            if held:
                release()

    def completion_bound(self, state: int) -> int:
        """Tokens that are enough to end the text, no fewer than `shortest_completion`'s, found without a search.

        In bytes, each of which is a token of the vocabulary.
        """
        if state <= FINISHED:
            return 0
        with self._lock:
            return self._language.price(self._states.value(state))

    def _end(self, state: int) -> tuple[int, ...]:
        """The tokens of a short end, no more than a mask has found to be enough."""
        with self._lock:
            found = super()._end(state)
            known = None if state <= FINISHED else self._budgets.found(self._states.value(state))
            return found if known is None else self._shorter(state, found, known)

    def _next_of_end(self, state: int, budget: int) -> int:
        """The first token of a short end."""
        tokens = self._end(state)
        if len(tokens) + 1 > budget:
            # Ends of other texts went through this state, and may be longer than its own.
            tokens = self._shorter(state, tokens, self._budgets.end(self._states.value(state)))
        if len(tokens) + 1 > budget:
            raise LimitError(
                f"{budget} tokens are left, but the shortest completion takes {len(tokens)} and the end-of-text token",
                remedy="Raise max_new_tokens.",
            )
        return tokens[0]

    def _shorter(self, state: int, found: tuple[int, ...], other: tuple[int, ...] | None) -> tuple[int, ...]:
        """The shorter of two ends of a state, which is remembered."""
        if other is None or len(other) >= len(found):
            return found
        self._remember(state, other)
        return other
