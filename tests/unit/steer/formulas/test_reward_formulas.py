"""Formulas of rewards, each against a naive one, with its identity."""

from __future__ import annotations

import torch
from hypothesis import strategies as st

from guided.steer.formulas.combining import candidates
from guided.steer.formulas.rewards import args, arm, controlled, fudge, rad
from tests.unit.steer.formulas.formula_twin import (
    INF,
    close,
    given,
    logs,
    naive_sum,
    restricted,
    rows,
    same,
    softmax,
    weights,
)


@given(rows(2), st.integers(1, 8), weights)
def test_rewards_on_candidates(pair, k, strength):
    logits, values = pair
    values = torch.where(values.isneginf(), 0.5, values)
    ids = candidates(logits, k)
    rewards = values.gather(-1, ids)

    def naive(row, worth, scale):
        order = sorted(range(len(row)), key=lambda token: (-row[token], token))[:k]
        return softmax(
            [
                row[token] + (scale * worth[token] if scale else 0) if token in order else -INF
                for token in range(len(row))
            ]
        )

    own, worth = logits.tolist(), values.tolist()
    close(
        rad(logits, ids, rewards, beta=strength),
        [naive(a, [min(max(value, 0), 1) for value in b], strength) for a, b in zip(own, worth)],
    )
    close(args(logits, ids, rewards, weight=strength), [naive(a, b, strength) for a, b in zip(own, worth)])
    close(controlled(logits, ids, rewards, beta=strength), [naive(a, b, strength) for a, b in zip(own, worth)])
    negative = rewards - 30
    close(
        fudge(logits, ids, negative, strength=strength),
        [naive(a, [value - 30 for value in b], strength) for a, b in zip(own, worth)],
    )
    same(controlled(logits, candidates(logits, 99), values.gather(-1, candidates(logits, 99)), beta=0.0), logits)


def test_rewards_of_minus_infinity_exclude_and_do_not_revive():
    logits = torch.tensor([[1.0, 2.0, -INF]])
    ids = candidates(logits, 3)
    assert ids.tolist() == [[1, 0, 2]]
    got = fudge(logits, ids, torch.tensor([[-INF, -1.0, 0.0]]))
    assert softmax(got[0].tolist()) == [1.0, 0.0, 0.0]
    assert fudge(logits, ids, torch.full((1, 3), -INF), strength=0.0).isfinite().tolist() == [[True, True, False]]


@given(rows(2), weights, st.sampled_from([None, 1, 3]))
def test_arm(pair, beta, k):
    logits, rewards = pair
    kept = None
    if k is not None:
        kept = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, candidates(logits, k), True)
    got = arm(logits, rewards, beta=beta, top_k=kept)
    for number, (row, worth) in enumerate(zip(logits.tolist(), rewards.tolist())):
        order = sorted(range(len(row)), key=lambda token: (-row[token], token))[:k]
        wanted = restricted(naive_sum([(1, logs(row)), (beta, worth)]), [token in order for token in range(len(row))])
        if sum(wanted):
            close(got[number : number + 1], [wanted])
    same(arm(logits, rewards, beta=0.0, top_k=None), logits)
