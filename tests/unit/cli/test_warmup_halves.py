"""The second process of `guided warmup`: what of its cache is taken over, and that both halves run."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from guided.cli import kernel_calls
from guided.cli.warmup import _adopt

INDEX = "masks.fill-309.py311.nbi"
CODES = ("masks.fill-309.py311.1.nbc", "masks.fill-309.py311.2.nbc")


@pytest.fixture
def compiled_elsewhere(tmp_path) -> Path:
    folder = tmp_path / "other" / "kernels_0123"
    folder.mkdir(parents=True)
    for name in (INDEX, *CODES):
        (folder / name).write_bytes(name.encode())
    (folder / "masks.fill_more-400.py311.1.nbc").write_bytes(b"another kernel")
    return folder / INDEX


def test_code_and_index_of_a_kernel_are_taken_over(tmp_path, compiled_elsewhere):
    ours = tmp_path / "ours"
    assert _adopt(compiled_elsewhere, ours, time.time())
    assert sorted(path.name for path in ours.iterdir()) == sorted([INDEX, *CODES])
    assert all((ours / name).read_bytes() == name.encode() for name in (INDEX, *CODES))


def test_a_kernel_of_our_own_stays(tmp_path, compiled_elsewhere):
    ours = tmp_path / "ours"
    ours.mkdir()
    (ours / INDEX).write_bytes(b"ours")
    assert not _adopt(compiled_elsewhere, ours, time.time())
    assert [path.name for path in ours.iterdir()] == [INDEX]
    assert (ours / INDEX).read_bytes() == b"ours"


@pytest.mark.parametrize(("age", "taken"), [(3600, True), (-3600, False)])
def test_old_code_without_an_index_is_replaced_and_new_code_is_not(tmp_path, compiled_elsewhere, age, taken):
    ours = tmp_path / "ours"
    ours.mkdir()
    left = ours / CODES[0]
    left.write_bytes(b"left over")
    began = time.time()
    os.utime(left, (began - age, began - age))
    assert _adopt(compiled_elsewhere, ours, began) is taken
    assert left.read_bytes() == (CODES[0].encode() if taken else b"left over")
    assert (ours / INDEX).exists() is taken


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path, compiled_elsewhere):
    blocked = tmp_path / "file"
    blocked.write_bytes(b"")
    assert not _adopt(compiled_elsewhere, blocked / "below", time.time())


@pytest.mark.parametrize("half", [kernel_calls.masks, kernel_calls.steps])
def test_each_half_runs_by_itself(half):
    half()


def test_the_kernels_of_an_index_are_called():
    from guided.kernels import fm_index

    kernel_calls._index(kernel_calls._vocabulary())
    for name in fm_index.__all__:
        assert getattr(fm_index, name).signatures, name
