"""`fill_masks` against one row at a time: several constraints, known and new states, arrays and tensors, threads."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest
import torch

import guided
from guided.constraint import pool
from tests.twin.slow_constraint import SlowConstraint

VOCABULARY = guided.Vocabulary.from_tokens(
    [bytes([i]) for i in range(32, 127)] + [b"yes", b"no", b"12", b", ", b"]", None, None], eos_ids=[100]
)
PATTERNS = [r"[a-z]{3,9}", r"\[(\d+(, \d+)*)?\]", r"yes|no|maybe", r"(ab|ba)*c"]


def constraints():
    return [guided.compile(guided.regex(pattern), VOCABULARY) for pattern in PATTERNS]


def one_by_one(owners, states, budgets=None):
    rows = np.zeros((len(owners), VOCABULARY.n_words), np.uint32)
    for i, (owner, state) in enumerate(zip(owners, states, strict=True)):
        if state and budgets is None:
            owner.fill_mask(state, rows[i])
        elif state:
            owner.fill_budget_mask(state, rows[i], budgets[i])
    return rows


def some_states(owners, seed):
    """A random state of each: the dead one and the end included."""
    rng = random.Random(seed)
    states = []
    for owner in owners:
        state = owner.start
        for _ in range(rng.randrange(6)):
            if state in (0, owner.end):
                break
            row = np.zeros(VOCABULARY.n_words, np.uint32)
            owner.fill_mask(state, row)
            allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()
            state = owner.advance(state, rng.choice(allowed))
        states.append(0 if rng.random() < 0.1 else state)
    return states


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("seed", range(5))
def test_every_row_is_its_constraints_mask(seed, threads):
    owners = [random.Random(seed).choice(constraints()) for _ in range(17)]
    states = some_states(owners, seed)
    expected = one_by_one(owners, states)
    for make in (
        lambda: np.full(expected.shape, 0xABCDEF01, np.uint32),
        lambda: np.full(expected.shape, -3, np.int32),
        lambda: torch.full(expected.shape, -3, dtype=torch.int32),
    ):
        out = make()
        guided.fill_masks(owners, states, out, threads=threads)
        assert (np.asarray(out).view(np.uint32) == expected).all()
        again = make()
        guided.fill_masks(owners, states, again, threads=threads)
        assert (np.asarray(again) == np.asarray(out)).all()


def test_fresh_constraints_on_several_threads():
    owners = [guided.Constraint(guided.regex(pattern), VOCABULARY) for pattern in PATTERNS * 8]
    states = [owner.start for owner in owners]
    out = np.zeros((len(owners), VOCABULARY.n_words), np.uint32)
    guided.fill_masks(owners, states, out, threads=4)
    fresh = constraints() * 8
    assert (out == one_by_one(fresh, [owner.start for owner in fresh])).all()


def test_wider_rows_end_in_zeros():
    owner = constraints()[0]
    out = torch.full((3, VOCABULARY.n_words + 2), -1, dtype=torch.int32)
    for _ in range(2):
        guided.fill_masks(owner, [owner.start, 0, owner.end], out)
        assert not out[:, VOCABULARY.n_words :].any() and not out[1].any() and out[0].any()


def test_rows_that_are_part_of_wider_ones():
    owners = constraints()
    states = [owner.start for owner in owners]
    for _ in range(2):  # The second time all rows are remembered.
        wide = np.full((len(owners), 3, 2 * VOCABULARY.n_words + 1), 7, np.uint32)
        guided.fill_masks(owners, states, wide[:, 1, : VOCABULARY.n_words])
        assert (wide[:, 1, : VOCABULARY.n_words] == one_by_one(owners, states)).all()
        assert (wide[:, [0, 2]] == 7).all() and (wide[:, 1, VOCABULARY.n_words :] == 7).all()


def test_budgets():
    owner = constraints()[1]
    state = owner.advance_bytes(owner.start, b"[")
    expected = one_by_one([owner] * 3, [state] * 3, [2, 3, 30])
    assert (expected[0] != expected[2]).any()
    for _ in range(3):  # from the second time on, a budget that forbids nothing is remembered
        out = np.zeros_like(expected)
        guided.fill_masks(owner, [state] * 3, out, budgets=[2, 3, 30])
        assert (out == expected).all()
        guided.fill_masks(owner, [state] * 3, out, budgets=2)
        assert (out == expected[0]).all()
    with pytest.raises(guided.LimitError):
        guided.fill_masks(owner, [state] * 3, expected, budgets=[30, 1, 30], threads=2)


def test_any_implementation_of_the_protocol():
    twin = SlowConstraint(guided.regex(PATTERNS[2]), VOCABULARY)
    owner = constraints()[2]
    out = np.zeros((2, VOCABULARY.n_words), np.uint32)
    guided.fill_masks([twin, owner], [twin.start, owner.start], out)
    assert out[0].any() and (out[0] == out[1]).all()


def test_forgotten_masks_are_made_again():
    limits = guided.Limits(mask_bytes=4 * VOCABULARY.n_words * 6)
    small = guided.Constraint(guided.regex(PATTERNS[1]), VOCABULARY, limits)
    large = guided.Constraint(guided.regex(PATTERNS[1]), VOCABULARY)
    rng = random.Random(4)
    pairs = [(small.start, large.start)]
    for _ in range(300):
        a, b = rng.choice(pairs)
        token = rng.randrange(VOCABULARY.size)
        if large.advance(b, token) > 1:
            pairs.append((small.advance(a, token), large.advance(b, token)))
    for _ in range(3):
        rng.shuffle(pairs)
        out = np.zeros((len(pairs), VOCABULARY.n_words), np.uint32)
        guided.fill_masks(small, [a for a, _ in pairs], out)
        assert (out == one_by_one([large] * len(pairs), [b for _, b in pairs])).all()


def test_what_does_not_fit_is_refused():
    owner = constraints()[0]
    with pytest.raises(guided.VocabularyError, match="too narrow"):
        guided.fill_masks(owner, [owner.start], np.zeros((1, VOCABULARY.n_words - 1), np.uint32))
    with pytest.raises(ValueError, match="1 states for 2 rows"):
        guided.fill_masks(owner, [owner.start], np.zeros((2, VOCABULARY.n_words), np.uint32))
    with pytest.raises(TypeError, match="float64"):
        guided.fill_masks(owner, [owner.start], np.zeros((1, VOCABULARY.n_words)))


def test_the_pool_raises_what_a_thread_raised_and_waits_for_the_others():
    done = []

    def work(low, high):
        done.append((low, high))
        if low:
            raise KeyError(low)

    with pytest.raises(KeyError):
        pool.spread(work, 7, 3)
    assert sorted(done) == [(0, 2), (2, 4), (4, 7)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*")
def test_a_forked_process_has_its_own_pool():
    pool.spread(lambda low, high: None, 4, 2)
    child = os.fork()
    if child == 0:
        seen = []
        pool.spread(lambda low, high: seen.append(low), 4, 2)
        os._exit(0 if sorted(seen) == [0, 2] else 1)
    assert os.waitpid(child, 0)[1] == 0
