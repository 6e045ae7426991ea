"""Formulas of the text so far, each against a naive one, with its identity."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import strategies as st

from guided.steer.formulas.combining import candidates
from guided.steer.formulas.history import (
    RESISTANCE,
    contrastive_search,
    entropy_bits,
    grad,
    momentum,
    repetitions,
    wants_large,
)
from guided.steer.formulas.layers import entropy
from tests.tolerances import SUMS
from tests.unit.steer.formulas.formula_twin import INF, close, given, rows, same, softmax, weights


@given(st.lists(st.integers(0, 2), max_size=25))
def test_repetitions_against_looking_at_every_ngram(text):
    found = repetitions(np.array(text, np.int64), [0, 1, 2, 3], 5)
    for token in range(4):
        whole = [*text, token]
        length = 0
        for n in range(1, 7):
            if n > len(whole):
                break
            gram = whole[len(whole) - n :]
            if any(text[start : start + n] == gram for start in range(len(text) - n + 1)):
                length = n
        assert found[token] == length, (text, token)


@given(rows(1), st.lists(st.integers(0, 8), min_size=7, max_size=7), st.sampled_from([0.0, 0.2, 5.0]))
def test_momentum(single, lengths, alpha):
    (logits,) = single
    ids = candidates(logits, 4)
    repeated = torch.tensor(lengths)[ids]
    got = momentum(logits, ids, repeated, alpha=alpha)
    for number, row in enumerate(logits.tolist()):
        p = softmax(row)
        scores = {}
        for token in ids[number].tolist():
            if row[token] > -INF:
                barred = lengths[token] > 5
                resistance = 0 if barred else RESISTANCE[lengths[token]]
                scores[token] = (-1 if barred and alpha else 0, p[token] - alpha * resistance)
        best = max(level for level, _ in scores.values())
        for token in range(len(row)):
            wanted = scores[token][1] if token in scores and scores[token][0] == best else -INF
            assert got[number, token].item() == pytest.approx(wanted, abs=SUMS)
    assert torch.equal(momentum(logits, ids, repeated, alpha=0.0).argmax(-1), logits.argmax(-1))


def test_momentum_prefers_the_new_and_keeps_a_sure_token():
    unsure = torch.log(torch.tensor([[0.4, 0.35, 0.25]]))
    ids = candidates(unsure, 3)
    assert momentum(unsure, ids, torch.tensor([[1, 0, 0]])).argmax() == 1
    sure = torch.log(torch.tensor([[0.8, 0.15, 0.05]]))
    assert momentum(sure, ids, torch.tensor([[1, 0, 0]])).argmax() == 0


@given(rows(2), st.sampled_from([0.0, 0.6, 1.0]))
def test_contrastive_search(pair, alpha):
    logits, other = pair
    similarity = torch.tanh(torch.where(other.isneginf(), 0.0, other))
    ids = candidates(logits, 3)
    got = contrastive_search(logits, ids, similarity.gather(-1, ids), alpha=alpha)
    for number, row in enumerate(logits.tolist()):
        p = softmax(row)
        for token in range(len(row)):
            inside = token in ids[number].tolist() and row[token] > -INF
            wanted = (1 - alpha) * p[token] - alpha * similarity[number, token].item() if inside else -INF
            assert got[number, token].item() == pytest.approx(wanted, abs=SUMS)
    one = candidates(logits, 1)
    assert contrastive_search(logits, one, similarity.gather(-1, one)).argmax(-1).tolist() == one[:, 0].tolist()


@given(rows(2), weights)
def test_grad(pair, weight):
    logits, other = pair
    evidence = torch.sigmoid(torch.where(other.isneginf(), 0.0, other))
    wanted = []
    for row, proof in zip(logits.tolist(), evidence.tolist()):
        unsure = -sum(p * math.log(p) for p in softmax(row) if p > 0) / math.log(max(len(row), 2))
        wanted.append(softmax([value + weight * unsure * e for value, e in zip(row, proof)]))
    close(grad(logits, evidence, weight=weight), wanted)
    same(grad(logits, evidence, weight=0.0), logits)
    same(grad(logits, torch.zeros_like(logits), weight=weight), logits)


@given(rows(1))
def test_entropies(single):
    wanted = [-sum(p * math.log2(p) for p in softmax(row) if p > 0) for row in single[0].tolist()]
    np.testing.assert_allclose(entropy_bits(single[0]), wanted, atol=SUMS)
    np.testing.assert_allclose(entropy(single[0])[:, 0] / math.log(2), wanted, atol=SUMS)


def test_switching():
    assert not wants_large([], 5, False, threshold=-1.0, least=0)
    assert wants_large([0.0], 5, False, threshold=-1.0, least=5)
    assert not wants_large([0.0], 4, False, threshold=-1.0, least=5)
    assert not wants_large([9.0, 9.0], 9, True, threshold=INF, least=0)
    assert wants_large([0.0], 1, True, threshold=INF, least=2), "a switch back waits, too"
