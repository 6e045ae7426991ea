"""The ids of a vocabulary that end a text, as constraints ask for them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.per_vocabulary import PerVocabulary
from guided.vocab.vocabulary import Vocabulary

__all__ = ["EndTokens"]


class EndTokens(PerVocabulary):
    """End-of-text ids, and the rows of the two states in which a text is over, which may not be written to.

    >>> import guided
    >>> EndTokens.of(guided.Vocabulary.from_tokens([b"a", None], eos_ids=[1])).row.tolist()
    [2]
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.ids = frozenset(vocabulary.eos_ids)
        self.array: NDArray[np.int64] = np.array(sorted(self.ids), np.int64)
        """The ids, ascending."""
        self.row: NDArray[np.uint32] = tokenset.of_ids(self.ids, vocabulary.n_words)
        """Of the end: only these ids."""
        self.nothing: NDArray[np.uint32] = np.zeros_like(self.row)
        """Of a dead state: no token."""
