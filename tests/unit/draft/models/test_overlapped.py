"""Drafts that are made while the target verifies: at the same time, thrown away where they do not fit, and lossless."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import guided
from guided.draft import Branching, Chain, Confidence, Fixed, Model, Overlapped, speculate
from guided.errors import UnsupportedError
from guided.lm.table import TableModel

WIDTH = 8


def counting(tokens):
    """The next number, whatever came before the last one."""
    return np.log(np.eye(WIDTH)[(tokens[-1] + 1) % (WIDTH - 1)] + 1e-9)


def sometimes_wrong(tokens):
    return counting([5 * tokens[-1]]) if len(tokens) % 7 == 3 else counting(tokens)


def table(logprobs):
    return TableModel(logprobs, width=WIDTH, eos_ids=[WIDTH - 1])


def test_both_models_run_at_the_same_time():
    """The target's pass does not end before the draft model has begun to draft behind what is being verified."""
    verified_at, behind = [0], threading.Event()
    together = []

    def target(tokens):
        # Of a pass over several positions the last ones wait: the draft is being verified.
        if len(tokens) > verified_at[0] + 3:
            verified_at[0] = len(tokens)
            together.append(behind.wait(10.0))
            behind.clear()
        return counting(tokens)

    def small(tokens):
        if threading.current_thread().name == "guided draft ahead":
            behind.set()
        return counting(tokens)

    drafter = Overlapped(Model(table(small), Chain(3), by_rule=True))
    (text,), counts = speculate(0, table(target), [[0]], [None], drafter, max_tokens=24, greedy=True, policy=Fixed(3))
    assert list(text.tokens) == [n % (WIDTH - 1) for n in range(1, 25)]
    assert len(together) >= 3
    assert all(together)
    assert drafter.misses == 1
    assert drafter.hits >= counts.passes - 2, "the last round drafts nothing"


def test_pre_verify_no_pass_waits_for_a_draft():
    """The target goes on by one token while the first line is drafted, and again where a line was refused."""
    drafted, together = threading.Event(), []

    def target(tokens):
        # The first pass after the prompt does not end before the draft model has been asked for the same place.
        if len(tokens) == 2:
            together.append(drafted.wait(10.0))
        return counting(tokens)

    def small(tokens):
        assert threading.current_thread().name == "guided draft ahead"
        drafted.set()
        return sometimes_wrong(tokens)

    drafter = Overlapped(Model(table(small), Chain(3), by_rule=True), pre_verify=True)
    (text,), counts = speculate(0, table(target), [[0]], [None], drafter, max_tokens=24, greedy=True, policy=Fixed(3))
    assert list(text.tokens) == [n % (WIDTH - 1) for n in range(1, 25)]
    assert together == [True]
    assert counts.tokens == 1 + counts.passes + counts.accepted
    assert counts.passes <= 14
    assert drafter.misses >= 3, "the first line, and those after refusals"
    assert drafter.hits + drafter.misses <= counts.passes


@pytest.mark.parametrize("pre_verify", [False, True])
@pytest.mark.parametrize("small", [counting, sometimes_wrong])
def test_texts_are_those_without_it(small, pre_verify):
    """In batches whose rows hit and miss at different times, under a grammar with forced tokens, and run after run."""
    vocabulary = guided.Vocabulary.from_tokens(
        [*(bytes([97 + i]) for i in range(WIDTH - 1)), None], eos_ids=[WIDTH - 1]
    )
    grammar = guided.compile(guided.regex("([a-g]{4}a?)*"), vocabulary)
    target = table(counting)
    prompts, constraints = [[0], [3, 4], [2]], [None, grammar, grammar]
    plain, _ = speculate(0, target, prompts, constraints, max_tokens=30, greedy=True)
    drafter = Overlapped(Model(table(small), Chain(4), by_rule=True), pre_verify=pre_verify)
    for seed in range(2):
        found, counts = speculate(
            seed, target, prompts, constraints, drafter, max_tokens=30, greedy=True, policy=Fixed(4)
        )
        assert found == plain
        assert counts.accepted > 20
    assert drafter.hits > 5
    assert (drafter.misses > 20) == (small is sometimes_wrong)
    assert drafter._ahead is None or drafter._ahead.thread is None


def test_what_fails_in_the_thread_fails_in_the_run():
    def failing(tokens):
        if threading.current_thread().name == "guided draft ahead":
            raise ZeroDivisionError
        return counting(tokens)

    drafter = Overlapped(Model(table(failing), Chain(2), by_rule=True))
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            speculate(0, table(counting), [[0]], [None], drafter, max_tokens=9, greedy=True, policy=Fixed(2))


def test_what_cannot_be_drafted_ahead_is_refused():
    small = table(counting)
    for model in (
        Model(small, Chain(2)),
        Model(small, Branching((2,)), by_rule=True),
        Model(small, Chain(2, Confidence()), by_rule=True),
    ):
        with pytest.raises(UnsupportedError, match="only lines by rule"):
            Overlapped(model)
