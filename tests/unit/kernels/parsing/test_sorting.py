"""The compiled sorts of the parser against Python's, which is stable as well."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from guided.kernels.parsing import parser
from guided.kernels.parsing.parser import SHORT
from tests.just_in_time import needs_numba

pytestmark = needs_numba


@njit
def _stable_order(keys, n, order):
    parser.stable_order(keys, n, order)


def stable_order(keys, n):
    order = np.zeros(n, np.int64)
    _stable_order(keys, n, order)
    return order


@njit
def sort_unique(values, n):
    return parser.sort_unique(values, n)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@given(st.data())
def test_equal_keys_keep_their_order(kind, data):
    n = data.draw(st.integers(0, 4 * SHORT))
    keys = np.asarray(data.draw(st.lists(st.integers(0, 20), min_size=n + 3, max_size=n + 3)), kind)
    assert stable_order(keys, np.int64(n)).tolist() == sorted(range(n), key=keys.__getitem__)


@pytest.mark.parametrize("n", [0, 1, 2, SHORT, SHORT + 1, 64, 65, 1000])
def test_lengths_about_the_switch(n):
    keys = np.random.default_rng(n).integers(0, 1 << 40, n)
    assert stable_order(keys, np.int64(n)).tolist() == np.argsort(keys, kind="stable").tolist()


@given(st.data())
def test_each_value_once_in_order_and_nothing_behind_them_is_read(data):
    n = data.draw(st.integers(0, 6 * SHORT))
    many = data.draw(st.sampled_from([3, 100, 1 << 60]))
    values = np.asarray(data.draw(st.lists(st.integers(0, many), min_size=n + 3, max_size=n + 3)), np.int64)
    behind, expected = values[n:].tolist(), sorted(set(values[:n].tolist()))
    assert sort_unique(values, np.int64(n)) == len(expected)
    assert values[: len(expected)].tolist() == expected
    assert values[n:].tolist() == behind


@pytest.mark.parametrize("n", [SHORT - 1, SHORT, SHORT + 1, 4 * SHORT, 4 * SHORT + 1, 13 * SHORT + 1, 20_000])
@pytest.mark.parametrize("turned", [False, True])
def test_long_lists(n, turned):
    values = np.random.default_rng(n).integers(0, 1 << 40, n)
    if turned:
        values = np.sort(values)[::-1].copy()
    expected = np.unique(values)
    assert sort_unique(values, np.int64(n)) == expected.size
    assert values[: expected.size].tolist() == expected.tolist()
