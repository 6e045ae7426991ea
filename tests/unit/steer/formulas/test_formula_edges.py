"""What holds for every formula: ties, excluded tokens, empty rows, dtypes, and inputs that are not written to."""

from __future__ import annotations

import pytest
import torch
from hypothesis import strategies as st

from guided.steer.formulas.combining import candidates, nucleus, plausible
from guided.steer.formulas.contrast import contrastive, contrastive_reasoning, dexperts, proxy_tuning
from guided.steer.formulas.experts import mixture, product
from guided.steer.formulas.history import contrastive_search, grad, momentum
from guided.steer.formulas.layers import decore, dola, dynamic_focus, layers_over_layers
from guided.steer.formulas.masked import masked_softmax
from guided.steer.formulas.prompts import (
    classifier_free,
    context_aware,
    instructive,
    prefix_adaptive,
    self_debiasing,
)
from guided.steer.formulas.rewards import args, arm, controlled, fudge, rad
from tests.unit.steer.formulas.formula_twin import INF, close, given, rows, same, softmax


@given(rows(1), st.integers(1, 9))
def test_candidates_are_the_likeliest_and_lower_ids_win_ties(single, k):
    for row, ids in zip(single[0].tolist(), candidates(single[0], k).tolist()):
        assert ids == sorted(range(len(row)), key=lambda token: (-row[token], token))[:k]


def test_candidates_do_not_depend_on_the_batch():
    row = torch.zeros(1, 1000)
    assert torch.equal(candidates(row.expand(5, -1), 7), candidates(row, 7).expand(5, -1))


def test_plausible_keeps_a_least_number():
    logits = torch.tensor([[5.0, 1.0, 0.0, 0.0]])
    assert plausible(logits, 0.5).tolist() == [[True, False, False, False]]
    assert plausible(logits, 0.5, min_tokens_to_keep=2).tolist() == [[True, True, False, False]]
    assert plausible(logits, 0.5, min_tokens_to_keep=3).tolist() == [[True] * 4], "ties stay together"
    assert plausible(logits, 0.0).all()
    assert nucleus(torch.zeros(1, 4), 0.1).all(), "ties stay together"
    assert nucleus(logits, 0.0).tolist() == [[True, False, False, False]]


def test_a_model_that_excludes_everything_gives_no_nan():
    empty = torch.full((2, 3), -INF)
    some = torch.tensor([[0.0, 1.0, -INF], [-INF, -INF, 2.0]])
    for got in (
        contrastive(empty, some),
        contrastive_reasoning(empty, some),
        product(some, [empty], [1, 1]),
        classifier_free(empty, some),
        mixture(empty, [empty], [1, 1]),
        decore(empty, some),
        dynamic_focus(empty, some[None]),
        dola(empty, torch.stack([some, empty])),
        self_debiasing(empty, [some]),
        grad(empty, torch.zeros_like(empty)),
    ):
        assert got.isneginf().all()
    assert masked_softmax(some, torch.zeros_like(some, dtype=torch.bool)).isneginf().all()


def test_an_amateur_that_excludes_what_the_expert_says():
    expert, amateur = torch.tensor([[1.0, 1.0, 0.5]]), torch.tensor([[0.0, -INF, -INF]])
    got = contrastive_reasoning(expert, amateur, alpha=0.0, beta=0.5)
    assert got.isneginf().tolist() == [[True, False, False]], "the limit of an amateur that is ever surer"
    assert softmax(got[0].tolist()) == pytest.approx(softmax([-INF, 1.5, 0.75]))


def test_what_is_not_plausible_does_not_win_by_an_amateur_that_excludes_it():
    logits, amateur = torch.tensor([[0.0, -5.0, -INF]]), torch.tensor([[-1.0, -INF, -INF]])
    for got in (
        contrastive(logits, amateur, alpha=0.1),
        contrastive_reasoning(logits, amateur, alpha=0.1),
        dexperts(logits, torch.zeros_like(logits), amateur, top_p=0.9),
        dola(logits, amateur[None], relative_top=0.1),
    ):
        assert got.isneginf().tolist() == [[False, True, True]]


def test_what_comes_in_excluded_stays_excluded():
    logits, other = torch.tensor([[0.0, -INF]]), torch.tensor([[-INF, 0.0]])
    for got in (
        contrastive(logits, other),
        proxy_tuning(logits, other, logits),
        context_aware(logits, other),
        classifier_free(logits, other, scale=0.0),
        instructive(logits, other),
        prefix_adaptive(logits, other, alpha=2.0),
        decore(logits, other),
    ):
        assert got[0, 1] == -INF


def test_masked_softmax_is_renormalisation():
    logits = torch.randn(3, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    allowed = torch.tensor([[True, False, True, True, False]] * 3)
    p = torch.softmax(logits, -1) * allowed
    wanted = (p / p.sum(-1, keepdim=True)).tolist()
    close(masked_softmax(logits, allowed), wanted)
    for temperature in (0.5, 2.0):
        cooled = torch.log(torch.tensor(wanted, dtype=torch.float64)) / temperature
        same(masked_softmax(logits / temperature, allowed), cooled)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 50])
def test_dtype_shape_and_inputs_are_kept(dtype, width):
    generator = torch.Generator().manual_seed(1)
    a, b, c = (torch.randn(3, width, generator=generator).to(dtype) for _ in range(3))
    ids = candidates(a, 4)
    values = b.gather(-1, ids)
    before = [each.clone() for each in (a, b, c)]
    results = [
        contrastive(a, b),
        contrastive_reasoning(a, b),
        dexperts(a, b, c),
        proxy_tuning(a, b, c),
        mixture(a, [b], [1, 1]),
        product(a, [b], [1, 1]),
        context_aware(a, b),
        classifier_free(a, b),
        instructive(a, b),
        prefix_adaptive(a, b, alpha=-1.0),
        self_debiasing(a, [b, c]),
        dola(a, torch.stack([b, c])),
        layers_over_layers(a, b, c, b),
        decore(a, b),
        dynamic_focus(a, torch.stack([b, c])),
        rad(a, ids, values),
        args(a, ids, values),
        fudge(a, ids, values),
        controlled(a, ids, values),
        arm(a, b, top_k=None),
        momentum(a, ids, torch.zeros_like(ids)),
        contrastive_search(a, ids, values),
        grad(a, b.sigmoid()),
        masked_softmax(a, b > 0),
    ]
    for got in results:
        assert got.dtype == dtype and got.shape == a.shape and not torch.isnan(got).any()
        assert got.data_ptr() != a.data_ptr()
    assert all(torch.equal(x, y) for x, y in zip(before, (a, b, c)))
