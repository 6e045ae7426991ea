"""What the tokens of a row are told by: where they end, and the parts of rows that are remembered."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.attributed.spans import Reached
from guided.grammar.attributed.spellings import Spellings
from guided.grammar.attributed.states import Reading
from guided.grammar.attributed.threads import Place

__all__ = ["Free", "Group", "Part", "part_of"]


class Free(NamedTuple):
    """What tokens end in, of which no list says what it may be."""

    reading: Reading
    """A number, a string, or a name as a word or in quotes; white space: anything behind such a name in a token."""
    quote: int = 0
    held: Spellings | None = None
    """What a number or string is held to."""


class Group(NamedTuple):
    """Tokens that end in lexemes which begin at one place, or right there."""

    place: Place
    tokens: tokenset.Row
    free: Free | None
    """None: these lexemes are listed."""


class Part(NamedTuple):
    """Tokens of a row: the words of it that hold any, and which these are."""

    words: NDArray[np.int64]
    tokens: tokenset.Row
    reached: tuple[Reached, ...]
    """How far they lead."""


def part_of(row: tokenset.Row, reached: tuple[Reached, ...]) -> Part:
    """The tokens of a row."""
    words = np.flatnonzero(row)
    return Part(words, row[words], reached)
