"""Every random choice of resampling enumerated: the expected weight of a particle's copies is its old weight."""

# ruff: noqa: B023

from __future__ import annotations

import math

import numpy as np
import pytest

from guided.infer.chance import Drawn
from guided.infer.populations.resampling import multinomial, optimal, residual, stratified, systematic
from guided.testing.enumeration import enumerate_choices
from tests.amounts import each
from tests.tolerances import DOUBLE

WAYS = [multinomial, systematic, stratified, residual, optimal]
POPULATIONS = [
    [0.5, 0.25, 0.25],
    [0.7, 0.2, 0.1],
    [1.0, 0.0, 0.0],
    [1 / 3, 1 / 3, 1 / 3],
    [0.05, 0.9, 0.0, 0.05],
    [0.3, 0.3, 0.2, 0.1, 0.1],
    [1e-12, 1.0, 1e-9],
]


def moments(way, weights, n):
    """The mean weight of each particle's copies, and the mean square of how their number differs from what is due."""
    logw = np.log(np.maximum(weights, 1e-300)) + 7.0
    logw[np.array(weights) == 0] = -math.inf
    mean, spread, total = np.zeros(len(weights)), np.zeros(len(weights)), 0.0
    for probability, (ancestors, new) in enumerate_choices(lambda chance: way(chance, logw.tolist(), n)):
        assert len(ancestors) == len(new) == n
        total += probability
        copies = np.bincount(ancestors, minlength=len(weights))
        np.add.at(mean, ancestors, probability * np.exp(np.array(new) - 7.0))
        spread += probability * (copies - n * np.array(weights) / sum(weights)) ** 2
    assert total == pytest.approx(1, abs=DOUBLE)
    return mean, spread


@pytest.mark.parametrize("weights", each(POPULATIONS, 2))
@pytest.mark.parametrize("way", WAYS)
def test_unbiased(way, weights):
    for n in (1, 2, 3, 4):
        mean, _ = moments(way, weights, n)
        np.testing.assert_allclose(mean, weights, atol=DOUBLE)


@pytest.mark.parametrize("weights", POPULATIONS)
def test_less_variance_than_multinomial(weights):
    """Residual and stratified never have more; systematic rounds each expected number up or down."""
    for n in (2, 3, 4):
        _, most = moments(multinomial, weights, n)
        for way in (residual, stratified):
            assert (moments(way, weights, n)[1] <= most + 1e-12).all()
        due = n * np.array(weights) / sum(weights)
        logw = np.log(np.maximum(weights, 1e-300))
        for _, (ancestors, _new) in enumerate_choices(lambda chance: systematic(chance, logw.tolist(), n)):
            copies = np.bincount(ancestors, minlength=len(weights))
            assert (np.abs(copies - due) < 1 + 1e-9).all()


def test_optimal_keeps_heavy_particles_and_draws_none_twice():
    weights = [0.4, 0.05, 0.3, 0.02, 0.1, 0.03, 0.1]
    for n in (1, 2, 3, 5, 6):
        for _, (ancestors, new) in enumerate_choices(lambda chance: optimal(chance, np.log(weights).tolist(), n)):
            assert len(set(ancestors)) == n
            light = [weight for i, weight in zip(ancestors, new) if abs(weight - math.log(weights[i])) > 1e-12]
            assert len({round(weight, 12) for weight in light}) <= 1
            assert all(
                math.exp(weight) >= max(w for i, w in enumerate(weights) if i not in ancestors) for weight in light
            )


def test_optimal_refills_dead_places():
    ancestors, new = optimal(0, [math.log(0.6), -math.inf, math.log(0.3), -math.inf], 4)
    assert ancestors == [0, 0, 0, 2] or ancestors == [0, 0, 2, 2]
    assert np.exp(new).sum() == pytest.approx(0.9)


@pytest.mark.parametrize("way", [systematic, stratified, optimal])
@pytest.mark.parametrize("n", [2, 16, 1000])
def test_the_largest_offset_there_is_stays_inside(way, n):
    class Last(Drawn):
        def uniform(self, cuts):
            return float(np.nextafter(1.0, 0.0))

    # (n - 1 + offset) / n rounds to 1; the last particle with weight is the answer, not one behind the last.
    logw = [0.0] * (2 * n) + [-math.inf]
    found = way(Last(np.random.default_rng(0)), logw, n)
    assert len(found.ancestors) == n and max(found.ancestors) == 2 * n - 1
