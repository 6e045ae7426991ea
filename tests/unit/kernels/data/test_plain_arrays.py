"""The arrays that kernels see count nothing from the end, and a line of a row says which of its words are filled."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest
from numba import njit

import guided
from guided.kernels.data import views
from guided.kernels.data.addresses import address, address_rows
from guided.kernels.data.layout import Extra
from guided.kernels.masking.rows import LINE, filled_words
from tests.just_in_time import needs_numba

pytestmark = needs_numba

SOURCES = sorted(
    path for path in (Path(guided.__file__).parent / "kernels").rglob("*.py") if path.parent.name != "ahead"
)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_no_kernel_counts_from_the_end(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Subscript):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            assert not any(isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub) for part in parts)


@njit
def _swap(t, i, j):
    rows = views.rows(t)
    counters = views.counters(t)
    row = rows[i]
    rows[j, 1] |= row[0]
    row[:] = 0
    rows[j, 2:] = np.uint32(7)
    counters[j] += counters[i]
    return row.shape[0]


def test_arrays_of_a_table_are_read_and_written_as_numpy_does():
    rows = np.arange(12, dtype=np.uint32).reshape(3, 4)
    counters = np.arange(5)
    table = np.zeros((views.N_ROWS, 3), np.int64)
    for name, array in (("rows", rows), ("counters", counters)):
        table[views.EXTRA + Extra._fields.index(name)] = address_rows([array])[0]
    assert _swap(address(table), 1, 2) == 4
    assert rows.tolist() == [[0, 1, 2, 3], [0, 0, 0, 0], [8, 9 | 4, 7, 7]]
    assert counters.tolist() == [0, 1, 3, 3, 4]


@njit
def _filled(row, first):
    return filled_words(row, first)


def test_filled_words_of_a_line():
    generator = np.random.default_rng(5)
    for _ in range(50):
        row = generator.integers(0, 1 << 32, 3 * LINE, np.uint32)
        row[generator.random(row.size) < 0.5] = 0
        for first in range(2 * LINE + 1):
            wanted = sum(1 << i for i in range(LINE) if row[first + i])
            assert _filled(row, first) == wanted
