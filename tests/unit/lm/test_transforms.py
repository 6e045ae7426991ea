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


def cuts_twin(p, typical_p, epsilon, eta):
    """Locally typical, epsilon and eta sampling as their papers define them, one id at a time."""
    p = np.array(p)
    if typical_p < 1:
        entropy = -sum(x * math.log(x) for x in p if x)
        far = [abs(-math.log(x) - entropy) if x else math.inf for x in p]
        total, least = 0.0, 0.0
        for place in sorted(range(len(p)), key=far.__getitem__):
            if total >= typical_p:
                break
            total, least = total + p[place], far[place]
        p = np.where(np.array(far) <= least, p, 0)
        p /= p.sum()
    if epsilon:
        p = np.where((p >= epsilon) | (p == p.max()), p, 0)
        p /= p.sum()
    if eta:
        p = np.where((p >= min(eta, math.sqrt(eta) * math.exp(-entropy_of(p)))) | (p == p.max()), p, 0)
        p /= p.sum()
    return p


def entropy_of(p):
    return -sum(x * math.log(x) for x in p if x)


CUTS = [
    {"typical_p": 0.2}, {"typical_p": 0.7}, {"epsilon_cutoff": 0.05}, {"epsilon_cutoff": 0.6}, {"eta_cutoff": 0.02},
    {"eta_cutoff": 0.3}, {"typical_p": 0.8, "epsilon_cutoff": 0.03, "eta_cutoff": 0.1},
]  # fmt: skip


@pytest.mark.parametrize("options", CUTS, ids=str)
def test_typical_epsilon_and_eta(options):
    """By the definitions, and as transformers' warpers, on random rows of which some ids are excluded."""
    transformers = pytest.importorskip("transformers")
    rows = torch.tensor(np.random.default_rng(5).normal(size=(40, 12)) * np.linspace(0.1, 4, 40)[:, None])
    rows[::3, :4] = -math.inf
    got = Truncation(**options)(rows)
    ours = torch.softmax(got, -1).numpy()
    for row, found in zip(torch.softmax(rows, -1).numpy(), ours, strict=True):
        wanted = cuts_twin(
            row, options.get("typical_p", 1), options.get("epsilon_cutoff", 0), options.get("eta_cutoff", 0)
        )
        assert found == pytest.approx(wanted, abs=DOUBLE)
    assert 40 <= int((ours > 0).sum()) < int((rows > -math.inf).sum())
    makers = {
        "typical_p": transformers.TypicalLogitsWarper,
        "epsilon_cutoff": transformers.EpsilonLogitsWarper,
        "eta_cutoff": transformers.EtaLogitsWarper,
    }
    theirs = rows
    for name, value in options.items():
        theirs = makers[name](value)(None, theirs)
    assert torch.equal(theirs, got)


def test_ties_at_a_cut_are_kept():
    even = torch.zeros(1, 4)
    for options in ({"typical_p": 0.3}, {"epsilon_cutoff": 0.9}, {"eta_cutoff": 0.9}):
        assert Truncation(**options)(even).tolist() == [[0.0] * 4]


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
        {"typical_p": 0.0},
        {"typical_p": math.nan},
        {"epsilon_cutoff": 1.0},
        {"eta_cutoff": -0.1},
    ],
)
def test_options_out_of_range(options):
    with pytest.raises(GuidedError, match=next(iter(options))):
        Truncation(**options)
