"""Masses of runs of tokens and tokens given weights, against sums in exact arithmetic and in NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest

from guided.kernels.tokens.log_masses import product_sums, run_masses, spread, sum_maxima
from tests.tolerances import DOUBLE

NONE = -np.inf


def runs(rnd: np.random.Generator, width: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Tokens of ``n`` runs, some of them much longer than a round of the kernel, and where each begins."""
    sizes = rnd.choice([1, 2, 7, 8, 9, 511, 512, 513, 2000], n)
    return rnd.integers(0, width, int(sizes.sum())), np.cumsum(sizes) - sizes


def masses(row: np.ndarray, tokens: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mass, greatest = np.zeros(len(starts)), np.zeros(len(starts))
    run_masses(row, tokens, starts, mass, greatest)
    return mass, greatest


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 1000.0])
def test_masses_are_those_of_exact_sums(dtype, scale):
    rnd = np.random.default_rng(int(scale))
    row = (scale * rnd.normal(size=3000)).astype(dtype)
    row[rnd.random(3000) < 0.1] = NONE
    tokens, starts = runs(rnd, 3000, 20)
    row[tokens[: starts[1]]] = NONE
    mass, greatest = masses(row, tokens, starts)
    for i, part in enumerate(np.split(row[tokens].astype(np.float64), starts[1:])):
        top = part.max()
        assert greatest[i] == top
        if top == NONE:
            assert mass[i] == NONE
        else:
            exact = top + math.log(math.fsum(math.exp(value - top) for value in part.tolist()))
            assert mass[i] == pytest.approx(exact, rel=DOUBLE, abs=DOUBLE)
    assert mass[0] == NONE


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("around", [0.0, NONE])
@pytest.mark.parametrize("place", [0, 5, 699, 999])
def test_what_is_no_logarithm_of_a_weight_makes_the_mass_none(bad, around, place):
    row = np.full(1000, around, np.float32)
    row[place] = bad
    mass, _ = masses(row, np.arange(1000), np.array([0]))
    assert np.isnan(mass[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_spread_is_each_token_given_the_weight_of_its_run(dtype):
    rnd = np.random.default_rng(1)
    row = (30 * rnd.normal(size=3000)).astype(dtype)
    row[:7] = NONE
    tokens, starts = runs(rnd, 3000, 20)
    weights = -100 * rnd.random(20) - 100
    weights[3] = NONE
    onto = rnd.random(3000)
    expected = onto.copy()
    sizes = np.diff(starts, append=tokens.size)
    np.add.at(expected, tokens, np.exp(row[tokens] + np.repeat(weights, sizes)))
    spread(row, tokens, starts, weights, onto)
    assert onto == pytest.approx(expected, rel=DOUBLE)


def test_exponentials_are_those_of_the_mathematical_library():
    values = np.concatenate([np.linspace(-760, 709, 20_001), -np.logspace(-320, 2, 5000), [0.0, -0.0, NONE]])
    found = np.zeros(values.size)
    every = np.arange(values.size)
    spread(values, every, every, np.zeros(values.size), found)
    expected = np.array([math.exp(value) if value >= -708 else 0.0 for value in values.tolist()])
    # Of fused operations alone, so the same on any processor.  Measured: 3.2e-16, a third of it the library's own.
    assert found == pytest.approx(expected, rel=4e-16, abs=0)
    assert found[-1] == 0


def test_pairs_are_multiplied_and_summed_and_added_and_compared():
    rnd = np.random.default_rng(2)
    sizes = np.array([1, 2, 3, 4, 17, 100, 1])
    starts, n = np.cumsum(sizes) - sizes, int(sizes.sum())
    one, other = rnd.normal(size=9), rnd.normal(size=7)
    one[0] = NONE
    at_one, at_other = rnd.integers(0, 9, n), rnd.integers(0, 7, n)
    at_one[0] = 0
    greatest, sums = np.zeros(7), np.zeros(7)
    sum_maxima(one, at_one, other, at_other, starts, greatest)
    assert greatest.tolist() == np.maximum.reduceat(one[at_one] + other[at_other], starts).tolist()
    assert greatest[0] == NONE
    product_sums(np.exp(one), at_one, np.exp(other), at_other, starts, sums)
    expected = [math.fsum(part.tolist()) for part in np.split(np.exp(one[at_one] + other[at_other]), starts[1:])]
    assert sums == pytest.approx(expected, rel=DOUBLE)
