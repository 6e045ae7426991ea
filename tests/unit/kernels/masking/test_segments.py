"""The hash of kept segments against a dictionary, full to its last slots."""

from __future__ import annotations

import random
from typing import NamedTuple

import numpy as np
import pytest
from numba import njit

from guided.kernels.masking.segments import PRICED, WALK, slot_of
from tests.just_in_time import needs_numba

pytestmark = needs_numba


class Hash(NamedTuple):
    """What of the segments the hash reads."""

    hash_slot: np.ndarray
    key: np.ndarray


@njit
def _slot(segments, key):
    return slot_of(segments, key)


@pytest.mark.parametrize("size", [7, 64])
def test_each_key_is_found_again(size):
    rnd = random.Random(size)
    segments = Hash(np.full(size, -1, np.int32), np.zeros(size, np.int64))
    known: dict[int, int] = {}
    while len(known) < size - 1:
        key = rnd.choice((0, WALK, PRICED)) | rnd.randrange(1 << 4) << 32 | rnd.randrange(4)
        slot = _slot(segments, key)
        if key in known:
            assert segments.hash_slot[slot] == known[key]
        else:
            assert segments.hash_slot[slot] == -1
            known[key] = segments.hash_slot[slot] = len(known)
            segments.key[known[key]] = key
    assert all(segments.hash_slot[_slot(segments, key)] == number for key, number in known.items())
