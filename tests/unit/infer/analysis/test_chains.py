"""R-hat and effective sizes of chains against a slow reading of the paper, known laws, and chains of `mcmc`."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
import pytest

from guided.infer import ChainTrace, Cut, chain_ess, mcmc, r_hat
from tests.twin.tiny_problems import problem


def slow_r_hat(draws):
    """Equations 3 to 5 and 14 of Vehtari et al. 2021, number by number."""
    half = len(draws[0]) // 2
    split = [part for chain in draws for part in (list(chain[:half]), list(chain[len(chain) - half :]))]
    everything = [x for chain in split for x in chain]
    median = sorted(everything)[len(everything) // 2 - 1 : len(everything) // 2 + 1]
    middle = sum(median) / 2

    def plain(chains):
        values = [x for chain in chains for x in chain]
        size = len(values)

        def score(x):
            less = sum(y < x for y in values)
            equal = sum(y == x for y in values)
            return NormalDist().inv_cdf((less + (equal + 1) / 2 - 3 / 8) / (size + 1 / 4))

        z = [[score(x) for x in chain] for chain in chains]
        n, m = len(z[0]), len(z)
        means = [sum(chain) / n for chain in z]
        mean = sum(means) / m
        between = n / (m - 1) * sum((each - mean) ** 2 for each in means)
        within = sum(sum((x - a) ** 2 for x in chain) / (n - 1) for chain, a in zip(z, means)) / m
        return math.sqrt(((n - 1) / n * within + between / n) / within)

    return max(plain(split), plain([[abs(x - middle) for x in chain] for chain in split]))


@pytest.mark.parametrize("seed", range(3))
def test_r_hat_is_the_papers(seed):
    rng = np.random.default_rng(seed)
    for draws in (
        rng.standard_normal((3, 10)),
        rng.standard_cauchy((2, 12)),
        rng.integers(0, 4, (4, 9)).astype(float),
        rng.standard_normal((2, 8)) * np.array([[1.0], [5.0]]),
    ):
        assert r_hat(draws) == pytest.approx(slow_r_hat(draws.tolist()))


def test_r_hat_sees_places_and_scales_that_differ():
    rng = np.random.default_rng(0)
    alike = rng.standard_normal((4, 500))
    assert r_hat(alike) < 1.01
    assert r_hat(alike + np.array([[0.0], [0.0], [0.0], [2.0]])) > 1.1
    # Of equal means: what is folded shows it.
    assert r_hat(alike * np.array([[1.0], [1.0], [1.0], [4.0]])) > 1.05
    assert r_hat(np.sort(alike, axis=1)) > 1.5
    assert math.isinf(r_hat([[0.0] * 8, [1.0] * 8])) and math.isnan(r_hat([[1.0] * 8] * 2))


@pytest.mark.parametrize("phi", [0.0, 0.6, 0.9])
def test_the_size_of_autoregressive_chains_is_known(phi):
    """Of x' = phi x + noise, n draws are worth n (1 - phi) / (1 + phi)."""
    rng = np.random.default_rng(1)
    chains = np.zeros((4, 4000))
    noise = rng.standard_normal(chains.shape)
    for t in range(1, chains.shape[1]):
        chains[:, t] = phi * chains[:, t - 1] + noise[:, t]
    # What is estimated of autocorrelations of 16,000 draws scatters by a few hundredths, by one seed.
    assert chain_ess(chains) == pytest.approx(chains.size * (1 - phi) / (1 + phi), rel=0.15)


@pytest.mark.parametrize("draws", [[1.0, 2.0, 3.0, 4.0], [[1.0, 2.0, 3.0]], [[1.0, 2.0, 3.0, math.nan]]])
def test_draws_that_say_nothing(draws):
    for read in (r_hat, chain_ess):
        with pytest.raises(ValueError, match="finite numbers"):
            read(draws)


def test_chains_of_mcmc_are_traced():
    tiny = problem("[ab]*", seed=4, max_tokens=6)
    trace = ChainTrace()
    samples = mcmc(0, *tiny.arguments, n=4, max_tokens=6, steps=150, cut=Cut.UNIFORM, progress=trace)

    def length(particle):
        return len(particle.tokens)

    values = trace.values(length)
    assert trace.n_moves == 150 and values.shape == (4, 150)
    assert values[:, -1].tolist() == [length(particle) for particle in samples]
    assert trace.r_hat(length) < 1.1 and 50 < trace.ess(length) <= 4 * 150 * 1.5
    mean = sum(share * len(tokens) for tokens, share in tiny.target().items())
    deviation = values.std() / math.sqrt(trace.ess(length))
    # Four standard errors by the size that is tested, by one seed.
    assert values.mean() == pytest.approx(mean, abs=4 * deviation)
