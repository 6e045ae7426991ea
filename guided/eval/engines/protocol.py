"""What an evaluation asks of an engine: compile a schema, then mask and advance token by token."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.vocab import Vocabulary

__all__ = ["Compiled", "Engine", "Matcher", "TokenSpace"]


@dataclass(frozen=True)
class TokenSpace:
    """The ids that an engine masks."""

    tokenizer: Any
    """A fast tokenizer of transformers; what the peers read their vocabulary from."""
    vocabulary: Vocabulary
    """The same ids as bytes, with every end-of-text id of the model."""
    width: int
    """Number of the model's logits; ids from ``vocabulary.size`` on are padding and never allowed."""

    @property
    def n_words(self) -> int:
        """Number of ``uint32`` words of a mask row over ``width`` ids."""
        return tokenset.n_words(self.width)


class Matcher(Protocol):
    """One text in progress."""

    def fill_mask(self, row: NDArray[np.uint32], left: int | None) -> None:
        """Write the allowed tokens to ``row`` (``uint32[n_words]``): bit ``t & 31`` of word ``t >> 5`` per token.

        ``left`` is how many tokens may still be written, this one and the end-of-text token included, None for any
        number; an engine that knows no budgets ignores it.
        """

    def advance(self, token: int) -> None:
        """Take a token that the mask allowed and that is no end of text; raises what the engine raises."""


class Compiled(Protocol):
    """A schema that an engine has accepted."""

    @property
    def notes(self) -> Sequence[str]:
        """What the engine said about it without refusing it."""

    def start(self) -> Matcher:
        """A text that has not begun; any number of them, one after the other."""


class Engine(Protocol):
    """An engine over one vocabulary."""

    def compile(self, schema: Any) -> Compiled:
        """Compile a JSON Schema (data); raises whatever the engine raises for what it does not support."""
