"""The compiled sort of the parser against Python's, which is stable as well."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from guided.kernels.parser import SHORT, stable_order


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
