"""The arrays with which every constraint begins: small, since most schemas never fill them; a machine replaces them."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from guided.constraint.per_vocabulary import PerVocabulary
from guided.constraint.scratch import small_scratch
from guided.constraint.shared_rows import SharedRows
from guided.kernels.addresses import Block
from guided.kernels.layout import N_COUNTERS, Extra, Machine, Scratch, Segments
from guided.kernels.segments import MOST_TOKENS
from guided.vocab.vocabulary import Vocabulary

__all__ = ["SHARES", "FirstExtra", "first_scratch", "first_segments", "first_tables", "segments_of"]


SHARES = 8
"""Mask rows for effects with removals nested in one token (names of nested objects); grows when needed."""


class FirstExtra(PerVocabulary):
    """Counters, mask rows and the answer about bytes; what belongs to the vocabulary is the same for all."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        extra = Extra(
            counters=np.zeros(N_COUNTERS, np.int64),
            joined=np.zeros((0, 3), np.int64),
            rows=np.zeros((SHARES, vocabulary.n_words), np.uint32),
            token_data=vocabulary.spelling.data,
            token_offsets=vocabulary.spelling.offsets,
            bytes_out=np.zeros(256, np.uint8),
            text=np.zeros(256, np.uint8),
            marked=np.zeros(0, np.uint8),
            weights=SharedRows.of(vocabulary).weights,
            fewest=np.zeros(0, np.int32),
            farthest=np.zeros(0, np.int32),
        )
        shared = ("joined", "token_data", "token_offsets", "marked", "weights", "fewest", "farthest")
        self.block = Block(extra, shared=shared)


def _tables(size: int) -> Machine:
    def ints(n: int) -> NDArray[np.int32]:
        return np.zeros(n, np.int32)

    return Machine(
        set_offset=ints(size), items=np.ones(4 * size, np.int64), set_hash=np.full(2 * size + 1, -1, np.int32),
        closure_first=np.full(size, -1, np.int32), closure_count=ints(size), closure_state=ints(4 * size),
        closure_next=ints(4 * size), closure_label=ints(4 * size), state_offset=ints(size),
        thread_state=ints(2 * size), thread_next=ints(2 * size), thread_obligation=ints(2 * size),
        state_hash=np.full(2 * size + 1, -1, np.int32), cost=ints(size), reach=ints(size), node_cost=ints(0),
    )  # fmt: skip


def segments_of(size: int, n_tokens: int) -> Segments:
    """Room for some segments with so many tokens."""
    return Segments(
        hash_slot=np.full(2 * size + 1, -1, np.int32), key=np.zeros(size, np.int64), first=np.zeros(size, np.int32),
        count=np.zeros(size, np.int32), tokens=np.zeros(n_tokens, np.int32), need=np.zeros(size, np.int32),
    )  # fmt: skip


@lru_cache(maxsize=1)
def first_tables() -> Block[Machine]:
    """The tables of a constraint; each time they grow somebody waits for a mask, one in ten with this, one in five with
    half as much."""
    return Block(_tables(512))


@lru_cache(maxsize=8)
def first_scratch(longest: int) -> Block[Scratch]:
    """The working memory of a constraint; ``longest`` is the longest token in bytes."""
    return Block(small_scratch(longest))


@lru_cache(maxsize=1)
def first_segments() -> Block[Segments]:
    """The kept parts of a constraint's masks."""
    return Block(segments_of(512, 4 * MOST_TOKENS))
