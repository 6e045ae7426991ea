"""The arrays with which every constraint begins, small since most schemas never fill them, and those that follow."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided.constraint.effects.shared_rows import SharedRows
from guided.constraint.engine.scratch import small_scratch
from guided.constraint.limits import Limits
from guided.constraint.per_vocabulary import PerVocabulary
from guided.errors import LimitError
from guided.kernels.data.addresses import Block
from guided.kernels.data.layout import (
    N_CLOSURE,
    N_COUNTERS,
    N_ITEMS,
    N_SETS,
    N_STATES,
    N_THREADS,
    Extra,
    Machine,
    Scratch,
    Segments,
)
from guided.kernels.masking.segments import MOST_TOKENS
from guided.vocab.vocabulary import Vocabulary

__all__ = [
    "SHARES", "FirstExtra", "first_scratch", "first_segments", "first_tables", "grown_scratch", "grown_segments",
    "grown_tables", "segments_of",
]  # fmt: skip


SHARES = 4
"""Mask rows for effects with removals nested in one token (names of nested objects); grows when needed."""

_ENTRIES = 128
"""Entries of the working memory; grows when needed, as of 875 schemas of MaskBench six did, and two with twice as many.

New memory is touched a page at a time, 2.5 us each: with 1,024 and twice the rows a constraint began with 108 pages in
place of 75, which took a seventh of making it; with half as many of these, of items and of a graph's nodes and edges
it is a tenth less again.  Of tasks there are six times as many, touched only where they are used: with three times as
many a mask of free text in Llama-3's vocabulary was begun anew under 74 of 100 schemas, an eighth of the masks' time.
"""


class FirstExtra(PerVocabulary):
    """Counters, mask rows and the answer about bytes; what belongs to the vocabulary is the same for all."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        extra = Extra(
            counters=np.zeros(N_COUNTERS, np.int64),
            joined=np.zeros((2, 2), np.int64),
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
        set_offset=ints(size), items=np.zeros(2 * size, np.int64), set_hash=np.full(2 * size + 1, -1, np.int32),
        closure_first=np.full(size, -1, np.int32), closure_count=ints(size), closure_state=ints(4 * size),
        closure_next=ints(4 * size), closure_label=ints(4 * size), state_offset=ints(size),
        thread_state=ints(2 * size), thread_next=ints(2 * size), thread_obligation=ints(2 * size),
        state_hash=np.full(2 * size + 1, -1, np.int32), composed=ints(size), cost=ints(size), reach=ints(size),
        node_cost=ints(0),
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
    return Block(small_scratch(longest, _ENTRIES))


@lru_cache(maxsize=1)
def first_segments() -> Block[Segments]:
    """The kept parts of a constraint's masks."""
    return Block(segments_of(512, 4 * MOST_TOKENS))


_USED = {
    "set_offset": (N_SETS, 2), "items": (N_ITEMS, 64), "closure_first": (N_SETS, 2), "closure_count": (N_SETS, 2),
    "closure_state": (N_CLOSURE, 64), "closure_next": (N_CLOSURE, 64), "closure_label": (N_CLOSURE, 64),
    "state_offset": (N_STATES, 2), "thread_state": (N_THREADS, 64), "thread_next": (N_THREADS, 64),
    "thread_obligation": (N_THREADS, 64), "composed": (N_SETS, 2), "cost": (N_SETS, 2), "reach": (N_SETS, 2),
}  # fmt: skip
"""By table the counter of its entries in use, and how many one step may add."""


def grown_tables(tables: Machine, counters: NDArray[np.int64], limits: Limits) -> Machine:
    """Tables of four times the size where they are half full, their hashes empty.

    Raises `LimitError` beyond `Limits.table_items`.
    """
    full = [
        name
        for name, (counter, slack) in _USED.items()
        if 2 * (int(counters[counter]) + slack) > getattr(tables, name).shape[0]
    ]
    grown: dict[str, NDArray[Any]] = {}
    # A single closure or set can be larger than the slack; then whatever was short is among all of them.
    for name in full or _USED:
        array = getattr(tables, name)
        if array.shape[0] > limits.table_items:
            raise LimitError(
                f"this constraint's tables passed {limits.table_items} entries",
                remedy="Compile it anew, simplify the grammar, or pass Limits(table_items=...).",
            )
        grown[name] = np.zeros(4 * array.shape[0], array.dtype)
        grown[name][: array.shape[0]] = array
    for name, of in (("set_hash", "set_offset"), ("state_hash", "state_offset")):
        if of in grown:
            grown[name] = np.empty(2 * grown[of].size + 1, np.int32)
    return tables._replace(**grown)


def grown_scratch(scratch: Scratch, limits: Limits) -> Scratch:
    """Working memory of twice the size.  Raises `LimitError` beyond its limit."""
    if scratch.longs.size > limits.table_items:
        raise LimitError("the parser's working memory passed its limit", remedy="Simplify the grammar.")
    return Scratch(**{name: np.zeros(2 * array.size, array.dtype) for name, array in scratch._asdict().items()})


def grown_segments(old: Segments, used: int) -> Segments:
    """Room for four times as many segments and twice as many tokens, the hash empty."""
    grown = segments_of(4 * old.key.size, 2 * old.tokens.size)
    grown.tokens[: old.tokens.size] = old.tokens
    for name in ("key", "first", "count", "need"):
        getattr(grown, name)[:used] = getattr(old, name)[:used]
    return grown
