"""Tokens that end a string and go on to a next item or member, by what they hold behind that string's end.

Where every end of a string leads to one state only what is behind counts, which few tokens differ in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from guided.constraint.crossings import Crossing, Crossings, Place
from guided.constraint.per_vocabulary import PerVocabulary
from guided.constraint.token_texts import Reach, TokenTexts
from guided.vocab.vocabulary import Vocabulary

__all__ = ["CrossingGroups"]


class _Groups(NamedTuple):
    """Tokens by group, with their words and bits in a row; where groups begin, and the crossing of one of each."""

    token: NDArray[np.int64]
    word: NDArray[np.int64]
    bit: NDArray[np.uint32]
    first: NDArray[np.int64]
    crossings: list[Crossing | None]


class CrossingGroups(PerVocabulary):
    """The groups of one vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._texts = TokenTexts.of(vocabulary)
        self._crossings = Crossings.of(vocabulary)
        self._groups: dict[frozenset[Reach], _Groups] = {}
        # Reading the tokens takes milliseconds, which would be in the middle of a text.
        for reach in Reach:
            for token in self._texts.that_reach(frozenset((reach,)), Place.STRING).tolist():
                self._crossings.crossing(token, Place.STRING)

    def within(self, row: NDArray[np.uint32], reaches: frozenset[Reach]) -> Iterator[tuple[Crossing | None, list[int]]]:
        """Of the tokens of a row that in a string may reach so far each group, with the crossing of one of them.

        Those that hold an escape before the string's end, or do something else, are a group each.
        """
        groups = self._groups.get(reaches)
        if groups is None:
            groups = self._groups[reaches] = self._made(reaches)
        if not groups.token.size:
            return
        hits = (row[groups.word] & groups.bit) != 0
        counts = np.add.reduceat(hits, groups.first, dtype=np.int64)
        found = np.flatnonzero(counts)
        tokens: list[int] = groups.token[hits].tolist()
        at = 0
        for index, count in zip(found.tolist(), counts[found].tolist(), strict=True):
            yield groups.crossings[index], tokens[at : at + count]
            at += count

    def _made(self, reaches: frozenset[Reach]) -> _Groups:
        members: dict[bytes | int, list[int]] = {}
        for token in self._texts.that_reach(reaches, Place.STRING).tolist():
            crossing = self._crossings.crossing(token, Place.STRING)
            told = crossing is not None and crossing.end is not None
            members.setdefault(crossing.behind if told and crossing is not None else token, []).append(token)
        first = np.cumsum([0, *map(len, members.values())])[:-1]
        tokens = np.array([token for some in members.values() for token in some], np.int64)
        crossings = [self._crossings.crossing(some[0], Place.STRING) for some in members.values()]
        return _Groups(tokens, tokens >> 5, np.uint32(1) << (tokens & 31).astype(np.uint32), first, crossings)
