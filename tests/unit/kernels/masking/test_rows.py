"""Fingerprints and comparison of mask rows, and rows copied from many places, against whole numbers of Python."""

from __future__ import annotations

import numpy as np

from guided.kernels.data.addresses import address_rows
from guided.kernels.masking.apply import copy_rows
from guided.kernels.masking.rows import fingerprint, same


def test_a_fingerprint_is_the_weighted_sum_in_61_bits():
    generator = np.random.default_rng(1)
    for n in (1, 7, 16, 33):
        weights = generator.integers(0, 1 << 32, n, np.uint32)
        for row in (
            generator.integers(0, 1 << 32, n, np.uint32),
            np.zeros(n, np.uint32),
            np.full(n, 0xFFFFFFFF, np.uint32),
        ):
            total = sum(int(word) * int(weight) for word, weight in zip(row, weights))
            assert fingerprint(row, weights) == total % (1 << 64) >> 3


def test_rows_are_the_same_only_where_every_word_is():
    row = np.random.default_rng(2).integers(0, 1 << 32, 20, np.uint32)
    assert same(row, row.copy())
    for word in range(row.size):
        for bit in (0, 1, 31):
            other = row.copy()
            other[word] ^= np.uint32(1 << bit)
            assert not same(row, other)


def test_rows_are_copied_from_where_they_lie():
    generator = np.random.default_rng(3)
    sources = [generator.integers(0, 1 << 32, (1, width), np.uint32) for width in (5, 1, 3)]
    addresses = address_rows(sources)
    addresses = np.insert(addresses, 1, 0, axis=0)
    out = np.full((4, 5), 7, np.uint32)
    copy_rows(addresses, out)
    for i, source in ((0, sources[0]), (2, sources[1]), (3, sources[2])):
        assert out[i].tolist() == [*source[0].tolist(), *[7] * (5 - source.size)]
    assert out[1].tolist() == [7] * 5
