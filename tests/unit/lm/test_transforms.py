"""Temperature and truncation, against a plain twin on small distributions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from guided.errors import GuidedError
from guided.lm import Needs, TableModel, Truncation, next_logits, transformed
from tests.tolerances import DOUBLE


def twin(probabilities, temperature, top_k, top_p, min_p):
    """The same in the order of the definition, one id at a time."""
    p = np.array(probabilities, np.float64)
    if temperature == 0:
        p = (p == p.max()).astype(np.float64)
        return p / p.sum()
    with np.errstate(divide="ignore"):
        p = np.where(p > 0, np.exp(np.log(p) / temperature), 0.0)
    p /= p.sum()
    if top_k is not None:
        least = sorted(p, reverse=True)[:top_k][-1]
        p = np.where(p >= least, p, 0)
        p /= p.sum()
    if top_p < 1:
        total, least = 0.0, 0.0
        for value in sorted(p, reverse=True):
            if total >= top_p:
                break
            total, least = total + value, value
        p = np.where(p >= least, p, 0)
        p /= p.sum()
    if min_p:
        p = np.where(p >= min_p * p.max(), p, 0)
        p /= p.sum()
    return p


# Parts of 64 are exact in binary, so that a sum that reaches the mass is the mass.
parts = st.lists(st.integers(0, 20), min_size=2, max_size=6).filter(any)


@given(
    parts, st.sampled_from([0.0, 0.5, 1.0, 2.0]), st.none() | st.integers(1, 7), st.sampled_from([0.3, 0.77, 0.9, 1.0]),
    st.sampled_from([0.0, 0.11, 0.37, 1.0]),
)  # fmt: skip
def test_order_and_meaning(weights, temperature, top_k, top_p, min_p):
    p = np.array(weights) / sum(weights)
    model = transformed(TableModel.of({}, otherwise=p), temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
    got = next_logits(model, [[0]]).softmax(-1)[0].numpy()
    expected = twin(p, temperature, top_k, top_p, min_p)
    # Masses that meet the bound to the last bit may fall on either side of it.
    if not (abs(np.cumsum(sorted(expected, reverse=True)) - top_p) < 1e-9).any() or top_p == 1:
        reached = np.cumsum(sorted(twin(p, temperature, top_k, 1.0, 0.0), reverse=True))
        if top_p == 1 or (abs(reached - top_p) > 1e-9).all():
            assert got == pytest.approx(expected, abs=DOUBLE)


def test_defaults_are_the_model_itself():
    table = TableModel.random(0)
    assert transformed(table) is table
    rows = transformed(table, top_k=2).start([[0], [1]])
    assert (rows.extend([[1, 2], []])[0].logits > -torch.inf).sum(1).tolist() == [2, 2]
    assert (rows.last.logits > -torch.inf).sum(1).tolist() == [2, 2]


def test_layers_are_left_alone():
    table = TableModel(lambda t: np.log([0.5, 0.25, 0.25]), width=3, layers=[lambda t: np.log([0.2, 0.2, 0.6])])
    scores = transformed(table, top_k=1).start([[0]], Needs(layers=(0,))).last
    assert scores.layers[0].exp()[0].tolist() == pytest.approx([0.2, 0.2, 0.6])
    assert scores.logits[0].tolist() == [math.log(0.5), -math.inf, -math.inf]


def test_the_input_is_not_written_to():
    logits = torch.tensor([1.0, 2.0, 3.0])
    Truncation(temperature=0.5, top_k=1, top_p=0.5, min_p=0.9)(logits)
    assert logits.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    "options",
    [
        {"temperature": -1.0},
        {"temperature": math.nan},
        {"top_k": 0},
        {"top_p": 0.0},
        {"top_p": 1.1},
        {"min_p": -0.1},
        {"min_p": 2},
    ],
)
def test_options_out_of_range(options):
    with pytest.raises(GuidedError, match=next(iter(options))):
        Truncation(**options)
