"""How far the tokens that stay inside a terminal are from its end: by the places in which they end, which are few.

A kernel does all of it (`guided.kernels.masking.near_lists`), but for what characters lack that tokens begin.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from guided.constraint.effects.surveys import Surveys
from guided.vocab.vocabulary import Vocabulary

__all__ = ["PricesInside"]


class PricesInside:
    """Of the tokens of one vocabulary."""

    def __init__(self, vocabulary: Vocabulary, surveys: Surveys) -> None:
        self._spelling = vocabulary.spelling
        self._surveys = surveys
        self._of_token: NDArray[np.uint8] | None = None
        self._of_all: tuple[NDArray[np.int32], NDArray[np.uint8]] | None = None

    def listed(self, low: int, high: int, state: int) -> NDArray[np.int32] | None:
        """What is listed of an effect, good until the next walk; None where tokens come to owe something."""
        is_whole = low == 1 and high == self._surveys.tries.root
        if not is_whole:
            return self._surveys.near(low, high, state, *self._lacking(low, high))
        if self._of_all is None:
            self._of_all = self._lacking(low, high)
        return self._surveys.near(low, high, state, *self._of_all)

    def _lacking(self, low: int, high: int) -> tuple[NDArray[np.int32], NDArray[np.uint8]]:
        """The places in the pool of a range's tokens whose last character lacks bytes, and how many."""
        if self._of_token is None:
            self._of_token = self._lacks()
        tokens = self._surveys.tries.arrays
        first, stop = int(tokens.token_offset[low]), int(tokens.token_offset[high])
        lacks = self._of_token[tokens.token_ids[first:stop]]
        at = np.flatnonzero(lacks)
        return (first + at).astype(np.int32), lacks[at]

    def _lacks(self) -> NDArray[np.uint8]:
        """By token how many bytes its last character still lacks (RFC 3629)."""
        data, stops = self._spelling.data, self._spelling.offsets[1:]
        sizes = np.diff(self._spelling.offsets)
        lacks = np.zeros(sizes.size, np.uint8)
        tokens = np.flatnonzero(sizes)
        tokens = tokens[data[stops[tokens] - 1] >= 0x80]
        for back in range(1, 4):
            tokens = tokens[sizes[tokens] >= back]
            leads = data[stops[tokens] - back]
            length = np.where(leads >= 0xF0, 4, np.where(leads >= 0xE0, 3, np.where(leads >= 0xC0, 2, 0)))
            is_begun = length > back
            lacks[tokens[is_begun]] = length[is_begun] - back
        return lacks
