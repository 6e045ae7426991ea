"""Drawing from prepared distributions: shares of tokens, what is left, and chances far below float64's smallest."""

from __future__ import annotations

import itertools
import math
from unittest import mock

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from guided.errors import GuidedError
from guided.infer import chance
from guided.infer.chance import Pool, chance_of
from guided.infer.distribution import BLOCK, TokenDistribution, distributions_of
from guided.infer.weights import effective_sample_size, log_mean_exp, log_one_minus_exp, log_sum_exp, normalised
from tests.amounts import crossed, some
from tests.tolerances import DOUBLE, SINGLE, SUMS


@given(st.lists(st.sampled_from([0.0, 1e-300, 1e-9, 0.5, 1.0, 3.0]), min_size=1, max_size=600), st.integers(0, 99))
def test_shares_invert_the_running_sums(weights, seed):
    weights = np.array(weights)
    with np.errstate(divide="ignore"):
        distribution = TokenDistribution(np.log(weights))
    if not weights.any():
        assert distribution.sum == 0 and distribution.log_mass == -math.inf
        return
    ends = weights.cumsum()
    shares = np.sort(np.append(np.random.default_rng(seed).random(30), [0.0, 1 - 2**-53]))
    found = [distribution.find(share) for share in shares.tolist()]
    assert all(weights[token] > 0 for token in found)
    for token, share in zip(found, shares.tolist(), strict=True):
        at = share * ends[-1]
        slack = 1e-12 * ends[-1]
        assert ends[token] - weights[token] - slack <= at <= ends[token] + slack


def test_only_without_and_pruned():
    rng = np.random.default_rng(3)
    scores = rng.normal(size=1000) * 5
    p = np.exp(scores - log_sum_exp(scores))
    distribution = TokenDistribution(scores)
    allowed = rng.random(1000) < 0.3
    some = distribution.only(allowed)
    assert math.exp(some.log_mass) == pytest.approx(p[allowed].sum(), rel=DOUBLE)
    assert math.exp(some.only(np.arange(1000) < 500).log_mass) == pytest.approx(
        p[allowed & (np.arange(1000) < 500)].sum()
    )
    removed = np.flatnonzero(allowed)[:50]
    left = some.without(removed.tolist())
    assert math.exp(left.log_mass) == pytest.approx(p[allowed].sum() - p[removed].sum(), rel=DOUBLE)
    assert left.logprob(int(removed[0])) == -math.inf == some.logprob(int(np.flatnonzero(~allowed)[0]))
    np.testing.assert_allclose(np.exp(some.logprobs), np.where(allowed, p, 0), rtol=DOUBLE)
    silent = np.flatnonzero(~allowed)
    assert distribution.pruned(allowed, silent) is distribution.pruned(allowed, silent)
    np.testing.assert_array_equal(distribution.pruned(allowed, silent).scores, some.scores)
    assert distribution.pruned(allowed, silent).log_mass == some.log_mass
    nothing = np.zeros(1000, np.bool_)
    assert distribution.pruned(nothing, np.arange(1000)).log_mass == -math.inf
    assert some.pruned(~allowed, np.flatnonzero(allowed)).log_mass == -math.inf
    for each in (distribution, some, TokenDistribution(scores * 10), TokenDistribution(np.full(7, -math.inf))):
        highest = each.weights.max() / each.weights.sum() if each.weights.any() else 0.0
        for share in (0.51, highest, np.nextafter(highest, 1)):
            assert share <= 0.5 or each.has_share(share) == (each.weights.max() >= share * each.sum > 0)


def test_what_underflows_is_still_there():
    scores = np.array([0.0, -900.0, -901.0, -math.inf])
    distribution = TokenDistribution(scores)
    rest = distribution.only(np.array([False, True, True, True]))
    assert rest.log_mass == pytest.approx(-900 + math.log1p(math.exp(-1)))
    pool = Pool(chance_of(0), distribution)
    assert pool.draw() == 0
    pool.remove(0)
    assert pool.log_left == pytest.approx(-900 + math.log1p(math.exp(-1)))
    assert pool.draw() in (1, 2)


@given(st.integers(0, 1000), st.sampled_from([(1, 3), (5, 60), (chance.LONG_SEARCH, chance.ORDERED)]))
def test_a_pool_gives_every_token_once_and_knows_what_is_left(seed, search):
    rng = np.random.default_rng(seed)
    with mock.patch.multiple(chance, LONG_SEARCH=search[0], ORDERED=search[1]):
        _empty_a_pool(rng)


