"""The tokens that a checker of texts refuses, of those that the automaton allows: found once a state.

What fails inside a text is the business of each checker; this is what they share.
"""

from __future__ import annotations

import weakref
from abc import ABC, abstractmethod
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.distinct.token_texts import NO_TOKENS
from guided.constraint.product import ProductMachine

__all__ = ["FormatRefusals", "TextTokens", "token_array"]


class TextTokens(Protocol):
    """What is known of a vocabulary's tokens."""

    @property
    def opening(self) -> NDArray[np.int64]:
        """Tokens in which a string begins that is no such text, although the automaton may allow it."""

    def spelled(self, token: int) -> bytes:
        """A token's bytes."""


Tokens = TypeVar("Tokens", bound=TextTokens)


class FormatRefusals(ABC, Generic[Tokens]):
    """Refused tokens by state of one machine."""

    def __init__(self, machine: ProductMachine[Any], tokens: Tokens) -> None:
        self._machine: ProductMachine[Any] = weakref.proxy(machine)
        self._tokens = tokens
        self._refused: dict[int, NDArray[np.int64]] = {}
        self._undecided: dict[int, NDArray[np.int64]] = {}

    @abstractmethod
    def inside(self, text: Any, row: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of the tokens of a row, behind a place in a text: those that fail, and the undecided others."""

    def opening(self, state: int, row: NDArray[np.uint32]) -> NDArray[np.int64]:
        """The tokens of a row, outside such a text, that begin a string which must be one and is not."""
        tokens = self._tokens.opening
        allowed = tokens[tokenset.are_in(row, tokens)].tolist() if tokens.size else ()
        return token_array([token for token in allowed if not self._machine.reads(state, self._tokens.spelled(token))])

    def refused(self, state: int) -> NDArray[np.int64]:
        """The tokens that the automaton allows, for threads in such a text, and the checker does not."""
        self._find(state)
        return self._refused[state]

    def undecided(self, state: int) -> NDArray[np.int64]:
        """Allowed tokens after which the automaton's own shortest text may fail."""
        self._find(state)
        return self._undecided[state]

    def _find(self, state: int) -> None:
        if state in self._refused:
            return
        own, text = self._machine.split(state)
        # The mask is the machine's to write to again; what is asked of it in between may do so.
        row = self._machine.inner.mask(own).copy()
        opening = self.opening(state, row)
        if text is None:
            self._refused[state], self._undecided[state] = opening, NO_TOKENS
            return
        failed, self._undecided[state] = self.inside(text, row)
        self._refused[state] = tokenset.union(failed, opening)


def token_array(tokens: list[int]) -> NDArray[np.int64]:
    """Tokens as an array; the shared one where there are none."""
    return np.asarray(tokens, np.int64) if tokens else NO_TOKENS
