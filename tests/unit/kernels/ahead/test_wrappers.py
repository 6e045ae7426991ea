"""How Python calls the kernels of a library: with what they are compiled for, else a `TypeError`."""

from __future__ import annotations

import importlib
import sys
from pkgutil import walk_packages

import numpy as np
import pytest

import guided.kernels
from guided.kernels.ahead import library
from guided.kernels.data.addresses import address, address_rows
from guided.kernels.jit import JUST_IN_TIME

pytestmark = pytest.mark.skipif(JUST_IN_TIME, reason="there is no library: `guided warmup` makes it")


def test_every_kernel_that_python_calls_is_a_function_of_the_library():
    names = [module.name for module in walk_packages(guided.kernels.__path__, "guided.kernels.")]
    modules = [importlib.import_module(name) for name in names if not name.startswith("guided.kernels.ahead")]
    kernels = {value for module in modules for value in vars(module).values() if type(value) is type(len)}
    made = library.loaded()
    assert len(kernels) == sum(name.startswith("guided.") for name in dir(made)) > 60


def same(row, other):
    from guided.kernels.masking.rows import same

    return same(row, other)


def words(*values):
    return np.array(values, np.uint32)


def test_arrays_in_one_piece_are_taken_whatever_their_class():
    class Own(np.ndarray):
        pass

    assert same(words(1, 2), words(1, 2)) is True
    assert same(words(1, 2), words(1, 3)) is False
    assert same(words(1, 2).view(Own), words(1, 2)) is True
    assert same(words(1, 2, 3)[:2], words(1, 2)) is True
    assert same(words(), words()) is True


@pytest.mark.parametrize(
    "other",
    [
        np.array([1, 2], np.int32),
        np.array([1, 2], np.float64),
        np.array([1, 2], object),
        np.array([[1, 2]], np.uint32),
        np.array(1, np.uint32),
        np.arange(4, dtype=np.uint32)[::2],
        np.frombuffer(bytes(8), np.uint32),
        np.frombuffer(bytearray(9), np.uint8)[1:].view(np.uint32),
        [1, 2],
        None,
        5,
    ],
    ids=[
        "int32",
        "float64",
        "object",
        "rows",
        "no dimension",
        "in pieces",
        "read only",
        "not aligned",
        "list",
        "None",
        "5",
    ],
)
def test_other_arguments_are_refused(other):
    with pytest.raises(TypeError, match=r"masking\.rows\.same is compiled for \(words, words\)"):
        same(words(1, 2), other)
    with pytest.raises(TypeError, match="was called with something else"):
        same(other, words(1, 2))


def test_what_is_only_read_may_be_read_only():
    from guided.kernels.tokens.tokenize import fewest_tokens

    vocabulary = guided.Vocabulary.from_tokens([b"a", b"ab", None], eos_ids=[2])
    trie = vocabulary.trie
    text = np.frombuffer(b"aab", np.uint8)
    room = np.zeros((2, 4), np.int32)
    assert fewest_tokens(trie.byte, trie.end, trie.token_offset, trie.token_ids, text, room) == 2
    with pytest.raises(TypeError):
        fewest_tokens(trie.byte, trie.end, trie.token_offset, trie.token_ids, text, np.zeros((2, 4), np.int64))


def test_the_number_of_arguments_is_that_of_the_kernel():
    from guided.kernels.masking.rows import same

    for arguments in ((), (words(1),), (words(1),) * 3):
        with pytest.raises(TypeError, match="is compiled for"):
            same(*arguments)
    with pytest.raises(TypeError):
        same(row=words(1), other=words(1))


def test_numbers_are_python_s_or_numpy_s_and_not_too_large():
    from guided.kernels.tokens.canonical import pair_slot

    keys = np.full(8, -1, np.int64)
    assert pair_slot(keys, 1, 2) == pair_slot(keys, np.int32(1), np.int64(2)) == pair_slot(keys, True, np.uint8(2))
    assert pair_slot(keys, -1, 2) is not None
    with pytest.raises(OverflowError):
        pair_slot(keys, 1 << 63, 2)
    for other in (1.5, "1", None, keys):
        with pytest.raises(TypeError):
            pair_slot(keys, other, 2)


def test_a_truth_value_that_cannot_be_told_is_an_error():
    from guided.kernels.entry import rehash

    with pytest.raises(ValueError, match="truth value"):
        rehash(0, np.zeros(2))


@pytest.mark.parametrize("kind", [np.int16, np.int32, np.int64])
def test_kinds_of_arguments_are_told_apart(kind):
    from guided.kernels.masking.apply import apply_rows

    masks = words(0b10)[None]
    scores, target = np.arange(32, dtype=kind), np.zeros(32, kind)
    places, source, into = address_rows([masks]), address(scores), address(target)
    drops = np.zeros((256, 8), kind)
    assert apply_rows(source, into, 0, 0, places, 32, 0, 1, kind(-7), drops) is None
    assert target.tolist() == [-7, 1, *[-7] * 30]
    with pytest.raises(TypeError, match=r"int, int_rows\) or \(.*short, short_rows\)"):
        apply_rows(source, into, 0, 0, places, 32, 0, 1, kind(-7), drops.astype(np.float64))


def test_groups_are_tuples_of_arrays():
    from guided.kernels.tokens.canonical import fill_merges, merge_all

    left, right, slots = np.array([0], np.int32), np.array([1], np.int32), np.full(4, -1, np.int32)
    assert fill_merges(left, right, slots) is None
    merges = (left, right, np.array([2], np.int32), slots)
    symbols, ranks = np.array([0, 1, 0], np.int32), np.zeros(3, np.int32)
    assert merge_all(merges, symbols, ranks, 3)[0] == 2
    assert symbols[:2].tolist() == [2, 0]
    for other in (list(merges), merges[:3], (*merges, slots), (*merges[:3], None), left):
        with pytest.raises(TypeError, match="is compiled for"):
            merge_all(other, symbols, ranks, 2)


def test_nothing_is_held_or_let_go():
    from guided.kernels.tokens.canonical import fill_merges, pair_slot

    keys, none, place = np.full(8, -1, np.int64), None, 1 << 40
    arrays = np.zeros(1, np.int32), np.zeros(1, np.int32), np.full(4, -1, np.int32)
    before = [sys.getrefcount(each) for each in (keys, none, place, *arrays)]
    for _ in range(2000):
        pair_slot(keys, place, place)
        fill_merges(*arrays)
        with pytest.raises(TypeError):
            fill_merges(keys, *arrays[1:])
    after = [sys.getrefcount(each) for each in (keys, none, place, *arrays)]
    assert max(abs(a - b) for a, b in zip(before, after)) < 50
