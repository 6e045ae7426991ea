"""Fields that lie side by side in memory are arrays as any others, each entry within one line of the cache."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from typing_extensions import TypeAliasType, TypeVar

from guided.kernels.data.layout import Automaton, Effects, Tokens
from guided.kernels.data.records import grown_records, of_record, records, scalar_of

CASES = [(Automaton, "first"), (Automaton, "low"), (Tokens, "byte"), (Effects, "mask"), (Effects, "exit_low")]


@pytest.mark.parametrize(("group", "name"), CASES)
def test_the_fields_of_an_entry_share_a_line_and_no_byte(group, name):
    size = 33
    made = records(group, name, size)
    assert name in made
    for number, array in enumerate(made.values()):
        assert len(array) == size
        assert not array.any()
        array[:] = number + 1
    for number, (field, array) in enumerate(made.items()):
        assert (array == number + 1).all()
        assert array.strides == (of_record(group, field),)
        assert array.flags.aligned
    for entry in range(size):
        firsts = [array[entry:].ctypes.data for array in made.values()]
        lasts = [array[entry:].ctypes.data + array.itemsize - 1 for array in made.values()]
        assert min(firsts) // 64 == max(lasts) // 64


def test_grown_records_begin_with_what_was_used():
    unset = {name: np.zeros(0, np.int32) for name in Tokens._fields}
    old = Tokens(**{**unset, **records(Tokens, "end", 5)})
    old.end[:] = np.arange(5)
    old.byte[:] = 7
    grown = grown_records(old, "end", 9, 3)
    assert grown["end"].tolist() == [0, 1, 2, 0, 0, 0, 0, 0, 0]
    assert grown["byte"].tolist() == [7, 7, 7, 0, 0, 0, 0, 0, 0]
    assert grown_records(old, "end", 9)["end"].tolist() == [0, 1, 2, 3, 4, 0, 0, 0, 0]


Scalar = TypeVar("Scalar", bound=np.generic)
ALIASES = {
    "spelled out": NDArray,
    "kept": TypeAliasType("Kept", np.ndarray[tuple[int], np.dtype[Scalar]], type_params=(Scalar,)),
}


@pytest.mark.parametrize("alias", ALIASES.values(), ids=ALIASES)
def test_the_scalar_of_an_array_is_found_whether_an_alias_is_kept_or_not(alias):
    assert scalar_of(alias[np.int32]) is np.int32
