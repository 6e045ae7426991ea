"""Shared mask rows: equal content is one array, different content never is, and nothing outlives its holders."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import guided
from guided.constraint.effects.shared_rows import SharedRows


def _row(*words: int) -> np.ndarray:
    return np.asarray(words, np.uint32)


@given(st.integers(1, 5), st.data())
def test_rows_are_one_exactly_when_they_are_equal(n_words, data):
    rows = SharedRows(n_words)
    words = st.lists(st.sampled_from([0, 1, 2, 0x80000000, 0xFFFFFFFF]), min_size=n_words, max_size=n_words)
    given_rows = [_row(*one) for one in data.draw(st.lists(words, max_size=12))]
    kept = [rows.share(row)[1] for row in given_rows]
    for row, one in zip(given_rows, kept, strict=True):
        assert np.array_equal(row, one)
        for other_row, other in zip(given_rows, kept, strict=True):
            assert (one is other) == np.array_equal(row, other_row)
    assert len(rows) == len({row.tobytes() for row in given_rows})


def test_equal_fingerprints_do_not_make_rows_equal(monkeypatch):
    monkeypatch.setattr("guided.constraint.effects.shared_rows.fingerprint", lambda row, weights: 7)
    rows = SharedRows(2)
    one, other = rows.share(_row(1, 2))[1], rows.share(_row(2, 1))[1]
    assert other.tolist() == [2, 1]
    assert rows.share(_row(1, 2))[1] is one


def test_what_is_written_to_a_row_afterwards_is_not_shared():
    rows = SharedRows(1)
    mine = _row(5)
    kept = rows.share(mine)[1]
    mine[0] = 6
    assert kept.tolist() == [5]


def test_a_row_comes_with_its_address(monkeypatch):
    monkeypatch.setattr("guided.constraint.effects.shared_rows.fingerprint", lambda row, weights: 7)
    rows = SharedRows(1)
    kept = [rows.share(_row(5)), rows.share(_row(5)), rows.share(_row(6))]
    assert [place for place, _ in kept] == [row.ctypes.data for _, row in kept]


def test_a_row_that_nobody_holds_is_gone():
    rows = SharedRows(1)
    kept = rows.share(_row(5))[1]
    assert len(rows) == 1
    del kept
    assert len(rows) == 0


def test_a_vocabulary_has_one_table():
    one = guided.Vocabulary.from_tokens([b"x", None], eos_ids=[1])
    other = guided.Vocabulary.from_tokens([b"x", b"y", None], eos_ids=[2])
    assert SharedRows.of(one) is SharedRows.of(one)
    assert SharedRows.of(one) is not SharedRows.of(other)


@pytest.mark.parametrize("n_words", [8, 9])
def test_threads_agree_on_the_row_that_is_kept(n_words):
    rows = SharedRows(n_words)
    found: list[list[np.ndarray]] = [[] for _ in range(4)]
    begin = threading.Barrier(4)

    def work(mine: list[np.ndarray]) -> None:
        begin.wait()
        for value in range(300):
            mine.append(rows.share(np.full(n_words, value % 50, np.uint32))[1])

    threads = [threading.Thread(target=work, args=(mine,)) for mine in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for column in zip(*found, strict=True):
        assert all(one is column[0] for one in column)
    assert len(rows) == 50
