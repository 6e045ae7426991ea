"""Tokens by the run of bytes that they begin with: those that are nothing but such a run, and what is left of others.

Free names and strings take nearly any token, so their masks are put together from these lists.  All is found once for
a vocabulary, by whole arrays.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from guided import tokenset
from guided.vocab.vocabulary import Vocabulary

__all__ = ["Rest", "Runs", "character_runs", "word_runs"]


class Rest:
    """A trie of what is left of tokens behind their runs."""

    __slots__ = ("children", "tokens")

    def __init__(self) -> None:
        self.children: dict[int, Rest] = {}
        self.tokens: list[int] = []

    def add(self, rest: bytes, token: int) -> None:
        """Put a token where its rest ends."""
        at = self
        for byte in rest:
            at = at.children.setdefault(byte, Rest())
        at.tokens.append(token)


@dataclass
class Runs:
    """Tokens that begin with one or more bytes of a class, behind a fixed head."""

    whole: tokenset.Row
    """Those that are nothing else."""
    lengths: NDArray[np.int64]
    """``int64[size]``: the bytes of each token's run."""
    rests: Rest = field(default_factory=Rest)
    """What is left of the others."""
    by_run: dict[bytes, list[tuple[bytes, int]]] = field(default_factory=dict)
    """The others by their runs: what is left, and the token."""
    longest: int = 0
    """The bytes of the longest run."""


def _runs(vocabulary: Vocabulary, head: bytes, members: NDArray[np.bool_]) -> tuple[NDArray[np.int64], ...]:
    """The tokens with the head and a run behind it; where their runs begin and end, and where they end themselves."""
    data, offsets = vocabulary.data, vocabulary.offsets
    start = offsets[:-1] + len(head)
    end = offsets[1:]
    chosen = end > start
    for position, byte in enumerate(head):
        at = np.minimum(offsets[:-1] + position, max(0, data.size - 1))
        chosen &= data[at] == byte
    tokens = np.flatnonzero(chosen)
    outside = np.append(np.flatnonzero(~members[data]), data.size)
    run_end = np.minimum(outside[np.searchsorted(outside, start[tokens])], end[tokens])
    kept = run_end > start[tokens]
    return tokens[kept], start[tokens][kept], run_end[kept], end[tokens][kept]


def word_runs(vocabulary: Vocabulary, head: bytes, *, starts: bool) -> Runs:
    """Runs of ASCII letters, digits and ``_``; with ``starts`` the first is no digit."""
    members = np.zeros(256, np.bool_)
    members[list(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")] = True
    tokens, start, run_end, end = _runs(vocabulary, head, members)
    if starts and tokens.size:
        first = vocabulary.data[start]
        kept = (first < ord("0")) | (first > ord("9"))
        tokens, start, run_end, end = tokens[kept], start[kept], run_end[kept], end[kept]
    return _made(vocabulary, tokens, start, run_end, end)


def character_runs(vocabulary: Vocabulary, head: bytes, excluded: Iterable[int]) -> Runs:
    """Runs of whole characters of UTF-8 without some ASCII bytes; a token may end within its last character."""
    members = np.ones(256, np.bool_)
    members[list(excluded)] = False
    tokens, start, run_end, end = _runs(vocabulary, head, members)
    data = vocabulary.data
    high = np.append(np.flatnonzero(data >= 128), data.size)
    doubtful = np.flatnonzero(high[np.searchsorted(high, start)] < run_end)
    kept = np.ones(tokens.size, np.bool_)
    for at in doubtful.tolist():
        try:
            text = data[start[at] : run_end[at]].tobytes()
            codecs.utf_8_decode(text, "strict", bool(run_end[at] < end[at]))
        except UnicodeDecodeError:
            kept[at] = False
    return _made(vocabulary, tokens[kept], start[kept], run_end[kept], end[kept])


def _made(
    vocabulary: Vocabulary,
    tokens: NDArray[np.int64],
    start: NDArray[np.int64],
    run_end: NDArray[np.int64],
    end: NDArray[np.int64],
) -> Runs:
    lengths = np.zeros(vocabulary.size, np.int64)
    lengths[tokens] = run_end - start
    is_whole = run_end == end
    made = Runs(tokenset.of_ids(tokens[is_whole], vocabulary.n_words), lengths, longest=int(lengths.max(initial=0)))
    data = vocabulary.data
    others = np.flatnonzero(~is_whole)
    for at in others.tolist():
        token = int(tokens[at])
        run, rest = data[start[at] : run_end[at]].tobytes(), data[run_end[at] : end[at]].tobytes()
        made.rests.add(rest, token)
        made.by_run.setdefault(run, []).append((rest, token))
    return made
