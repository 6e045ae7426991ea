"""Prices of tokens as one comparison, against dictionaries."""

from __future__ import annotations

import numpy as np
import pytest

from guided.constraint.spelling.survivor_prices import TokenPrices, distinct_pairs


@pytest.mark.parametrize("spread", [1, 3, 254, 255, 256, 300, 70_000])
def test_rows_of_what_costs_no_more(spread):
    rng = np.random.default_rng(spread)
    n_words = 4_000 if spread > 300 else 40
    prices = rng.integers(0, spread, 32 * n_words)
    priced = rng.integers(0, 2**32, n_words, dtype=np.uint32)
    found = TokenPrices.of(prices, priced)
    bits = np.unpackbits(priced.view(np.uint8), bitorder="little").astype(bool)
    assert found.distinct.tolist() == sorted(set(prices[bits].tolist()))
    for limit in {0, 1, spread // 2, spread - 2, spread - 1, spread, 10**9}:
        row = found.at_most(limit)
        left = priced if row is None else priced & row
        expected = np.packbits(bits & (prices <= limit), bitorder="little").view(np.uint32)
        assert (left == expected).all()
        assert (row is None) == bool((prices[bits] <= limit).all())


def test_no_token_has_a_price():
    found = TokenPrices.of(np.full(64, 7), np.zeros(2, np.uint32))
    assert found.distinct.size == 0 and found.at_most(0) is None


def test_pairs_are_counted_once():
    rng = np.random.default_rng(0)
    for n, most in ((1, 1), (50, 3), (5_000, 40), (300, 20_000)):
        first, second = (rng.integers(0, most, n).astype(np.int32) for _ in range(2))
        pairs, which = distinct_pairs(first, second)
        assert sorted(pairs) == sorted(set(zip(first.tolist(), second.tolist(), strict=True)))
        assert [pairs[i] for i in which] == list(zip(first.tolist(), second.tolist(), strict=True))
