"""What kernels say of their parameters."""

from __future__ import annotations

import pytest
from numba import types

from guided.kernels.ahead.parameters import Array, Group, Number, parameters, signature
from guided.kernels.data.layout import Machine


def test_numbers_arrays_and_groups():
    assert parameters("long, flag, const bytes, int_rows, (ints, longs), short") == (
        Number(64),
        Number(1),
        Array("uint8", 1, True),
        Array("int32", 2, False),
        Group((Array("int32", 1, False), Array("int64", 1, False))),
        Number(16),
    )


def test_a_group_of_the_layout_is_all_its_arrays():
    (group,) = parameters("Machine")
    assert isinstance(group, Group) and group.of is Machine
    assert len(group.arrays) == len(Machine._fields)
    assert group.arrays[Machine._fields.index("items")] == Array("int64", 1, False)
    (kind,) = signature((group,))
    assert isinstance(kind, types.NamedTuple) and kind.instance_class is Machine


def test_numba_is_told_which_arrays_are_only_read():
    of = signature(parameters("long_words, const long_words, word_rows, flag, const singles, doubles"))
    assert of == (
        types.Array(types.uint64, 1, "C"),
        types.Array(types.uint64, 1, "C", readonly=True),
        types.Array(types.uint32, 2, "C"),
        types.boolean,
        types.Array(types.float32, 1, "C", readonly=True),
        types.Array(types.float64, 1, "C"),
    )


@pytest.mark.parametrize(
    "text", ["longer", "const long", "ints ints", "(long)", "int_row", "const", "(ints", "Nothing"]
)
def test_other_words_are_refused(text):
    with pytest.raises(ValueError, match="is no"):
        parameters(f"long, {text}")
