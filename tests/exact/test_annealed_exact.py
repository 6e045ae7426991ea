"""Tempering with moves, every random choice summed over: weights stay proper whatever the powers and moves."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest

from guided.errors import GuidedError
from guided.infer import Cut, TextScorer, annealed, multinomial, smc, systematic
from guided.infer.sequences.exploration import Exploration
from guided.infer.sequences.mcmc import moved, visited
from guided.testing.enumeration import enumerate_choices
from tests.amounts import each, mostly_slow
from tests.tolerances import SUMS
from tests.twin.tiny_problems import VOCABULARY, problem, soft_problem

CRITIC = TextScorer(VOCABULARY, lambda texts: [{"b": -math.inf, "ab": 1.5}.get(t, 0.4 * len(t) - 0.6) for t in texts])


def target(tiny):
    """``p potential critic`` of each text."""
    weighed = {tokens: w * math.exp(CRITIC.complete(tokens[:-1])) for tokens, w in tiny.weights().items()}
    return {tokens: weight for tokens, weight in weighed.items() if weight}


@pytest.mark.parametrize(
    ("n", "powers", "moves", "threshold", "resample"),
    [
        (1, (0, 1), 0, 0.0, systematic),
        (1, (0, 0.4, 1), 1, 0.5, systematic),
        pytest.param(2, (0, 0.4, 1), 1, 0.0, systematic, marks=pytest.mark.slow),
        pytest.param(2, (0, 1), 1, 1.0, systematic, marks=pytest.mark.slow),
        (2, (0, 0.5, 1), 0, 1.0, multinomial),
    ],
)
@pytest.mark.parametrize("make", mostly_slow([soft_problem, problem], 1))
def test_weights_are_proper(make, n, powers, moves, threshold, resample):
    tiny = make("a?b|a", seed=2, max_tokens=3)
    wanted = target(tiny)
    assert len(wanted) >= 2
    found, evidence, total, n_resampled = defaultdict(float), 0.0, 0.0, 0
    for probability, population in enumerate_choices(
        lambda chance: annealed(
            chance, *tiny.arguments, n=n, max_tokens=3, critic=CRITIC, powers=powers, moves=moves,
            ess_threshold=threshold, resample=resample, cut=Cut.UNIFORM,
        )
    ):  # fmt: skip
        total += probability
        evidence += probability * math.exp(population.log_ml)
        n_resampled += len(population.resampled)
        for particle in population:
            if particle.logw > -math.inf:
                assert particle.finished
                found[particle.tokens] += probability * math.exp(particle.logw) / n
    assert total == pytest.approx(1, abs=SUMS)
    assert found == pytest.approx(wanted, rel=SUMS)
    assert evidence == pytest.approx(math.fsum(wanted.values()), rel=SUMS)
    assert bool(n_resampled) == (threshold == 1.0)


@pytest.mark.parametrize("power", each([0.0, 0.3, 1.0], 2))
def test_moves_keep_the_power_of_the_critic(power):
    tiny = problem("[ab]*", seed=4, max_tokens=3)
    weights = {
        tokens: w * math.exp(power * CRITIC.complete(tokens[:-1]))
        for tokens, w in tiny.weights().items()
        if CRITIC.complete(tokens[:-1]) > -math.inf
    }
    number = {tokens: i for i, tokens in enumerate(weights)}
    share = np.array(list(weights.values())) / math.fsum(weights.values())
    exploration = Exploration(*tiny.arguments, max_tokens=3)

    def ratios(olds, news):
        def value(node):
            tokens = exploration.trie.tokens(node)
            return power * CRITIC.complete(tokens[:-1]) if CRITIC.complete(tokens[:-1]) > -math.inf else -math.inf

        return [value(new) - value(old) if exploration.is_end(new) else 0.0 for old, new in zip(olds, news)]

    matrix = np.zeros((len(share), len(share)))
    for tokens, i in number.items():
        at = visited(exploration, tokens)
        for probability, (after, _) in enumerate_choices(
            lambda chance, at=at: moved(exploration, chance, [at], Cut.PRIORITY, ratios)
        ):
            matrix[i, number[exploration.trie.tokens(after[0])]] += probability
    np.testing.assert_allclose(share @ matrix, share, atol=SUMS)


def test_moves_part_what_resampling_has_copied():
    tiny = problem("[ab]*", seed=4, max_tokens=8)
    steep = TextScorer(VOCABULARY, lambda texts: [2.0 * text.count("ba") for text in texts])

    def spread(moves):
        runs = [
            annealed(seed, *tiny.arguments, n=24, max_tokens=8, critic=steep, moves=moves, powers=(0, 0.2, 0.5, 1))
            for seed in range(6)
        ]
        assert any(run.resampled for run in runs)
        return np.mean([len({particle.tokens for particle in run}) for run in runs])

    assert spread(2) > 1.1 * spread(0)


def test_nothing_that_the_critic_likes():
    tiny = problem("[ab]*", seed=4, max_tokens=3)
    never = TextScorer(VOCABULARY, lambda texts: [-math.inf] * len(texts))
    found = annealed(0, *tiny.arguments, n=4, max_tokens=3, critic=never)
    assert found.log_ml == -math.inf and not found.posterior()
    plain = annealed(0, *tiny.arguments, n=200, max_tokens=3)
    other = smc(0, *tiny.arguments, n=200, max_tokens=3)
    # Four standard errors of either estimate, by seeds.
    assert plain.log_ml == pytest.approx(other.log_ml, abs=4 * (plain.log_ml_error + other.log_ml_error))


@pytest.mark.parametrize("powers", [(0.5, 1), (0, 0.5), (0, 0.5, 0.5, 1), (1,)])
def test_powers_ascend_from_0_to_1(powers):
    tiny = problem("[ab]*", seed=4, max_tokens=3)
    with pytest.raises(GuidedError, match="powers"):
        annealed(0, *tiny.arguments, max_tokens=3, powers=powers)
