"""Rewards: asked in batches and once for each text; failures named, or visible where the caller wants to go on."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from guided.lm import Needs, TableModel, next_logits
from guided.steer import (
    ARGS,
    FUDGE,
    RAD,
    ControlledDecoding,
    ModelReward,
    OnFailure,
    RewardError,
    RewardWarning,
    Stack,
    TextReward,
)
from tests.unit.steer.steering_twin import AMATEUR, BASE, REWARD, agree, alone, text_of, vowels


class Counting:
    """A reward that notes what it was asked."""

    def __init__(self, answer=vowels):
        self.answer = answer
        self.calls = []

    def __call__(self, texts):
        self.calls.append(list(texts))
        return self.answer(texts)


def test_all_rows_are_asked_at_once_and_each_text_once():
    score = Counting()
    reward = TextReward(score, text_of)
    sequences = Stack([RAD(reward, top_k=3)]).over(BASE).start([(1, 2), (1, 2), (3,)])
    sequences.last  # noqa: B018
    assert len(score.calls) == 1 and len(score.calls[0]) == 6 == len(set(score.calls[0]))
    sequences.last  # noqa: B018
    sequences.select([2, 0, 0])
    sequences.last  # noqa: B018
    assert len(score.calls) == 1
    sequences.extend([[1], [2, 3], []])
    assert len(score.calls) == 2 and len(score.calls[1]) == 9


def test_batches_and_the_memo_are_bounded():
    score = Counting()
    reward = TextReward(score, text_of, batch=4, cached=2)
    assert reward.of([(1,), (2,), (3,), (4,), (5,), (1,)]) == vowels(["b", "c", "d", "e", "f", "b"])
    assert [len(call) for call in score.calls] == [4, 1]
    reward.of([(4,), (5,)])
    assert len(score.calls) == 2
    reward.of([(1,)])
    assert len(score.calls) == 3


def test_the_prompt_may_be_left_out():
    score = Counting()
    model = Stack([ARGS(TextReward(score, text_of, prompt=False), top_k=2)]).over(BASE)
    sequences = model.start([(1, 2, 3)])
    sequences.extend([[4, 0]])
    assert {len(text) for call in score.calls for text in call} == {2, 3}
    assert all(text.startswith("e") for call in score.calls for text in call)


def test_excluded_candidates_are_not_asked_about():
    base = TableModel(lambda tokens: [0.0, -np.inf, -np.inf, 1.0], width=4)
    score = Counting()
    got = next_logits(Stack([RAD(TextReward(score, text_of), top_k=4)]).over(base), [(0,)])
    assert sorted(score.calls[0]) == ["aa", "ad"]
    assert got[0].isneginf().tolist() == [False, True, True, False]


def test_no_strength_is_the_model_on_its_candidates():
    for steerer in (
        RAD(REWARD, beta=0.0, top_k=3),
        ARGS(REWARD, weight=0.0, top_k=3),
        ControlledDecoding(REWARD, beta=0.0, top_k=3),
        FUDGE(TextReward(lambda texts: [-1.0] * len(texts), text_of), strength=0.0, top_k=3),
    ):
        plain = next_logits(BASE, [(1, 2)])[0]
        kept = plain.topk(3).indices
        agree(
            next_logits(Stack([steerer]).over(BASE), [(1, 2)])[0],
            torch.full_like(plain, -torch.inf).scatter(0, kept, plain[kept]),
        )


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda texts: 1 / 0, "the reward raised ZeroDivisionError"),
        (lambda texts: [0.5] * (len(texts) - 1), r"returned shape \[2\], not \[3\]"),
        (lambda texts: [[0.5]] * len(texts), r"shape \[3, 1\]"),
        (lambda texts: torch.full((len(texts),), torch.nan), "NaN"),
        (lambda texts: [float("inf")] * len(texts), "inf"),
        (lambda texts: ["good"] * len(texts), "not numbers"),
        (lambda texts: None, "not numbers"),
    ],
)
def test_failures_are_named_or_skipped(answer, says):
    with pytest.raises(RewardError, match=says):
        next_logits(Stack([RAD(TextReward(answer, text_of), top_k=3)]).over(BASE), [(1, 2)])
    reward = TextReward(answer, text_of, on_failure=OnFailure.SKIP)
    model = Stack([RAD(reward, top_k=3)]).over(BASE)
    with pytest.warns(RewardWarning, match=says):
        got = next_logits(model, [(1, 2)])[0]
    assert reward.failures == 1
    agree(got, alone([RAD(REWARD, beta=0.0, top_k=3)], BASE, (1, 2), ()))


def test_a_failure_is_not_remembered():
    broken = [True]

    def score(texts):
        if broken[0]:
            raise OSError("no connection")
        return vowels(texts)

    reward = TextReward(score, text_of, on_failure=OnFailure.SKIP)
    with pytest.warns(RewardWarning, match="no connection"):
        assert reward.of([(1,)]) == [0.0]
    broken[0] = False
    assert reward.of([(0,)]) == vowels(["a"])
    assert reward.of([(1,)]) == vowels(["b"])


def test_fudge_wants_log_probabilities():
    with pytest.raises(RewardError, match="no log-probability"):
        next_logits(Stack([FUDGE(TextReward(lambda texts: [0.5] * len(texts), text_of))]).over(BASE), [(1, 2)])


@pytest.mark.parametrize(
    ("head", "says"),
    [
        (lambda hidden: hidden @ torch.zeros(99), "head raised RuntimeError"),
        (lambda hidden: hidden, r"shape \[3, 5\]"),
        (lambda hidden: hidden[:, 0] * torch.nan, "NaN"),
    ],
)
def test_heads_that_do_not_fit(head, says):
    with pytest.raises(RewardError, match=says):
        next_logits(Stack([RAD(ModelReward(head, AMATEUR), top_k=3)]).over(BASE), [(1, 2)])


def test_a_head_asks_for_hidden_states():
    reward = ModelReward(lambda hidden: hidden[:, 0], AMATEUR)
    assert reward.branch.needs == Needs(hidden=True)
    assert RAD(reward, top_k=7).declare(BASE).candidates.k == 7
