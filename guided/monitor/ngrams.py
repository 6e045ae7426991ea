"""`ngrams`: any token n-gram of tokenized documents, and which documents it came from (Bevilacqua et al., 2022, SEAL).

States are intervals of an FM-index over tokens.  A text counts in the very tokens that the documents were given in,
which is what makes a mask one query of the index; any tokenization of a piece of text is `guided.monitor.substrings`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.constraint.limits import Limits
from guided.errors import LimitError, UnsupportedError, VocabularyError
from guided.kernels.data.layout import DEAD, FINISHED
from guided.monitor.fm_index import FmIndex
from guided.vocab.vocabulary import Vocabulary

__all__ = ["NgramConstraint", "ngrams"]

START = 2
"""The first state that is neither dead nor finished."""


def ngrams(
    documents: Iterable[Sequence[int]] | FmIndex, vocabulary: Vocabulary, *, limits: Limits | None = None
) -> NgramConstraint:
    """Any non-empty run of tokens that stands in one of the documents, given as token ids or as their index.

    Raises `VocabularyError` for documents that hold ids without text.
    """
    index = documents if isinstance(documents, FmIndex) else FmIndex.build(documents)
    return NgramConstraint(index, vocabulary, limits)


class NgramConstraint:
    """A `Constrains` whose states are intervals of an FM-index over tokens; equal n-grams share one.

    States go by tokens, so `advance_bytes` is refused, as by `guided.canonical`.  A mask is one query of the index.
    """

    def __init__(self, index: FmIndex, vocabulary: Vocabulary, limits: Limits | None = None) -> None:
        self.index = index
        self.vocabulary = vocabulary
        self.limits = limits or Limits()
        self.start = START
        """The state before any token."""
        self.end = FINISHED
        """The state after an end-of-text id."""
        held = index.ids[2:]
        texts = np.diff(vocabulary.offsets)
        wrong = held[(held >= vocabulary.size) | (texts[np.minimum(held, vocabulary.size - 1)] == 0)]
        if wrong.size:
            raise VocabularyError(
                f"the documents hold ids without text in this vocabulary: {wrong[:5].tolist()}",
                remedy="Tokenize them with this tokenizer, without special tokens.",
            )
        self._lock = threading.RLock()
        self._intervals: list[tuple[int, int]] = [(0, 0), (0, 0), index.whole]
        self._numbers: dict[tuple[int, int], int] = {}
        self._steps: dict[int, int] = {}
        self._masks: dict[int, NDArray[np.uint32]] = {}
        self._eos = frozenset(vocabulary.eos_ids)
        self._eos_row = tokenset.of_ids(vocabulary.eos_ids, vocabulary.n_words)

    def __reduce__(self) -> tuple[Any, ...]:
        return (NgramConstraint, (self.index, self.vocabulary, self.limits))

    def __repr__(self) -> str:
        return f"<NgramConstraint of {self.index.n_symbols} tokens over {self.vocabulary!r}>"

    def fill_mask(self, state: int, row: NDArray[np.uint32]) -> None:
        """Write the mask of ``state`` to ``row`` (``uint32[n_words]``)."""
        if state <= FINISHED:
            row[:] = self._eos_row if state == FINISHED else 0
            return
        with self._lock:
            found = self._masks.get(state)
            if found is None:
                found = np.zeros_like(self._eos_row) if state == START else self._eos_row.copy()
                ids = self.index.following(self._intervals[state])[0]
                tokenset.add_all(found, ids)
                if (len(self._masks) + 1) * found.nbytes > self.limits.mask_bytes:
                    for key in list(self._masks)[: len(self._masks) // 2 + 1]:
                        del self._masks[key]
                self._masks[state] = found
            row[:] = found

    def advance(self, state: int, token: int) -> int:
        """The state after a token, 0 if it is not allowed; end-of-text ids lead from accepting states to `end`."""
        if token in self._eos:
            return FINISHED if self.is_accepting(state) else DEAD
        if state <= FINISHED:
            return DEAD
        key = state << 32 | token
        found = self._steps.get(key)
        if found is None:
            with self._lock:
                interval = self.index.append(self._intervals[state], token)
                found = DEAD
                if interval[0] < interval[1]:
                    found = self._numbers.setdefault(interval, len(self._intervals))
                    if found == len(self._intervals):
                        self._intervals.append(interval)
                if len(self._steps) >= self.limits.steps:
                    self._steps.clear()
                self._steps[key] = found
        return found

    def advance_bytes(self, state: int, data: bytes) -> int:
        """Only for no bytes at all: a text may have been cut into other tokens.

        Raises `UnsupportedError` for any others.
        """
        if not data:
            return state
        raise UnsupportedError(
            "n-grams of tokens go by tokens, not by bytes",
            remedy="Advance by tokens, or use guided.substring, which goes by bytes.",
        )

    def is_accepting(self, state: int) -> bool:
        """After any token."""
        return state not in (DEAD, START)

    def forced(self, state: int) -> bytes:
        """The bytes of the token that must come first, where the documents begin with only one; else none."""
        if state != START:
            return b""
        ids = self.index.ids[2:]
        return (self.vocabulary.token_bytes(int(ids[0])) or b"") if ids.size == 1 else b""

    def shortest_completion(self, state: int) -> int:
        """One token at the start, none after it."""
        return int(state == START)

    def fill_budget_mask(self, state: int, row: NDArray[np.uint32], budget: int) -> None:
        """As `fill_mask`, of tokens after which there is room for the end-of-text token.

        Raises `LimitError` where there is no room for an n-gram.
        """
        if self.shortest_completion(state) + 1 > budget:
            raise LimitError(
                f"{budget} tokens are left, but an n-gram takes one and the end-of-text token",
                remedy="Raise max_new_tokens.",
            )
        self.fill_mask(state, row)
        if budget < 2:
            row &= self._eos_row

    def explain(self, state: int, token: int) -> str:
        """Why a token is or is not allowed."""
        if state == DEAD:
            return "the text before is not allowed, so nothing can follow it"
        if not 0 <= token < self.vocabulary.size:
            return f"token {token} is outside the vocabulary of {self.vocabulary.size} ids"
        if token in self._eos:
            return "the text may end here" if self.is_accepting(state) else "at least one token must come first"
        if state == FINISHED:
            return "the text has ended; only an end-of-text token may follow"
        name = f"token {token} ({self.vocabulary.token_bytes(token)!r})"
        after = self.advance(state, token)
        if after == DEAD:
            return f"{name} follows these tokens nowhere in the documents"
        low, high = self._intervals[after]
        return f"{name} is allowed: the n-gram occurs {high - low} times"

    def occurrences(self, tokens: Sequence[int], limit: int | None = None) -> list[tuple[int, int]]:
        """Where an n-gram stands: ``(document, offset in tokens)``."""
        return self.index.locate(tokens, limit)
