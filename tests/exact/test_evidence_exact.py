"""Lee and Whiteley's estimate of the variance of Z, every random choice summed over: unbiased, resampling included."""

from __future__ import annotations

import math

import pytest

from guided.infer import Genealogy, genealogical_variance, multinomial, smc
from guided.infer.token_samplers.token_sampler import Direct
from guided.testing.enumeration import enumerate_choices
from tests.exact.test_sequence_samplers_exact import CRITIC, HARD, MODEL, PROMPT
from tests.tolerances import SUMS


@pytest.mark.parametrize(("n", "threshold"), [(2, 0.0), (2, 0.9), (2, 1.0), (3, 1.0)])
def test_the_variance_by_lee_and_whiteley_is_unbiased(n, threshold):
    """E[Z'^2 v] = Var Z', whether it is decided beforehand or by the weights when to resample."""
    mean = square = said = larger = 0.0
    resampled = 0
    length = 3 if n == 2 else 2
    for probability, population in enumerate_choices(
        lambda chance: smc(
            chance, MODEL, PROMPT, HARD, critic=CRITIC, n=n, max_tokens=length, sampler=Direct(),
            resample=multinomial, ess_threshold=threshold,
        )
    ):  # fmt: skip
        estimate = math.exp(population.log_ml)
        mean += probability * estimate
        square += probability * estimate**2
        resampled += len(population.resampled)
        said += probability * estimate**2 * genealogical_variance(population)
        larger += probability * estimate**2 * genealogical_variance(population, Genealogy.CHAN_LAI)
    variance = square - mean**2
    assert variance > 1e-4 and bool(resampled) == bool(threshold)
    assert said == pytest.approx(variance, rel=SUMS)
    assert larger >= variance * (1 - SUMS)