def _empty_a_pool(rng):
    size = int(rng.integers(1, 3 * BLOCK))
    scores = rng.normal(size=size) * 10
    scores[rng.random(size) < 0.2] = -math.inf
    distribution = TokenDistribution(scores)
    pool = Pool(chance_of(rng), distribution)
    alive = scores > -math.inf
    while (token := pool.draw()) is not None:
        assert alive[token]
        # Several draws without removal see the same rest.
        if rng.random() < 0.1:
            again = pool.draw()
            assert again is not None and alive[again]
        alive[token] = False
        pool.remove(token)
        if rng.random() < 0.02:
            some = rng.random(size) < 0.7
            alive &= some
            pool.keep(some)
        expected = log_sum_exp(scores[alive]) - log_sum_exp(scores)
        assert pool.log_left == pytest.approx(expected, rel=SUMS, abs=SUMS) or pool.log_left == expected
    assert not alive.any() and pool.log_left == -math.inf


@pytest.mark.parametrize(("ordered", "long_search"), crossed([1, 2, 4], [0, 1, 99], share=6))
def test_draws_without_replacement_have_the_right_frequencies(monkeypatch, long_search, ordered):
    # From draws one by one, and from orders that begin after 0 or 1 tokens and hold 1, 2 or all of the others.
    monkeypatch.setattr(chance, "LONG_SEARCH", long_search)
    monkeypatch.setattr(chance, "ORDERED", ordered)
    p = np.array([0.5, 0.3, 0.15, 0.05])
    choices = chance_of(1)
    distribution = TokenDistribution(np.log(p))
    counts = np.zeros((4, 4, 4))
    n = some(20_000)
    for _ in range(n):
        pool = Pool(choices, distribution)
        first = pool.draw()
        if first == 3:
            first = pool.draw()  # left in the pool: the next draw is independent of it
        pool.remove(first)
        second = pool.draw()
        pool.remove(second)
        counts[first, second, pool.draw()] += 1
    begin = p + p[3] * p - np.array([0, 0, 0, p[3]])
    expected = np.zeros((4, 4, 4))
    for i, j, k in itertools.permutations(range(4), 3):
        expected[i, j, k] = n * begin[i] * p[j] / (1 - p[i]) * p[k] / (1 - p[i] - p[j])
    seen = expected > 0
    assert not counts[~seen].any()
    chi2 = ((counts - expected)[seen] ** 2 / expected[seen]).sum()
    assert chi2 < 55  # 23 degrees of freedom: 0.0002


def test_failures_are_geometric():
    choices = chance_of(5)
    drawn = [round(math.exp(choices.failures(math.log(0.4), 5))) for _ in range(20_000)]
    counts = np.bincount(drawn, minlength=6) / 20_000
    # More than three standard errors of 20,000 draws.
    np.testing.assert_allclose(counts, [*(0.4 * 0.6**k for k in range(5)), 0.6**5], atol=0.012)
    assert choices.failures(0.0, None) == -math.inf
    assert choices.failures(-800.0, 7) == math.log(7) and choices.failures(-800.0, None) > 700


def test_rows_of_logits():
    logits = torch.tensor([[0.0, 1.0, 2.0], [5.0, -math.inf, 5.0]])
    for size in (2, 3, 5):
        for row, distribution in zip(
            torch.softmax(logits.double(), -1).numpy(), distributions_of(logits, size), strict=True
        ):
            expected = np.pad(row, (0, 2))[:size]
            np.testing.assert_allclose(np.exp(distribution.logprobs), expected, rtol=SINGLE)
            assert math.exp(distribution.log_mass) == pytest.approx(expected.sum(), rel=SINGLE)
    for bad in ([0.0, math.nan], [math.inf, 0.0]):
        with pytest.raises(GuidedError, match="not numbers"):
            distributions_of(torch.tensor([bad]), 2)
    assert distributions_of(torch.full((1, 2), -math.inf), 2)[0].log_mass == -math.inf


def test_weights_never_become_nan():
    dead = [-math.inf] * 3
    assert log_sum_exp(dead) == log_mean_exp(dead) == log_sum_exp([]) == log_mean_exp([]) == -math.inf
    assert effective_sample_size(dead) == effective_sample_size([]) == 0.0
    assert normalised(dead).tolist() == [0.0] * 3
    assert effective_sample_size([-1e9, -1e9]) == pytest.approx(2)
    assert log_mean_exp([-1e6, -1e6, -math.inf]) == pytest.approx(-1e6 + math.log(2 / 3))
    for x in (-1e-18, -1e-3, -0.5, -40.0, -800.0):
        assert log_one_minus_exp(x) == pytest.approx(math.log(-math.expm1(x)) if x > -30 else -math.exp(x), rel=DOUBLE)
