"""What everything above the engine may rely on: the interface of a compiled constraint, not an implementation.

`guided.hf` (and later steering, sampling and drafting) is written against this protocol, so that a product of
constraints, a monitor or a slow twin in the tests can stand wherever the compiled engine does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from guided.vocab import Vocabulary

__all__ = ["TRIES", "Constrains", "JudgesTokens"]

TRIES = 16
"""Tokens that are asked about before a mask that costs far more.  Along runaway texts of the packaged model, where most
are refused, one costs 20 us, and a mask 4,000 on SQLite and 40,000 on PostgreSQL."""


@runtime_checkable
class Constrains(Protocol):
    """A language over the tokens of one vocabulary; states are ints, 0 is dead, and from every other state it can end.

    Implementations are safe to call from several threads, and hold ``mask bit == advance lives``: bit ``t`` of the mask
    is 1 exactly where ``advance(state, t) != 0``.
    """

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary whose ids all tokens here are."""
        ...

    @property
    def start(self) -> int:
        """The state of the empty text; never 0."""
        ...

    @property
    def end(self) -> int:
        """The one state after an end-of-text id: accepting; only end-of-text ids are allowed, and lead back to it."""
        ...

    def fill_mask(self, state: int, row: NDArray[np.uint32]) -> None:
        """Overwrite ``row`` (``uint32[vocabulary.n_words]``) with the allowed tokens; spare bits of the last are 0.

        Bit ``t & 31`` of word ``t >> 5`` is token ``t``.
        """
        ...

    def fill_budget_mask(self, state: int, row: NDArray[np.uint32], budget: int) -> None:
        """Like `fill_mask`, but only tokens after which a whole text still fits in ``budget`` tokens.

        The budget counts the token itself, all that follow and the end-of-text token.  Raises `LimitError` when not
        even the shortest completion fits.
        """
        ...

    def advance(self, state: int, token: int) -> int:
        """The state after a token, 0 if it is not allowed; end-of-text ids lead from accepting states to `end`."""
        ...

    def advance_bytes(self, state: int, data: bytes) -> int:
        """The state after some bytes of text, which need not end where a token or character does; 0 if not allowed."""
        ...

    def is_accepting(self, state: int) -> bool:
        """True when the text may end here."""
        ...

    def forced(self, state: int) -> bytes:
        """The bytes that must come next, empty where there is a choice or the text may end."""
        ...

    def shortest_completion(self, state: int) -> int:
        """How many tokens reach the nearest accepting state, the end-of-text token not counted; always achievable."""
        ...


@runtime_checkable
class JudgesTokens(Constrains, Protocol):
    """A constraint whose masks cost far more than it takes to judge a token: who draws may ask about that one first."""

    def takes(self, state: int, token: int, budget: int | None = None) -> bool | None:
        """Is a token allowed, told without a mask?

        Under a budget, counted as in `fill_budget_mask`: True where an end behind the token is known that fits, though
        the mask may leave such tokens out; False where the token is not allowed under any; None: the mask tells.
        """
        ...
