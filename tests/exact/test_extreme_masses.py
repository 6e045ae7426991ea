"""Allowed masses of e^-50 to e^-900, at which weights, counts and float32 end: expectations enumerated, logs compared."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

import guided
from guided.infer import AWRS, Direct, EagerSets, Estimator, TextPredicate, importance, smc, smc_steer
from guided.infer.chance import Pool, chance_of, geometric
from guided.infer.distribution import TokenDistribution, distributions_of
from guided.infer.sequences.cars import Learning, cars
from guided.infer.weights import log_sum_exp
from guided.lm import TableModel, transformed
from guided.testing.enumeration import enumerate_choices
from guided.vocab import Vocabulary
from tests.amounts import crossed, some
from tests.tolerances import DOUBLE, SINGLE, SUMS

VOCABULARY = Vocabulary.from_tokens([b"a", b"b", b"c", b"d", None], eos_ids=[4])
END = 4

MASSES = [(-50.0, -70.0), (-900.0, -905.0), (-50.0, -50.5), (-700.0, -701.0), (-70.0, -71.0)]
"""Log probabilities of two allowed tokens, all others being forbidden."""

LIKELY = 1e-20
"""Choices of less than this probability are left out, below which those of e^-50 lie."""

SAMPLERS = {
    "direct": Direct(),
    "awrs": AWRS(),
    "awrs, never narrowed": AWRS(masks=False, narrow_after=None),
    "recursive": AWRS(estimator=Estimator.RECURSIVE),
    "eager sets": EagerSets(),
}


def scores(allowed):
    """One forbidden token that has next to all, and the two."""
    return np.array([0.0, *allowed, -math.inf, -math.inf])


def either(vocabulary=VOCABULARY):
    return TextPredicate(vocabulary, lambda text: text in ("b", "c"), lambda text: text in ("", "b", "c"))


@pytest.mark.parametrize(
    ("case", "name"),
    crossed([*((each, np.float64) for each in MASSES), ((-95.0, -96.0), torch.float32)], SAMPLERS, share=6),
)
def test_token_samplers_are_properly_weighted(case, name):
    """E[w 1{x = v}] / p(v) = 1 for each allowed token, over every random choice that can be met in practice."""
    allowed, dtype = case
    values = scores(allowed)
    if dtype is torch.float32:
        [distribution] = distributions_of(torch.tensor(values, dtype=torch.float32)[None], 5)
    else:
        distribution = TokenDistribution(values)
    logs = values - log_sum_exp(values)
    potential = either()
    found = {1: 0.0, 2: 0.0}
    total = 0.0
    for probability, draw in enumerate_choices(
        lambda chance: SAMPLERS[name].sample(chance, distribution, potential, potential.start())
    ):
        total += probability
        assert not math.isnan(draw.logw)
        # Nobody lives to see the others, so that nothing may rest on them.
        if draw.logw > -math.inf and probability > LIKELY:
            found[draw.token] += math.exp(math.log(probability) + draw.logw - logs[draw.token])
    assert total == pytest.approx(1, abs=SUMS)
    # Outcomes less likely than `LIKELY` are left out.  Off by 1e-5 with awrs.
    assert found == pytest.approx({1: 1, 2: 1}, abs=1e-4 if "awrs" in name else 1e-6)


@pytest.mark.parametrize(
    ("scale", "way", "allowed"),
    crossed([1.0, 0.2], [smc, importance, smc_steer], [(-10.0, -14.0), *MASSES], share=9),
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_populations_find_the_evidence_and_the_posterior(way, allowed, scale):
    """Logits as they are, and at temperature 0.2; a predicate, so that tokens are drawn and rejected."""

    def row(tokens):
        return scores(allowed) if len(tokens) == 1 else np.array([-2000.0, -2000, -2000, -2000, 0.0])

    model = transformed(TableModel(row, width=5, eos_ids=[END]), temperature=scale)
    logs = scores(allowed) / scale
    logs -= log_sum_exp(logs)
    both = log_sum_exp(logs[1:3])
    share = math.exp(logs[2] - both)
    found = [way(seed, model, (0,), either(), n=16, max_tokens=3) for seed in range(some(30, 2))]
    mean = log_sum_exp([population.log_ml for population in found]) - math.log(len(found))
    # Seeds fix what is drawn: off by 0.08, and single populations by 1.0.
    assert mean == pytest.approx(both, abs=0.5)
    # As above.
    assert all(population.log_ml == pytest.approx(both, abs=2.5) for population in found)
    second = np.mean([population.posterior().get("c", 0.0) for population in found])
    # A mean over 30 populations, with a deviation of up to 0.05.
    assert second == pytest.approx(share, abs=0.15 if share > 0.01 else 0.01)


@pytest.mark.parametrize("learning", [Learning.FAILURES, Learning.MASKS])
def test_what_is_learned_of_a_language_that_the_model_hardly_knows(learning):
    """cars masks the prompt at once, and knows how little that leaves; ars needs to meet each forbidden token once."""
    model = TableModel(
        lambda tokens: scores((-50.0, -51.0)) if len(tokens) == 1 else np.array([-90.0, -90, -90, -90, 0.0]),
        width=5,
        eos_ids=[END],
    )
    constraint = guided.compile(guided.choice(["b", "c"]), VOCABULARY)
    found = cars(0, model, (0,), constraint, n=200, max_tokens=3, learning=learning)
    # Of 200 samples the standard error is 0.07; that of the posterior 0.03.
    assert len(found) == 200 and found.log_ml == pytest.approx(-50 + math.log1p(math.exp(-1)), abs=0.25)
    # As above.
    assert found.posterior()["b"] == pytest.approx(1 / (1 + math.exp(-1)), abs=0.1)


def test_counts_are_geometric_at_every_size():
    """The count of `geometric` is floor(E / -log(1 - p)), and where no float holds it, its logarithm is right."""
    for p in (0.9, 0.5, 0.01, 1e-9):
        width = -math.log1p(-p)
        for count in (0, 1, 2, 7, 1000):
            for share in (1e-6, 0.5, 1 - 1e-6):
                found = geometric((count + share) * width, math.log(p))
                assert found == (pytest.approx(math.log(count), abs=DOUBLE) if count else -math.inf)
    for log_p in (-45.0, -700.0, -800.0, -1e9, -3.4e38):
        assert geometric(2.0, log_p) == pytest.approx(math.log(2) - log_p)
        assert geometric(2.0, log_p, 5) == math.log(5)
    assert geometric(1.0, -math.inf) == math.inf and geometric(1.0, -math.inf, 3) == math.log(3)
    assert geometric(0.0, -1.0) == geometric(50.0, 0.0) == -math.inf


def test_counts_that_are_drawn_have_the_mean_of_theirs():
    """E / p has the mean 1 / p; its logarithm that of an exponential, minus Euler's constant, and deviation 1.28."""
    for log_p in (-30.0, -50.0, -900.0):
        chance = chance_of(3)
        drawn = np.array([chance.failures(log_p, None) + log_p for _ in range(4000)])
        # Four standard errors of 4000 draws; both deviations are about 0.02.
        assert drawn.mean() == pytest.approx(-np.euler_gamma, abs=0.08)
        # As above.
        assert drawn.std() == pytest.approx(math.pi / math.sqrt(6), abs=0.08)


