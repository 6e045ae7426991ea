"""The numbers of distinct places against a dictionary."""

from __future__ import annotations

import random

import numpy as np
import pytest

from guided.kernels.masking.places import number_places


@pytest.mark.parametrize("high", [0, 1, 1 << 24, 1 << 61])
def test_places_are_numbered_as_they_come(high):
    seed = random.Random(high)
    at = [seed.randint(0, 40) | seed.choice((0, high)) for _ in range(600)]
    at = [place for place in at for _ in range(seed.choice((1, 1, 3)))]
    wanted = {place: number for number, place in enumerate(dict.fromkeys(at))}
    numbers, examples = np.empty(len(at), np.int32), np.empty(128, np.int32)
    assert number_places(np.array(at), numbers, examples, np.zeros(256, np.int32)) == len(wanted)
    assert numbers.tolist() == [wanted[place] for place in at]
    assert [at[example] for example in examples[: len(wanted)]] == [*wanted]


def test_more_places_than_there_is_room_for():
    at, numbers = np.arange(9, dtype=np.int64) << 40, np.empty(9, np.int32)
    assert number_places(at, numbers, np.empty(9, np.int32), np.zeros(32, np.int32)) == 9
    assert number_places(at, numbers, np.empty(8, np.int32), np.zeros(16, np.int32)) == -1
    assert number_places(at[:0], numbers, np.empty(8, np.int32), np.zeros(16, np.int32)) == 0
