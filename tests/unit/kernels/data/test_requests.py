"""Requests as kernels write them: each once, in their order, until the buffer is full."""

from __future__ import annotations

import random

import numpy as np
import pytest
from numba import njit

from guided.constraint.engine.requests import RequestBuffer
from guided.kernels.data.addresses import address, address_rows
from guided.kernels.data.asking import ask
from guided.kernels.data.views import N_ROWS, REQUESTS
from tests.just_in_time import needs_numba

pytestmark = needs_numba


@njit
def _ask(table, kind, first, second, third):
    return ask(table, kind, first, second, third)


@pytest.mark.parametrize("room", [1, 2, 9])
def test_each_is_written_once_until_there_is_no_room(room):
    rnd = random.Random(room)
    buffer = RequestBuffer(room)
    table = np.zeros((N_ROWS, 3), np.int64)
    table[REQUESTS:] = address_rows(buffer.arrays)
    for _ in range(20):
        written: dict[tuple[int, ...], None] = {}
        for _ in range(15):
            request = rnd.randint(1, 3), rnd.randint(-1, 1), rnd.choice((0, 1 << 40)), rnd.randint(0, 1)
            full = len(written) == room
            more = _ask(address(table), *request)
            if full:
                assert not more
                continue
            # A known one needs no room; behind a new one there must be room for another.
            assert more == (request in written or len(written) + 1 < room)
            written[request] = None
            assert buffer.arrays.entries[: len(written)].tolist() == [list(each) for each in written]
            assert buffer.arrays.count[0] == len(written) and buffer.is_full == (len(written) == room)
        by_kind: dict[int, list[list[int]]] = {}
        for kind, *fields in written:
            by_kind.setdefault(kind, []).append(fields)
        assert {kind: sorted(rows) for kind, rows in buffer.take().items()} == {
            kind: sorted(rows) for kind, rows in by_kind.items()
        }
        assert not buffer.arrays.count[0] and not buffer.take()
