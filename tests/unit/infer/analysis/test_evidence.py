"""Intervals of the evidence hold the truth as often as they say; families and quantiles."""

from __future__ import annotations

import math

import numpy as np
import pytest

import guided
from guided.infer import (
    Genealogy,
    exact,
    genealogical_variance,
    importance,
    log_ml_interval,
    multinomial,
    pooled,
    smc,
    smc_steer,
)
from guided.infer.analysis.evidence import student_quantile
from guided.lm import TableModel
from tests.tolerances import SUMS

VOCABULARY = guided.Vocabulary.from_tokens([b"a", b"b", b"ab", None], eos_ids=[3])
MODEL = TableModel.random(9, width=4)
PROMPT = (0, 1)
GRAMMAR = guided.compile(guided.regex("(ab|b|a)*b"), VOCABULARY)


def one_run(seed, threshold):
    return smc(seed, MODEL, PROMPT, GRAMMAR, n=32, max_tokens=6, ess_threshold=threshold, resample=multinomial)


def by_one_run(seed):
    return one_run(seed, 0.5)


def resampled_often(seed):
    runs = [one_run(12 * seed + i, 1.0) for i in range(12)]
    assert all(run.resampled for run in runs)
    return runs


def by_twelve_runs(seed):
    return [smc(12 * seed + i, MODEL, PROMPT, GRAMMAR, n=12, max_tokens=6) for i in range(12)]


def coverage(draw, runs):
    """The share of intervals at 90 % that hold the truth, which is enumerated."""
    truth = exact(MODEL, PROMPT, GRAMMAR, max_tokens=6).log_ml
    intervals = [log_ml_interval(draw(seed), level=0.9) for seed in range(runs)]
    return sum(low <= truth <= high for low, high in intervals) / runs


@pytest.mark.parametrize(("draw", "runs", "least"), [(by_one_run, 60, 0.73), (by_twelve_runs, 12, 0.59)])
def test_intervals_hold_the_truth(draw, runs, least):
    # Three standard deviations below 0.85: sqrt(0.9 * 0.1 / 60) is 0.039, of 12 trials 0.087.
    assert least <= coverage(draw, runs) <= 1.0


@pytest.mark.slow
@pytest.mark.parametrize("draw", [by_one_run, resampled_often, by_twelve_runs])
def test_intervals_hold_the_truth_in_500_runs(draw):
    assert 0.85 <= coverage(draw, 500) <= 0.95


def test_intervals_widen_with_their_level():
    run = one_run(3, 0.5)
    near, far = log_ml_interval(run, level=0.5), log_ml_interval(run, level=0.99)
    assert far[0] < near[0] < near[1] < far[1]
    with pytest.raises(ValueError, match="between 0 and 1"):
        log_ml_interval(run, level=1.0)


def test_nothing_known_is_everything():
    everything = (-math.inf, math.inf)
    assert log_ml_interval(smc_steer(0, MODEL, PROMPT, GRAMMAR, n=3, max_tokens=4)) == everything
    assert log_ml_interval([one_run(0, 0.5)]) == everything


def test_families_of_particles():
    apart = importance(0, MODEL, PROMPT, GRAMMAR, n=8, max_tokens=6)
    assert apart.families == tuple(range(8)) and apart.ancestral_ess == pytest.approx(apart.ess)
    often = one_run(1, 1.0)
    assert 1 <= often.ancestral_ess < often.ess
    shares = np.array([often.weights[np.array(often.families) == family].sum() for family in range(32)])
    assert often.ancestral_ess == pytest.approx(1 / (shares**2).sum())
    both = pooled([often, apart])
    assert len(set(both.families)) == len(set(often.families)) + 8
    # Independent populations have no family in common.
    assert both.ancestral_ess > often.ancestral_ess
    assert math.isnan(smc_steer(0, MODEL, PROMPT, GRAMMAR, n=3, max_tokens=4).ancestral_ess)
    assert not pooled([often, smc_steer(0, MODEL, PROMPT, GRAMMAR, n=3, max_tokens=4)]).families


def test_genealogies_agree_without_resampling():
    run = importance(0, MODEL, PROMPT, GRAMMAR, n=8, max_tokens=6)
    values = [genealogical_variance(run, by) for by in Genealogy]
    assert values == pytest.approx([run.log_ml_error**2] * 2)
    with pytest.raises(ValueError, match="two particles"):
        genealogical_variance(importance(0, MODEL, PROMPT, GRAMMAR, n=1, max_tokens=6))


def test_quantiles_of_student():
    """From the tables of Abramowitz and Stegun, 26.10."""
    table = {(0.95, 1): 6.314, (0.95, 2): 2.920, (0.95, 5): 2.015, (0.975, 10): 2.228, (0.995, 30): 2.750}
    for (probability, degrees), value in table.items():
        # Tables have four digits.
        assert student_quantile(probability, degrees) == pytest.approx(value, abs=6e-4)
    assert student_quantile(0.5, 3) == pytest.approx(0, abs=SUMS)
    with pytest.raises(ValueError, match="quantile"):
        student_quantile(0.4, 3)
