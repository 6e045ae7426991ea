"""Frustratingly simple decoding against the published procedures, written plainly, and their identity."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given as given_all
from hypothesis import strategies as st

from guided.lm import TableModel, next_logits
from guided.steer import FSD, FSDVectors, Stack
from guided.steer.formulas.anti_model import anti_ngrams, anti_vectors
from tests.tolerances import SUMS

WIDTH, SIZE = 4, 3
texts = st.lists(st.integers(0, WIDTH - 1), min_size=1, max_size=14)


def ngrams_twin(text, candidate, n, smoothing):
    """As the authors do: a table for each order, built token by token, then read from the longest context down."""
    tables = [{} for _ in range(n)]
    for place, token in enumerate(text):
        for order in range(min(n, place + 1)):
            tables[order].setdefault(tuple(text[place - order : place]), Counter())[token] += 1
    if len(text) < n - 1:
        return 0.0
    left, found = 1.0, 0.0
    for order in reversed(range(n)):
        counts = tables[order].get(tuple(text[len(text) - order :]), Counter())
        if candidate in counts:
            share = (
                counts[candidate] / (counts.total() + 1) * smoothing if order else counts[candidate] / counts.total()
            )
            found += left * share
            left -= left * smoothing
    return found


def vectors_twin(states, text, candidate, n):
    """The greatest cosine of the end with a place that the candidate followed, pair by pair."""
    size = n - 1
    end = np.concatenate(states[len(states) - size :]) if len(states) >= size else None
    best = 0.0
    for stop in range(size, len(states)):
        if text[stop] == candidate:
            place = np.concatenate(states[stop - size : stop])
            best = max(best, float(place @ end) / math.sqrt(float(place @ place) * float(end @ end)))
    return best


@given_all(texts, st.integers(1, 4), st.sampled_from([0.0, 0.5, 0.9, 1.0]))
def test_ngrams(text, n, smoothing):
    found = anti_ngrams(np.array(text), range(WIDTH), n, smoothing)
    assert found == pytest.approx([ngrams_twin(text, token, n, smoothing) for token in range(WIDTH)], abs=SUMS)
    assert all(0 <= value <= 1 + SUMS for value in found)


@given_all(texts, st.integers(2, 4), st.integers(0, 99))
def test_vectors(text, n, seed):
    states = np.random.default_rng(seed).normal(size=(len(text), SIZE))
    found = anti_vectors(torch.tensor(states), text, torch.arange(WIDTH), n, width=WIDTH)
    assert found.tolist() == pytest.approx([vectors_twin(states, text, token, n) for token in range(WIDTH)], abs=SUMS)


def hidden(tokens):
    return np.random.default_rng([len(tokens), *tokens]).normal(size=SIZE)


def scores(tokens):
    return np.random.default_rng([7, *tokens]).normal(size=WIDTH)


@given_all(texts, st.sampled_from([0.0, 0.3, 0.6]))
def test_a_steered_model_scores_what_the_formula_says(text, alpha):
    base = TableModel(scores, width=WIDTH, eos_ids=[WIDTH - 1], hidden=hidden)
    p = torch.softmax(next_logits(base, [text])[0], -1).tolist()
    kept = sorted(range(WIDTH), key=lambda token: (-p[token], token))[:3]
    states = [hidden(tuple(text[: end + 1])) for end in range(len(text))]
    for steerer, penalty in (
        (FSD(alpha, 3, 2, 0.8), lambda token: ngrams_twin(text, token, 2, 0.8)),
        (FSDVectors(alpha, 3, 3), lambda token: vectors_twin(states, text, token, 3)),
    ):
        got = next_logits(Stack([steerer]).over(base), [text])[0]
        wanted = [(1 - alpha) * p[t] - alpha * penalty(t) if t in kept else -math.inf for t in range(WIDTH)]
        assert got.tolist() == pytest.approx(wanted, abs=SUMS)
        if not alpha:
            assert int(got.argmax()) == kept[0]


def test_what_stood_there_before_gives_way_to_the_next_best():
    base = TableModel.of({}, otherwise=[0.55, 0.4, 0.05])
    model = Stack([FSD()]).over(base)
    sequences = model.start([[2]])
    chosen = []
    for _ in range(4):
        chosen.append(int(sequences.last.logits.argmax()))
        sequences.extend([chosen[-1:]])
    assert chosen[:2] == [0, 1], chosen
