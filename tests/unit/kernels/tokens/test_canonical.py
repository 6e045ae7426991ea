"""Kernels of byte-pair encoding, against merges over lists: any table of merges, equal pairs and collisions among them."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from guided.kernels.tokens.canonical import derive, fill_merges, merge_all, stays


class Merges:
    """Random merges of four bytes: as dictionaries, and as the arrays that the kernels take."""

    def __init__(self, rnd: random.Random) -> None:
        self.texts = [b"a", b"b", b"c", b"d"]
        self.pairs: list[tuple[int, int]] = []
        self.made: list[int] = []
        for _ in range(rnd.randint(3, 25)):
            pair = rnd.randrange(len(self.texts)), rnd.randrange(len(self.texts))
            if rnd.random() < 0.1 and self.pairs:
                pair = rnd.choice(self.pairs)
            text = self.texts[pair[0]] + self.texts[pair[1]]
            if len(text) > 9:
                continue
            if text not in self.texts:
                self.texts.append(text)
            self.pairs.append(pair)
            self.made.append(self.texts.index(text))
        # Barely more slots than merges, so that most of them collide.
        slots = np.full(len(self.pairs) + 1, -1, np.int32)
        left, right = (np.array([pair[side] for pair in self.pairs], np.int32) for side in (0, 1))
        fill_merges(left, right, slots)
        self.arrays = left, right, np.array(self.made, np.int32), slots
        self.data = np.frombuffer(b"".join(self.texts), np.uint8)
        self.offsets = np.cumsum([0, *map(len, self.texts)]).astype(np.int64)
        self.byte_ids = np.zeros(256, np.int32)
        self.byte_ids[list(b"abcd")] = range(4)

    def encode(self, symbols: list[int]) -> tuple[list[int], int, int]:
        """The symbols merged, the largest rank of a merge, and the last."""
        late = last = -1
        while True:
            ranks = [
                self.pairs.index(pair) if pair in self.pairs else len(self.pairs)
                for pair in itertools.pairwise(symbols)
            ]
            if min(ranks, default=len(self.pairs)) == len(self.pairs):
                return symbols, late, last
            at = ranks.index(min(ranks))
            last, late = ranks[at], max(late, ranks[at])
            symbols = [*symbols[:at], self.made[last], *symbols[at + 2 :]]

    def bytes_of(self, *tokens: int) -> list[int]:
        return [b"abcd".index(byte) for token in tokens for byte in self.texts[token]]


@pytest.mark.parametrize("seed", range(20))
def test_texts_are_merged_as_lists_are(seed):
    rnd = random.Random(seed)
    merges = Merges(rnd)
    for _ in range(50):
        given = [rnd.randrange(4) for _ in range(rnd.randint(1, 15))]
        symbols, ranks = np.array(given, np.int32), np.zeros(len(given), np.int32)
        n, late, last = merge_all(merges.arrays, symbols, ranks, len(given))
        assert (symbols[:n].tolist(), late, last) == merges.encode(given)


@pytest.mark.parametrize("seed", range(20))
def test_tokens_are_derived_and_stay_apart_as_lists_say(seed):
    merges = Merges(random.Random(seed))
    n = len(merges.texts)
    symbols, ranks = np.zeros(20, np.int32), np.zeros(20, np.int32)
    children, late = np.zeros((n, 2), np.int32), np.zeros(n, np.int32)
    shared = merges.arrays, merges.data, merges.offsets, merges.byte_ids, symbols, ranks
    derive(*shared, children, late)
    for token in range(n):
        merged, latest, last = merges.encode(merges.bytes_of(token))
        assert late[token] == (latest if merged == [token] else -2)
        parts = merges.pairs[last] if merged == [token] and last >= 0 else (-1, -1)
        assert tuple(children[token]) == parts
    for first in range(n):
        for second in range(n):
            whole = merges.encode(merges.bytes_of(first, second))[0]
            assert stays(*shared, first, second) == (whole == [first, second])