@pytest.mark.parametrize("order", [0, 99])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_pools_know_what_is_left_to_the_last_token(monkeypatch, dtype, order):
    """By every sequence of draws: the chance of each, and what is left after it, against sums of logarithms."""
    monkeypatch.setattr("guided.infer.chance.LONG_SEARCH", order)
    logits = torch.tensor([[0.0, -20.0, -95.0, -101.0]], dtype=dtype)
    [distribution] = distributions_of(logits, 4)
    logs = logits[0].double().numpy() - log_sum_exp(logits[0].double().numpy())

    def empty(chance):
        pool = Pool(chance, distribution)
        drawn = []
        while (token := pool.draw()) is not None:
            drawn.append((token, pool.log_left))
            pool.remove(token)
        assert pool.log_left == -math.inf
        return drawn

    seen = 0
    for probability, drawn in enumerate_choices(empty):
        left = set(range(4))
        expected = 0.0
        for token, log_left in drawn:
            rest = log_sum_exp(logs[sorted(left)])
            assert log_left == pytest.approx(rest, abs=SINGLE)
            expected += logs[token] - rest
            left.remove(token)
        if probability > LIKELY:
            assert not left and math.log(probability) == pytest.approx(expected, abs=SINGLE)
            seen += 1
    assert seen == 4  # the first two in either order, and the last two


def test_every_order_of_a_pool_comes_with_its_probability(monkeypatch):
    monkeypatch.setattr("guided.infer.chance.LONG_SEARCH", 1)
    monkeypatch.setattr("guided.infer.chance.ORDERED", 2)
    p = np.array([0.4, 0.3, 0.2, 0.1])

    def empty(chance):
        pool = Pool(chance, TokenDistribution(np.log(p)))
        drawn = []
        while (token := pool.draw()) is not None:
            drawn.append(token)
            pool.remove(token)
        return tuple(drawn)

    found = {}
    for probability, drawn in enumerate_choices(empty):
        found[drawn] = found.get(drawn, 0.0) + probability
    for order in itertools.permutations(range(4)):
        left, expected = 1.0, 1.0
        for token in order:
            expected *= p[token] / left
            left -= p[token]
        assert found[order] == pytest.approx(expected, abs=DOUBLE)
