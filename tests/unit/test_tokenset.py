"""Packed sets of token ids against Python's sets, and that nobody else handles their bits by hand."""

from __future__ import annotations

import random
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import guided
from guided import tokenset

PACKAGE = Path(guided.__file__).parent
SIZE = 100
IDS = st.sets(st.integers(0, SIZE - 1))

BY_HAND = re.compile(r">> ?5\b|\bunpackbits|\bpackbits|& 31\b|bitwise_count|bitwise_(or|and)\.at|\+ 31\) ?// ?32")
OTHER_BITS = {"automata/rules/composites.py", "monitor/fm_index.py"}
"""Files with packed bits that are no tokens."""


def row_of(ids):
    return tokenset.of_ids(ids, tokenset.n_words(SIZE))


@given(IDS, IDS)
def test_rows_are_sets(one, other):
    row, tokens = row_of(one), np.array(sorted(other), np.int32)
    assert tokenset.ids(row).tolist() == sorted(one)
    assert tokenset.count(row) == len(one)
    assert tokenset.flags(row, SIZE).tolist() == [token in one for token in range(SIZE)]
    assert (tokenset.of_flags(tokenset.flags(row, SIZE)) == row).all()
    assert tokenset.are_in(row, tokens).tolist() == [token in one for token in tokens.tolist()]
    less = tokenset.without(row, tokens)
    assert tokenset.ids(less).tolist() == sorted(one - other)
    assert tokenset.ids(row).tolist() == sorted(one), "a copy"
    tokenset.add_all(less, tokens)
    assert tokenset.ids(less).tolist() == sorted(one | other)


@given(IDS, st.integers(0, SIZE - 1))
def test_one_id(ids, token):
    row = row_of(ids)
    assert tokenset.contains(row, token) == (token in ids)
    tokenset.add(row, token)
    assert tokenset.contains(row, token) and tokenset.count(row) == len(ids | {token})
    tokenset.remove(row, token)
    assert tokenset.ids(row).tolist() == sorted(ids - {token})


@given(IDS, st.integers(0, 5))
def test_the_first_ids(ids, most):
    assert tokenset.first_ids(row_of(ids), most).tolist() == sorted(ids)[:most]


def test_several_rows():
    rows = np.stack([row_of([0, 99]), row_of([])])
    assert tokenset.flags(rows, SIZE).shape == (2, SIZE)
    assert [np.flatnonzero(flags).tolist() for flags in tokenset.flags(rows, SIZE)] == [[0, 99], []]


def test_the_contract_of_bits():
    assert row_of([33, 63]).tolist() == [0, 1 << 1 | 1 << 31, 0, 0]


def by_hand(text: str) -> list[str]:
    """The lines of a file that handle the bits of rows, docstrings of one line and comments aside."""
    return [line for line in text.splitlines() if BY_HAND.search(re.sub(r"``[^`]*``", "", line))]


def test_no_bits_by_hand():
    found = {path.relative_to(PACKAGE).as_posix(): by_hand(path.read_text()) for path in PACKAGE.rglob("*.py")}
    found = {name: lines for name, lines in found.items() if lines and not name.startswith("kernels/")}
    assert set(found) == {"tokenset.py", *OTHER_BITS}, found


@pytest.mark.parametrize(
    "line", ["row[token >> 5] |= 1", "np.unpackbits(row)", "np.zeros((size + 31) // 32, np.uint32)"]
)
def test_bits_by_hand_are_found(line):
    assert by_hand(line) == [line]


def test_unions_and_differences_are_those_of_sets():
    rng = random.Random(5)
    for _ in range(300):
        several = [[rng.randrange(40) for _ in range(rng.choice((0, 0, 1, 3, 30)))] for _ in range(rng.randint(1, 3))]
        arrays = [np.asarray(some, np.int64) for some in several]
        kept = [array.copy() for array in arrays]
        all_of = tokenset.union(*arrays)
        assert all_of.tolist() == sorted({token for some in several for token in some})
        assert tokenset.difference(all_of, arrays[0]).tolist() == sorted(set(all_of.tolist()) - set(several[0]))
        assert all((array == before).all() for array, before in zip(arrays, kept, strict=True))
