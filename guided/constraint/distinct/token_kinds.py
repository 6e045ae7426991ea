"""Tokens that go on to a next item or member, by the kind of what they do: which kinds there are in a vocabulary.

With the automaton's state behind a token its kind is all that a verdict on it rests on, and few tokens differ in both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.distinct.token_shapes import Crossing, Place, TokenShapes
from guided.constraint.distinct.token_texts import Reach, TokenTexts
from guided.constraint.per_vocabulary import PerVocabulary
from guided.vocab.vocabulary import Vocabulary

__all__ = ["KindsOfTokens", "TokenKinds"]


class KindsOfTokens(NamedTuple):
    """Some tokens, each with its word and bit in a row and the number of its kind."""

    token: NDArray[np.int64]
    word: NDArray[np.int64]
    bit: NDArray[np.uint32]
    kind: NDArray[np.int64]

    def within(self, row: NDArray[np.uint32]) -> tuple[list[int], list[int]]:
        """Those of the tokens that are in a row, and the kind of each."""
        hits = np.flatnonzero(row[self.word] & self.bit)
        return (self.token[hits].tolist(), self.kind[hits].tolist()) if hits.size else ([], [])

    def of_kinds(self, wanted: NDArray[np.bool_]) -> KindsOfTokens:
        """Those of some kinds."""
        some = wanted[self.kind]
        return KindsOfTokens(self.token[some], self.word[some], self.bit[some], self.kind[some])


class TokenKinds(PerVocabulary):
    """The kinds of one vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._texts = TokenTexts.of(vocabulary)
        self._crossings = TokenShapes.of(vocabulary)
        self._numbers: dict[object, int] = {}
        self.first: list[Crossing | None] = []
        """By kind the crossing of one of its tokens; None for those that do something else."""
        self._found: dict[tuple[frozenset[Reach], Place], KindsOfTokens] = {}
        # Reading the tokens takes milliseconds, which would be in the middle of a text.
        for place in (Place.BETWEEN, Place.STRING):
            for reach in Reach:
                self.of_tokens(frozenset((reach,)), place)

    def of_tokens(self, reaches: frozenset[Reach], place: Place) -> KindsOfTokens:
        """The tokens that, beginning in a place, reach so far, less those that surely go no further than a comma."""
        found = self._found.get((reaches, place))
        if found is None:
            found = self._found[reaches, place] = self._read(reaches, place)
        return found

    def _read(self, reaches: frozenset[Reach], place: Place) -> KindsOfTokens:
        tokens: list[int] = []
        kinds: list[int] = []
        for token in self._texts.that_reach(reaches, place).tolist():
            crossing = self._crossings.crossing(token, place)
            if crossing is None or crossing.crosses:
                tokens.append(token)
                kinds.append(self._kind(crossing))
        token, kind = np.array(tokens, np.int64), np.array(kinds, np.int64)
        return KindsOfTokens(token, *tokenset.places(token), kind)

    def _kind(self, crossing: Crossing | None) -> int:
        """The number of a kind: all of a crossing but what the string is whose end a token begins with."""
        key = crossing and (*crossing[: Crossing._fields.index("end")], crossing.end is None, crossing.held is None)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.first)
            self.first.append(crossing)
        return found
