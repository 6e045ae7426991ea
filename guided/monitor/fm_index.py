"""`FmIndex`: every n-gram of a collection of documents, in a few bytes a symbol (Bevilacqua et al., 2022, SEAL).

The documents are indexed reversed, so that appending a symbol to an n-gram is one step of the backward search, and what
may follow an n-gram are the distinct symbols of the Burrows-Wheeler transform in its interval of rows.  N-grams never
span documents: between them stand separators that no query asks for.  This file builds the index and answers questions;
it knows no vocabulary.  The loops are in `guided.kernels.tokens.fm_index`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from guided.errors import GuidedError, LimitError, UnsatisfiableError

__all__ = ["FmIndex", "suffix_array"]

_END, _SEPARATOR, _FIRST = 0, 1, 2
_MOST = 2**31 - 64
"""Rows are 32-bit counts."""
_SAMPLED = 16
"""Every so many positions are kept for `FmIndex.locate`: a quarter of a byte a symbol, eight steps on average."""


def suffix_array(symbols: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """The starts of all suffixes in ascending order, ``int64[n]``; a suffix comes before what it is a prefix of.

    Prefix doubling (Manber and Myers, 1990): after round ``k`` suffixes are sorted by their first 2^k symbols, and
    only those that still tie are looked at again (Larsson and Sadakane, 1999).  O(n log n) for each round; as many
    rounds as the logarithm of the longest repeat.

    >>> suffix_array(np.frombuffer(b"banana", np.uint8)).tolist()
    [5, 3, 1, 0, 4, 2]
    """
    n = symbols.size
    order = np.argsort(symbols, kind="stable").astype(np.int64)
    key = symbols[order]
    slots = np.arange(n)
    rank = np.empty(n, np.int64)
    width = 0
    suffixes = order
    while True:
        # `suffixes` fill `slots` in order of `key`; a rank is the first slot of its group of equals.
        heads = np.ones(slots.size, np.bool_)
        heads[1:] = key[1:] != key[:-1]
        rank[suffixes] = np.maximum.accumulate(np.where(heads, slots, 0))
        alone = heads & np.append(heads[1:], True)
        slots, suffixes = slots[~alone], suffixes[~alone]
        if not slots.size:
            return order
        width = 2 * width or 1
        behind = suffixes + width
        key = rank[suffixes] * (n + 1)
        inside = behind < n
        key[inside] += rank[behind[inside]] + 1
        by_key = np.argsort(key, kind="stable")
        suffixes, key = suffixes[by_key], key[by_key]
        order[slots] = suffixes


@dataclass(frozen=True, eq=False)
class FmIndex:
    """All n-grams of some documents; build it with `build`.  Immutable, picklable, shared freely.

    An *interval* ``(low, high)`` stands for an n-gram: the rows whose suffixes begin with it, reversed; ``high - low``
    is how often it occurs.  `whole` is the interval of the empty n-gram.

    >>> index = FmIndex.build([[5, 6, 7, 6], [6, 7]])
    >>> index.count([6, 7]), index.count([6, 6]), index.locate([6, 7])
    (2, 0, [(0, 1), (1, 0)])
    >>> index.following(index.interval([6]))[0].tolist()
    [7]
    """

    words: NDArray[np.uint64]
    before: NDArray[np.int32]
    zeros: NDArray[np.int64]
    shift: NDArray[np.int64]
    ids: NDArray[np.int64]
    """``int64[n_symbols + 2]``: the id of each dense symbol, ascending; the first two are the separators', -1."""
    marked: NDArray[np.uint64]
    marked_before: NDArray[np.int32]
    samples: NDArray[np.int32]
    starts: NDArray[np.int64]
    """``int64[n_documents + 1]``: where each document begins in the indexed text."""

    @classmethod
    def build(cls, documents: Iterable[Sequence[int] | NDArray[Any] | bytes]) -> FmIndex:
        """Index documents of non-negative ids (token ids, or bytes).

        About a second for a million ids.  Raises `UnsatisfiableError` where there is nothing to index, `LimitError`
        beyond 2^31 ids, `GuidedError` for negative ids.
        """
        documents = list(documents)
        if any(isinstance(document, str) for document in documents):
            raise GuidedError("a text is no sequence of ids", remedy="Encode it: to bytes, or to token ids.")
        arrays = [
            np.frombuffer(document, np.uint8) if isinstance(document, bytes) else np.asarray(document, np.int64)
            for document in documents
        ]
        lengths = np.array([array.size for array in arrays], np.int64)
        if not lengths.sum():
            raise UnsatisfiableError(
                "there is nothing to index", remedy="Give at least one document that is not empty."
            )
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths + 1)])
        n = int(starts[-1]) + 1
        if n > _MOST:
            raise LimitError(f"{n} ids are too many for one index of 2^31", remedy="Build several indices.")
        least = min(int(array.min()) for array in arrays if array.size)
        if least < 0:
            raise GuidedError(f"the id {least} cannot be indexed", remedy="Ids are 0 or more.")
        ids, dense = np.unique(np.concatenate(arrays), return_inverse=True)
        text = np.empty(n, np.int64)
        at = 0
        for start, array in zip(starts.tolist(), arrays, strict=False):
            text[start : start + array.size] = dense[at : at + array.size][::-1] + _FIRST
            text[start + array.size] = _SEPARATOR
            at += array.size
        text[-1] = _END
        order = suffix_array(text)
        transformed = text[order - 1]
        n_symbols = ids.size + _FIRST
        levels = max(1, int(n_symbols - 1).bit_length())
        words, before, zeros, base = _wavelet_matrix(transformed, levels, n_symbols)
        first_row = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(text, minlength=n_symbols))[:-1]])
        sampled = order % _SAMPLED == 0
        marked, marked_before = _packed(sampled)
        return cls(
            words,
            before,
            zeros,
            first_row - base,
            np.concatenate([np.full(_FIRST, -1, np.int64), ids.astype(np.int64)]),
            marked[None],
            marked_before[None],
            order[sampled].astype(np.int32),
            starts,
        )

    @property
    def n_documents(self) -> int:
        """Number of documents."""
        return self.starts.size - 1

    @property
    def n_symbols(self) -> int:
        """Number of ids in all documents together."""
        return int(self.starts[-1]) - self.n_documents

    @property
    def n_bytes(self) -> int:
        """Memory of the index."""
        arrays = (self.words, self.before, self.zeros, self.shift, self.ids, self.marked, self.marked_before)
        return sum(array.nbytes for array in (*arrays, self.samples, self.starts))

    @property
    def whole(self) -> tuple[int, int]:
        """The interval of the empty n-gram."""
        return 0, int(self.starts[-1]) + 1

    def symbol(self, item: int) -> int:
        """The dense symbol of an id, -1 when no document holds it."""
        place = int(np.searchsorted(self.ids, item))
        return place if place < self.ids.size and item >= 0 and self.ids[place] == item else -1

    def append(self, interval: tuple[int, int], item: int) -> tuple[int, int]:
        """The interval of an n-gram with one more id; ``(0, 0)`` when it does not occur."""
        from guided.kernels.tokens.fm_index import narrow

        symbol = self.symbol(item)
        if symbol < 0:
            return 0, 0
        low, high = narrow(self.words, self.before, self.zeros, self.shift, interval[0], interval[1], symbol)
        return int(low), int(high)

    def interval(self, ngram: Iterable[int]) -> tuple[int, int]:
        """The interval of an n-gram, ``(0, 0)`` when it does not occur."""
        interval = self.whole
        for item in ngram:
            interval = self.append(interval, int(item))
            if interval[0] >= interval[1]:
                return 0, 0
        return interval

    def following(self, interval: tuple[int, int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The different ids that follow an n-gram, ascending, and how often each does; all ids at the start, kept."""
        return self._first if interval == self.whole else self._following(interval)

    @cached_property
    def _first(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """What follows the empty n-gram: 16 bytes an id, against 2 ms for 125,000 ids each time."""
        found = self._following(self.whole)
        for array in found:
            array.flags.writeable = False
        return found

    def _following(self, interval: tuple[int, int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        from guided.kernels.tokens.fm_index import distinct

        room = min(self.ids.size, interval[1] - interval[0])
        symbols, counts = np.empty(room, np.int64), np.empty(room, np.int64)
        found = distinct(self.words, self.before, self.zeros, interval[0], interval[1], _FIRST, symbols, counts)
        return self.ids[symbols[:found]], counts[:found]

    def count(self, ngram: Sequence[int] | bytes) -> int:
        """How often an n-gram occurs in all documents; of the empty one, the number of ids."""
        low, high = self.interval(ngram)
        return high - low if len(ngram) else self.n_symbols

    def locate(self, ngram: Sequence[int] | bytes, limit: int | None = None) -> list[tuple[int, int]]:
        """Where an n-gram occurs: ``(document, offset)``, ascending; ``limit`` of them, any, when given.

        Raises `GuidedError` for the empty n-gram, which is everywhere.
        """
        if not len(ngram):
            raise GuidedError("the empty n-gram is everywhere", remedy="Ask for at least one id.")
        low, high = self.interval(ngram)
        places = self.positions((low, high if limit is None else min(high, low + limit)))
        documents = np.searchsorted(self.starts, places, side="right") - 1
        ends = self.starts[documents + 1] - 1
        offsets = ends - places - len(ngram)
        return sorted(zip(documents.tolist(), offsets.tolist(), strict=True))

    def positions(self, interval: tuple[int, int]) -> NDArray[np.int64]:
        """Positions in the indexed (reversed) text of the rows of an interval."""
        from guided.kernels.tokens.fm_index import locate

        rows = np.arange(interval[0], interval[1], dtype=np.int64)
        found = np.empty_like(rows)
        matrix = (self.words, self.before, self.zeros, self.shift)
        locate(*matrix, self.marked, self.marked_before, self.samples, rows, found)
        return found


def _packed(bits: NDArray[np.bool_]) -> tuple[NDArray[np.uint64], NDArray[np.int32]]:
    """Bits as words of 64, and the ones before each word; one word more than needed, so that ranks of n read it."""
    padded = np.zeros((bits.size // 64 + 1) * 64, np.bool_)
    padded[: bits.size] = bits
    words = np.packbits(padded, bitorder="little").view(np.uint64)
    ones = padded.reshape(-1, 64).sum(1)
    return words, np.concatenate([np.zeros(1, np.int64), np.cumsum(ones)[:-1]]).astype(np.int32)


def _wavelet_matrix(
    sequence: NDArray[np.int64], levels: int, n_symbols: int
) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int64], NDArray[np.int64]]:
    """Words, counts and zeros of each level, and where each symbol's run begins behind the last one."""
    words, before, zeros = [], [], []
    for level in range(levels):
        bits = (sequence >> (levels - 1 - level)) & 1 == 1
        packed, ones = _packed(bits)
        words.append(packed)
        before.append(ones)
        zeros.append(int(bits.size - np.count_nonzero(bits)))
        sequence = np.concatenate([sequence[~bits], sequence[bits]])
    base = np.zeros(n_symbols, np.int64)
    runs = np.flatnonzero(np.concatenate([[True], sequence[1:] != sequence[:-1]]))
    base[sequence[runs]] = runs
    return np.stack(words), np.stack(before), np.array(zeros, np.int64), base
