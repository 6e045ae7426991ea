"""Kernels of the FM-index on texts whose suffixes are sorted by Python, against counting in the text itself."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest

from guided.kernels.tokens.fm_index import distinct, locate, narrow, walk_trie
from tests import vocabularies


@dataclass
class Index:
    """A text that ends with its one 0, and the arrays that the kernels take, made symbol by symbol."""

    text: list[int]

    def __post_init__(self):
        n, levels = len(self.text), max(self.text).bit_length()
        self.suffixes = sorted(range(n), key=lambda i: self.text[i:])
        self.before_suffix = [self.text[i - 1] for i in self.suffixes]
        sequence, bits, self.zeros = self.before_suffix, [], np.zeros(levels, np.int64)
        for level in range(levels):
            bit = [symbol >> (levels - 1 - level) & 1 for symbol in sequence]
            bits.append(bit)
            self.zeros[level] = bit.count(0)
            sequence = [s for s, b in zip(sequence, bit) if not b] + [s for s, b in zip(sequence, bit) if b]
        self.words, self.before = packed(bits)
        symbols = range(max(self.text) + 1)
        self.shift = np.array(
            [
                sum(s < symbol for s in self.text) - (sequence.index(symbol) if symbol in sequence else 0)
                for symbol in symbols
            ]
        )
        self.matrix = self.words, self.before, self.zeros

    def rows(self, ngram: list[int]) -> list[int]:
        return [row for row, i in enumerate(self.suffixes) if self.text[i : i + len(ngram)] == ngram]


def packed(rows: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    """The bits 64 a word, with a word more, and the ones before each."""
    n_words = len(rows[0]) // 64 + 1
    words, before = np.zeros((len(rows), n_words), np.uint64), np.zeros((len(rows), n_words), np.int32)
    for row, bits in enumerate(rows):
        for word in range(n_words):
            words[row, word] = sum(bit << at for at, bit in enumerate(bits[64 * word : 64 * word + 64]))
            before[row, word] = sum(bits[: 64 * word])
    return words, before


def random_index(seed: int) -> tuple[random.Random, Index]:
    rnd = random.Random(seed)
    # Lengths around whole words among them.
    n = rnd.choice([1, 5, 62, 63, 64, 127, 200])
    return rnd, Index([rnd.randint(1, rnd.choice([1, 2, 7, 20])) for _ in range(n)] + [0])


@pytest.mark.parametrize("seed", range(12))
def test_a_backward_search_finds_the_rows_of_each_ngram(seed):
    rnd, index = random_index(seed)
    for _ in range(40):
        at = rnd.randrange(len(index.text))
        ngram = index.text[at : at + rnd.randint(1, 5)]
        if rnd.random() < 0.3:
            ngram[rnd.randrange(len(ngram))] = rnd.randint(0, max(index.text))
        low, high = 0, len(index.text)
        for symbol in reversed(ngram):
            low, high = narrow(*index.matrix, index.shift, low, high, symbol)
            if low >= high:
                break
        assert [*range(low, high)] == index.rows(ngram)


@pytest.mark.parametrize("seed", range(12))
def test_distinct_symbols_of_an_interval_are_counted(seed):
    rnd, index = random_index(seed)
    n = len(index.text)
    symbols, counts = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for _ in range(40):
        low, high = sorted(rnd.choices(range(n + 1), k=2))
        first = rnd.randint(0, 3)
        found = distinct(*index.matrix, low, high, first, symbols, counts)
        part = index.before_suffix[low:high]
        expected = [(symbol, part.count(symbol)) for symbol in sorted({*part}) if symbol >= first]
        assert [*zip(symbols[:found].tolist(), counts[:found].tolist())] == expected


@pytest.mark.parametrize("seed", range(12))
def test_rows_are_found_in_the_text(seed):
    rnd, index = random_index(seed)
    marked = [int(i == 0 or rnd.random() < 0.3) for i in index.suffixes]
    words, before = packed([marked])
    samples = np.array([i for i, mark in zip(index.suffixes, marked) if mark], np.int32)
    found = np.zeros(len(marked), np.int64)
    locate(*index.matrix, index.shift, words, before, samples, np.arange(len(marked)), found)
    assert found.tolist() == index.suffixes


@pytest.mark.parametrize("seed", range(12))
def test_tokens_are_kept_whose_bytes_backwards_are_in_the_text(seed):
    rnd = random.Random(seed)
    data = bytes(rnd.choices(b"abcd", k=rnd.choice([3, 40, 200])))
    present = sorted({*data})
    index = Index([present.index(byte) + 1 for byte in data] + [0])
    tokens = sorted(vocabularies.random_tokens(rnd, "abcde", 60, 5))
    vocabulary = vocabularies.of_tokens(tokens)
    trie = vocabulary.trie
    symbol_of = np.full(256, -1, np.int64)
    symbol_of[present] = range(1, len(present) + 1)
    skip = np.zeros(256, np.bool_)
    skip[ord("b")] = seed % 2
    path = np.zeros((3, 8), np.int64)
    row = np.zeros(vocabulary.n_words, np.uint32)
    arrays = trie.byte, trie.end, trie.token_offset, trie.token_ids
    walk_trie(*index.matrix, index.shift, *arrays, symbol_of, 0, len(index.text), skip, path, row)
    found = [token for token in range(len(tokens)) if row[token >> 5] >> (token & 31) & 1]
    kept = [i for i, token in enumerate(tokens) if token[::-1] in data and not skip[token[0]]]
    assert found == kept
