"""Learned twists: no twist makes a weight wrong, every choice summed over, and one that was fitted saves variance."""

from __future__ import annotations

import math

import numpy as np
import pytest

from guided.infer import Direct, LearnedTwist, Potential, exact, importance, learned_twist, smc
from guided.lm import TableModel
from guided.testing import check_potential
from tests.exact.test_sequence_samplers_exact import CRITIC, HARD, MODEL, PROMPT, VOCABULARY, Listed, hold, truth


@pytest.mark.parametrize("seed", range(3))
def test_any_twist_is_exact(seed):
    """Even one that is drawn by chance: values of the last token, up to a factor of e^2 wrong."""
    rng = np.random.default_rng(seed)
    values = {token: float(rng.normal(0, 2)) for token in range(2)}
    twist = LearnedTwist(HARD, values, lambda tokens: tokens[-1] if tokens else None, critic=CRITIC)
    check_potential(twist, length=4)
    resampled = hold(
        lambda chance: smc(
            chance, MODEL, PROMPT, HARD, critic=twist, n=2, max_tokens=3, sampler=Direct(), ess_threshold=0.9
        ),
        truth(MODEL, HARD, CRITIC, 3),
    )
    assert resampled


class Eight(Potential):
    """Texts of eight tokens, each of which weighs what `worth` says; on the way nothing shows."""

    vocabulary = VOCABULARY

    def __init__(self, worth):
        self.worth = worth

    def start(self):
        return ()

    def advance(self, state, token):
        return (*state, token)

    def prefix_at(self, state):
        return 0.0 if len(state) <= 8 else -math.inf

    def complete_at(self, state):
        return self.worth(state) if len(state) == 8 else -math.inf


OF_EIGHT = Eight(lambda text: 0.0)
LATE = Eight(lambda text: 3.0 * sum(text) - 24.0)
EVEN = TableModel(lambda tokens: np.log([0.48, 0.48, 0.04]), width=3)


def test_a_fitted_twist_looks_ahead():
    """Over 40 seeds each, the spread of the evidence is less than 0.6 of that without, and its mean is the truth."""
    options = {"n": 32, "max_tokens": 9, "sampler": Direct()}
    pilot = importance(1000, EVEN, PROMPT, OF_EIGHT, **options | {"n": 1000})
    twist = learned_twist([pilot], OF_EIGHT, critic=LATE, feature=lambda tokens: (len(tokens), sum(tokens)))
    assert twist.values[3, 3] > twist.values[3, 1]
    whole = exact(EVEN, PROMPT, OF_EIGHT * LATE, max_tokens=9).log_ml
    spreads = []
    for critic in (LATE, twist):
        runs = [smc(seed, EVEN, PROMPT, OF_EIGHT, critic=critic, ess_threshold=0.7, **options) for seed in range(40)]
        ratios = np.array([math.exp(run.log_ml - whole) for run in runs])
        # Four standard errors of the mean of the runs, by seeds.
        assert ratios.mean() == pytest.approx(1, abs=4 * ratios.std() / math.sqrt(len(ratios)))
        spreads.append(ratios.std())
    assert spreads[1] < 0.6 * spreads[0], spreads


def test_what_is_fitted():
    """Without shrinking, the log of the mean weight to come, by hand."""
    pilot = importance(3, MODEL, PROMPT, HARD, n=50, max_tokens=3, sampler=Direct())
    twist = learned_twist([pilot], HARD, feature=lambda tokens: tokens, prior=0.0, floor=-50.0)
    for tokens, value in twist.values.items():
        futures = [
            math.exp(sum(particle.increments[len(tokens) :]))
            for particle in pilot
            if particle.tokens[: len(tokens)] == tokens and len(particle.tokens) > len(tokens)
        ]
        if sum(futures):
            assert value == pytest.approx(math.log(np.mean(futures)))
    assert len(twist.values) >= 2


def test_populations_that_teach_nothing():
    resampled = smc(0, MODEL, PROMPT, HARD, n=4, max_tokens=3, ess_threshold=1.0)
    for wrong in ([], [resampled]):
        with pytest.raises(ValueError, match="importance"):
            learned_twist(wrong, HARD)
    with pytest.raises(ValueError, match="two tokens"):
        learned_twist([importance(0, MODEL, PROMPT, Listed({(): 0.0}), n=2, max_tokens=1)], HARD)
