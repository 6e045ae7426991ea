"""Mirostat against the published procedures, written plainly; the contract of models; what it is for."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from guided.errors import GuidedError
from guided.lm import TableModel, next_logits
from guided.lm.mirostat import Mirostat, MirostatCut
from guided.testing import check_language_model
from tests.amounts import crossed, some
from tests.tolerances import SUMS

WIDTH = 9


def zipf_step(logits, bound, how):
    """The authors' procedure: the ids kept, and the surprise of each; sorted, with the exponent by least squares."""
    p = np.exp(logits - np.logaddexp.reduce(logits))
    order = np.argsort(-p, kind="stable")
    sorted_p = p[order][p[order] > 0]
    n = len(sorted_p)
    if n < 3:
        return set(order[:n].tolist()), [-math.log2(x) if x else math.inf for x in p]
    above = below = 0.0
    for i in range(min(n, how.likeliest) - 1):
        t = math.log((i + 2) / (i + 1))
        above += math.log(sorted_p[i] / sorted_p[i + 1]) * t
        below += t * t
    s = above / below
    epsilon = s - 1
    k = round((epsilon * 2**bound / (1 - n ** (-epsilon))) ** (1 / s)) + 1
    return set(order[: min(k, n)].tolist()), [-math.log2(x) if x else math.inf for x in p]


def surprise_step(logits, bound, how):
    """llama.cpp's: cut at the first id that is too surprising, renormalise."""
    p = np.exp(logits - np.logaddexp.reduce(logits))
    order = np.argsort(-p, kind="stable")
    size = next((place for place, token in enumerate(order) if p[token] == 0 or -math.log2(p[token]) > bound), len(p))
    kept = order[: max(size, 1)]
    return set(kept.tolist()), [-math.log2(x / p[kept].sum()) if x else math.inf for x in p]


STEPS = {MirostatCut.ZIPF: zipf_step, MirostatCut.SURPRISE: surprise_step}


def scores(tokens):
    made = np.random.default_rng([3, *tokens]).normal(size=WIDTH) * 2.5
    made[np.random.default_rng([4, *tokens]).random(WIDTH) < 0.15] = -math.inf
    made[0] = 1.0
    return made


MODEL = TableModel(scores, width=WIDTH, eos_ids=[WIDTH - 1])


@given(
    st.lists(st.integers(0, WIDTH - 1), max_size=6), st.sampled_from(list(MirostatCut)), st.sampled_from([0.5, 1.5, 3.0]),
    st.sampled_from([0.1, 1.0]),
)  # fmt: skip
def test_the_published_procedures(text, cut, target, rate):
    how = Mirostat(target, rate, cut, likeliest=6)
    prompt = [1, 2]
    got = how.over(MODEL).start([prompt])
    bound = 2 * target
    for place in range(len(text) + 1):
        logits = scores((*prompt, *text[:place]))
        kept, surprises = STEPS[cut](logits, bound, how)
        wanted = [logits[token] if token in kept else -math.inf for token in range(WIDTH)]
        assert got.last.logits[0].tolist() == pytest.approx(wanted, abs=SUMS)
        assert got.bounds(0)[-1] == pytest.approx(bound, abs=SUMS)
        if place < len(text):
            got.extend([[text[place]]])
            if surprises[text[place]] < math.inf:
                bound -= rate * (surprises[text[place]] - target)
    at_once = how.over(MODEL).start([prompt])
    if text:
        torch.testing.assert_close(at_once.extend([text])[0].logits[-1:], got.last.logits)


@pytest.mark.parametrize("cut", MirostatCut)
def test_the_contract(cut):
    check_language_model(Mirostat(1.0, 0.7, cut).over(TableModel.random(2, width=7)), steps=25)


@pytest.mark.parametrize(("cut", "target"), crossed(MirostatCut, [2.5, 4.0], share=6))
def test_surprise_stays_at_the_target(cut, target):
    """A law falls as Zipf's, shuffled anew after each token: the cut alone decides how surprising texts are."""
    weights = np.log(1 / np.arange(1, 301) ** 1.2)
    model = TableModel(
        lambda tokens: np.random.default_rng([len(tokens), tokens[-1]]).permutation(weights), width=300, eos_ids=[299]
    )
    how, rng = Mirostat(target, 0.2, cut), np.random.default_rng(1)
    sequences = how.over(model).start([[0]])
    surprises = []
    for _ in range(some(400, 2)):
        kept = sequences.last.logits[0]
        token = int(rng.choice(300, p=torch.softmax(kept, -1).numpy()))
        before = next_logits(model, [sequences.tokens(0)])[0] if cut is MirostatCut.ZIPF else kept
        surprises.append(float(torch.logsumexp(before, -1) - before[token]) / math.log(2))
        sequences.extend([[token]])
    # What the errors add up to is how far the bound went: about 1 bit here, which is 0.2 * 400 mean errors.
    assert abs(np.mean(surprises) - target) < 0.1
    free = -sum(np.exp(weights - np.logaddexp.reduce(weights)) * (weights - np.logaddexp.reduce(weights))) / math.log(2)
    assert free > target + 1


def test_edges():
    for flat in (torch.zeros(5), torch.tensor([0.0, 0.0, -math.inf, -math.inf])):
        for cut in MirostatCut:
            kept = Mirostat(3.0, 1.0, cut).kept(flat, 50.0)
            assert torch.equal(kept, flat), "a bound beyond all surprise cuts nothing"
            assert (Mirostat(3.0, 1.0, cut).kept(flat, -4.0) > -math.inf).any()
    sure = torch.tensor([50.0, 0.0, 0.0])
    assert Mirostat(cut=MirostatCut.SURPRISE).kept(sure, 0.0).tolist() == [50.0, -math.inf, -math.inf]
    with pytest.raises(GuidedError, match="into its prompt of 2"):
        Mirostat().over(MODEL).start([[1, 2]]).crop([1])
    for options in ({"target": -1.0}, {"rate": math.nan}, {"likeliest": 1}):
        with pytest.raises(GuidedError, match=next(iter(options))):
            Mirostat(**options)
    assert next_logits(Mirostat(9.0, cut=MirostatCut.SURPRISE).over(MODEL), [[1]])[0].tolist() == scores((1,)).tolist()
