"""Groups of arrays in one piece of memory, and the addresses of arrays of all kinds, against numpy's own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from guided.kernels.data.addresses import Block, SharedAddresses, address, address_row, address_rows


class Group(NamedTuple):
    """Arrays of several widths, one of them empty and one shared."""

    bytes: NDArray[np.uint8]
    none: NDArray[np.int32]
    rows: NDArray[np.int64]
    shared: NDArray[np.int32]
    ids: NDArray[np.int32]


def prototype(first: int) -> Group:
    rows = np.arange(6, dtype=np.int64).reshape(3, 2) * first
    return Group(
        np.full(5, first, np.uint8),
        np.zeros(0, np.int32),
        rows,
        np.arange(4, dtype=np.int32),
        np.full(7, first, np.int32),
    )


def test_addresses_are_numpys():
    whole = np.arange(24, dtype=np.int32).reshape(4, 6)
    fixed = whole.copy()
    fixed.flags.writeable = False
    for array in (whole, whole[1:], fixed, whole[:, ::2], np.float64(3) + np.zeros(2)):
        assert address(array) == array.ctypes.data
    assert address_row(whole[1:]) == (whole.ctypes.data + 24, 3, 6)
    assert address_row(np.zeros(0)) == (0, 0, 0)
    assert address_rows([]).shape == (0, 3)


@pytest.mark.parametrize("first", [0, 3])
def test_groups_begin_as_the_prototype_and_share_only_what_is_shared(first):
    given = prototype(first)
    block = Block(given, ["shared"])
    groups = [block.fresh() for _ in range(3)]
    for number, fresh in enumerate(groups):
        group = fresh.group()
        assert group.shared is given.shared and fresh.group() is group and len(fresh) == len(given)
        assert (fresh.rows[:, 1:] == address_rows(given)[:, 1:]).all()
        for array, row, wanted in zip(group, fresh.rows, prototype(first), strict=True):
            assert array.dtype == wanted.dtype and (array == wanted).all()
            assert not array.size or (row[0] == array.ctypes.data and row[0] % 16 == 0)
        for array in (group.bytes, group.rows, group.ids):
            array[...] = 40 + number
    for number, fresh in enumerate(groups):
        assert all(
            (array == 40 + number).all() for array in (fresh.group().bytes, fresh.group().rows, fresh.group().ids)
        )
    assert (given.ids == first).all()


def test_shared_addresses_are_made_anew_for_other_arrays():
    shared = SharedAddresses()
    one, other = (np.zeros(3, np.int32),), (np.zeros(4, np.int32),)
    rows = shared.of(one)
    assert shared.of(one) is rows
    assert shared.of(other).tolist() == [list(address_row(other[0]))]
