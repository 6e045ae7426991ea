"""`exact` against brute force, and the agreement of what is enumerated with what is sampled."""

from __future__ import annotations

import math

import pytest

from guided.infer.analysis.enumeration import exact
from guided.infer.sequences.cars import cars
from tests.amounts import each
from tests.tolerances import DOUBLE
from tests.twin.tiny_problems import PATTERNS, problem, soft_problem


@pytest.mark.parametrize("make", [problem, soft_problem])
@pytest.mark.parametrize("pattern", each(PATTERNS, 2))
@pytest.mark.parametrize(("batch", "chunk"), [(1, 64), (3, 1), (64, 2)])
def test_every_sequence_and_no_other(make, pattern, batch, chunk, monkeypatch):
    monkeypatch.setattr("guided.infer.analysis.enumeration._CHUNK", chunk)
    tiny = make(pattern, seed=7)
    found = exact(*tiny.arguments, max_tokens=4, batch=batch)
    assert {p.tokens: math.exp(p.logw) for p in found.particles} == pytest.approx(tiny.weights(), abs=DOUBLE)
    assert len(found) == len(tiny.weights()) and found.log_rest == -math.inf
    assert list(found.logw) == sorted(found.logw, reverse=True)
    assert found.log_ml == pytest.approx(math.log(math.fsum(tiny.weights().values())), abs=DOUBLE)
    assert math.fsum(found.posterior().values()) == pytest.approx(1, abs=DOUBLE)


@pytest.mark.parametrize("pattern", each(PATTERNS, 2))
@pytest.mark.parametrize("mass", [0.3, 0.8, 0.99])
@pytest.mark.parametrize("chunk", [1, 2, 64])
def test_a_share_of_the_mass_is_bounded(pattern, mass, chunk, monkeypatch):
    monkeypatch.setattr("guided.infer.analysis.enumeration._CHUNK", chunk)
    tiny = problem(pattern, seed=1)
    whole = math.fsum(tiny.weights().values())
    found = exact(*tiny.arguments, max_tokens=4, mass=mass, batch=1)
    total, rest = math.exp(found.log_ml), math.exp(found.log_rest)
    assert total <= whole * (1 + 1e-12) and whole <= (total + rest) * (1 + 1e-12)
    assert total >= mass * (total + rest) * (1 - 1e-12)
    for particle in found.particles:
        assert math.exp(particle.logw) == pytest.approx(tiny.weights()[particle.tokens])


def test_cars_draws_what_is_enumerated():
    tiny = problem("a*b|ab(ab)*", seed=3, max_tokens=5)
    truth = exact(*tiny.arguments, max_tokens=5)
    n = 4000
    drawn = [particle.tokens for particle in cars(11, *tiny.arguments, n=n, max_tokens=5)]
    expected = {p.tokens: n * share for p, share in zip(truth.particles, truth.probabilities, strict=True)}
    assert set(drawn) <= set(expected)
    # Pearson's statistic over cells of at least 5, the rest in one: the 0.999 quantile of chi-square by Wilson-Hilferty.
    cells = [tokens for tokens in expected if expected[tokens] >= 5]
    counts = [(drawn.count(tokens), expected[tokens]) for tokens in cells]
    left = n - sum(seen for seen, _ in counts), n - sum(mean for _, mean in counts)
    statistic = sum((seen - mean) ** 2 / mean for seen, mean in [*counts, left] if mean > 1)
    k = len(counts)
    assert k >= 3 and statistic < k * (1 - 2 / (9 * k) + 3.09 * math.sqrt(2 / (9 * k))) ** 3
