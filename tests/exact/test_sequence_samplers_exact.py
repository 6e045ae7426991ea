"""Every random choice of every sequence sampler enumerated: E[mean w f(x)] = Z E[f(x)], so log_ml is unbiased too."""

# ruff: noqa: B023

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest

from guided.infer.populations.resampling import multinomial, optimal, residual, stratified, systematic
from guided.infer.populations.smc import importance, smc
from guided.infer.populations.smc_steer import smc_steer
from guided.infer.potentials.anything import Anything
from guided.infer.potentials.potential import Potential
from guided.infer.result import pooled
from guided.infer.token_samplers.awrs import AWRS, Estimator
from guided.infer.token_samplers.token_sampler import Direct
from guided.lm import TableModel
from guided.testing.enumeration import enumerate_choices
from guided.vocab import Vocabulary
from tests.amounts import ALL, crossed, each, mostly_slow
from tests.tolerances import DOUBLE, SUMS

VOCABULARY = Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
TWO_ENDS = Vocabulary.from_tokens([b"a", None, None], eos_ids=[1, 2])
PROMPT = (0,)
MODEL = TableModel.random(11, width=3)


class Listed(Potential):
    """Weights of finitely many texts, others nothing; prefixes weigh the most that can follow, or 0 for all."""

    def __init__(self, weights, vocabulary=VOCABULARY, *, blind=False, bonus=0.0):
        self.vocabulary, self.weights, self.blind, self.bonus = vocabulary, weights, blind, bonus

    @property
    def boolean(self):
        return set(self.weights.values()) <= {0.0} and not self.bonus

    def start(self):
        return ()

    def advance(self, state, token):
        return (*state, token)

    def prefix_at(self, state):
        if self.blind:
            return 0.0
        values = [w for text, w in self.weights.items() if text[: len(state)] == state]
        return max(values) + self.bonus * len(state) if values else -math.inf

    def complete_at(self, state):
        return self.weights.get(state, -math.inf)


def truth(model, potential, critic, max_tokens, prompt=PROMPT):
    """The unnormalised target of each sequence with its end."""
    found = {}
    ends = potential.eos_ids
    others = [token for token in range(potential.vocabulary.size) if token not in ends]
    for length in range(max_tokens):
        for text in itertools.product(others, repeat=length):
            logp = sum(model.logprobs((*prompt, *text[:t]))[text[t]] for t in range(length))
            weight = potential.complete(text) + (critic.complete(text) if critic else 0.0)
            for end in ends:
                value = math.exp(logp + model.logprobs((*prompt, *text))[end] + weight)
                if value:
                    found[(*text, end)] = value
    return found


def expectation(run, **options):
    """The expected sum of weights at each finished sequence, over n; checks what every population promises."""
    found = defaultdict(float)
    total = mass = 0.0
    resampled = 0
    for probability, population in enumerate_choices(run, **options):
        resampled += len(population.resampled)
        total += probability
        logw = population.logw
        assert not np.isnan(logw).any() and not math.isnan(population.log_ml)
        mass += probability * math.exp(population.log_ml)
        for particle in population:
            if particle.logw > -math.inf:
                assert particle.finished
                found[particle.tokens] += probability * math.exp(particle.logw) / len(population)
    assert total == pytest.approx(1, abs=SUMS)
    assert mass == pytest.approx(sum(found.values()), abs=DOUBLE)
    return dict(found), resampled


def hold(run, target, **options):
    """The expected weights are the target's; gives how often something was resampled."""
    found, resampled = expectation(run, **options)
    assert set(found) <= set(target)
    for text, value in target.items():
        assert found.get(text, 0.0) == pytest.approx(value, abs=SUMS), text
    return resampled


HARD = Listed({(0,): 0.0, (1, 0): 0.0, (1, 1): 0.0})
BLIND = Listed({(): 0.0, (1, 0): 0.0}, blind=True)
SOFT = Listed({(): -1.0, (0,): 0.5, (1, 0): -0.3, (1, 1): 1.0}, bonus=0.2)
CRITIC = Listed({(): -0.7, (0,): 0.4, (1, 0): 0.9, (0, 1): -0.2}, bonus=-0.3)

RESAMPLERS = [multinomial, systematic, stratified, residual, optimal]
RECURSIVE = AWRS(estimator=Estimator.RECURSIVE)


@pytest.mark.parametrize("potential", [HARD, BLIND, SOFT], ids=["hard", "blind", "soft"])
@pytest.mark.parametrize("max_tokens", [1, 2, 3])
@pytest.mark.parametrize("n", [1, 2])
def test_importance(potential, max_tokens, n):
    target = truth(MODEL, potential, None, max_tokens)
    hold(
        lambda chance: importance(chance, MODEL, PROMPT, potential, n=n, max_tokens=max_tokens, sampler=Direct()),
        target,
    )


REJECTING = [RECURSIVE, AWRS(estimator=Estimator.TWO_LOOPS), AWRS(max_rejects=2), AWRS(max_accepts=3, max_rejects=2)]


@pytest.mark.parametrize(("potential", "sampler"), crossed([BLIND, HARD], REJECTING))
def test_importance_by_rejection(potential, sampler):
    target = truth(MODEL, potential, None, 3)
    hold(lambda chance: importance(chance, MODEL, PROMPT, potential, n=1, max_tokens=3, sampler=sampler), target)


@pytest.mark.parametrize(("threshold", "resample"), crossed([0.6, 1.0], RESAMPLERS, share=6))
def test_smc(resample, threshold):
    for potential, n in ((HARD, 2), (SOFT, 3), (SOFT, 2))[: 3 if ALL else 2]:
        target = truth(MODEL, potential, None, 3)
        resampled = hold(
            lambda chance: smc(
                chance, MODEL, PROMPT, potential, n=n, max_tokens=3, sampler=Direct(),
                ess_threshold=threshold, resample=resample,
            ),
            target,
        )  # fmt: skip
        assert resampled or (threshold == 0.6 and n == 2)


class Masked(Listed):
    """The same with masks, which a sampler may ask for or not."""

    asked = 0

    def allowed_each(self, states):
        type(self).asked += 1
        return np.array([self.logw_next_of(state) > -math.inf for state in states])

    def logw_next_of(self, state):
        return np.array([self.step(state, token)[1] for token in range(self.vocabulary.size)])


def test_smc_that_chooses_between_masks_and_rejection(monkeypatch):
    """What the draw before kept, and which particles share a prefix, decide how each token is drawn."""
    monkeypatch.setattr("guided.infer.token_samplers.awrs.FEW", 0)
    masked = Masked({(0,): 0.0, (1, 0): 0.0, (1, 1): 0.0})
    target = truth(MODEL, masked, None, 3)
    for sampler in (AWRS(max_rejects=2), AWRS(max_rejects=3, narrow_after=1)):
        hold(
            lambda chance: smc(chance, MODEL, PROMPT, masked, n=2, max_tokens=3, sampler=sampler, ess_threshold=0.9),
            target,
        )
    assert Masked.asked > 10


@pytest.mark.parametrize("max_tokens", mostly_slow([2, 3], 1))
def test_smc_by_rejection(max_tokens):
    target = truth(MODEL, HARD, None, max_tokens)
    hold(
        lambda chance: smc(
            chance, MODEL, PROMPT, HARD, n=2, max_tokens=max_tokens, sampler=RECURSIVE, ess_threshold=1.0
        ),
        target,
    )


@pytest.mark.parametrize("resample", each(RESAMPLERS, 2))
def test_twists_cancel(resample):
    """A critic changes the target by its weight of whole texts alone, whatever it says of prefixes."""
    for potential, critic in ((Anything(VOCABULARY), CRITIC), (SOFT, CRITIC), (Anything(VOCABULARY), BLIND)):
        target = truth(MODEL, potential, critic, 3)
        assert hold(
            lambda chance: smc(
                chance, MODEL, PROMPT, potential, n=2, max_tokens=3, sampler=Direct(), critic=critic,
                ess_threshold=1.0, resample=resample,
            ),
            target,
        )  # fmt: skip


def test_a_critic_without_resampling_is_asked_about_whole_texts_only():
    asked = []

    class Watched(Listed):
        def prefix_at(self, state):
            asked.append(state)
            return super().prefix_at(state)

    critic = Watched(CRITIC.weights)
    target = truth(MODEL, Anything(VOCABULARY), critic, 3)
    asked.clear()
    hold(
        lambda chance: importance(
            chance, MODEL, PROMPT, Anything(VOCABULARY), n=1, max_tokens=3, sampler=Direct(), critic=critic
        ),
        target,
    )
    assert not asked


@pytest.mark.parametrize(("n", "expansions"), [(1, 1), (1, 2), (2, 1), (2, 2)])
def test_smc_steer(n, expansions):
    for potential, critic in ((HARD, None), (SOFT, CRITIC))[: 2 if ALL or n * expansions < 4 else 1]:
        target = truth(MODEL, potential, critic, 3)
        hold(
            lambda chance: smc_steer(
                chance, MODEL, PROMPT, potential, n=n, expansions=expansions, max_tokens=3, sampler=Direct(),
                critic=critic,
            ),
            target,
        )  # fmt: skip


def test_a_proposal_model():
    other = TableModel.random(5, width=3)
    for sampler, potential, max_tokens in ((Direct(), SOFT, 3), (RECURSIVE, HARD, 2)):
        target = truth(MODEL, potential, None, max_tokens)
        hold(
            lambda chance: smc(
                chance, MODEL, PROMPT, potential, n=2, max_tokens=max_tokens, sampler=sampler, proposal=other,
                ess_threshold=0.9,
            ),
            target,
        )  # fmt: skip


def test_several_ends_of_text():
    potential = Listed({(): 0.0, (0, 0): 0.0}, TWO_ENDS)
    model = TableModel.random(3, width=3, eos_ids=[1, 2])
    target = truth(model, potential, None, 3)
    assert len(target) == 4
    for sampler in (Direct(), RECURSIVE):
        hold(
            lambda chance: smc(chance, model, PROMPT, potential, n=2, max_tokens=3, sampler=sampler, ess_threshold=1.0),
            target,
        )


def test_a_model_wider_than_the_vocabulary_and_one_narrower():
    """Ids that only one of the two knows are never drawn, and their mass is missing from the weights."""
    for width in (2, 5):
        model = TableModel.random(3, width=width, eos_ids=[])
        with np.errstate(divide="ignore"):
            padded = TableModel(
                lambda tokens: np.concatenate([model.logprobs(tokens), np.full(3, -math.inf)])[:3], width=3
            )
        potential = Listed({(0,): 0.0, (1, 1): 0.0}) if width == 5 else HARD
        target = truth(padded, potential, None, 3) if width == 5 else {}
        hold(lambda chance: smc(chance, model, PROMPT, potential, n=2, max_tokens=3, sampler=Direct()), target)


def test_n_is_one():
    """One particle has nothing to resample against, and its weight is the importance weight."""

    def outcomes(threshold):
        return [
            (round(p, 14), population.particles[0].tokens, round(population.log_ml, 12))
            for p, population in enumerate_choices(
                lambda chance: smc(
                    chance, MODEL, PROMPT, HARD, n=1, max_tokens=3, sampler=Direct(), ess_threshold=threshold
                )
            )
        ]

    assert outcomes(0.0) == outcomes(1.0)


def test_nothing_fits():
    """No text of the language has so few tokens: every particle dies, the evidence is 0, and nothing is NaN."""
    long = Listed({(0, 0, 0, 0): 0.0})
    for run in (smc, importance, smc_steer):
        for sampler, n in ((Direct(), 2), (RECURSIVE, 1)):
            options = {"expansions": n} if run is smc_steer else {}
            for _, population in enumerate_choices(
                lambda chance: run(chance, MODEL, PROMPT, long, n=n, max_tokens=3, sampler=sampler, **options)
            ):
                assert population.log_ml == -math.inf and population.ess == 0
                assert not population.posterior() and not np.isnan(population.weights).any()


def error_moments(run):
    """The variance of the estimate of Z, and what its errors say of it: E[(Z' error)^2]."""
    mean = square = said = 0.0
    for probability, population in enumerate_choices(run):
        estimate = math.exp(population.log_ml)
        mean += probability * estimate
        square += probability * estimate**2
        # One family is all there is: nothing is known, which counts as the estimate itself.
        said += probability * (estimate * min(population.log_ml_error, 1.0)) ** 2 if estimate else 0.0
    return square - mean**2, said


@pytest.mark.parametrize("potential", [HARD, SOFT], ids=["hard", "soft"])
@pytest.mark.parametrize("n", [2, 3])
def test_the_error_of_importance_sampling_is_unbiased(potential, n):
    """E[(Z' error)^2] = Var Z', but for populations of which one particle has all the weight."""
    variance, said = error_moments(
        lambda chance: importance(chance, MODEL, PROMPT, potential, n=n, max_tokens=2, sampler=Direct())
    )
    assert variance > 1e-3 and said == pytest.approx(variance, rel=SUMS)


@pytest.mark.parametrize("way", each(RESAMPLERS, 2), ids=lambda way: way.__name__)
@pytest.mark.parametrize("threshold", [0.0, 0.9, 1.0])
def test_the_error_of_smc_is_no_smaller_than_the_truth(way, threshold):
    def run(chance):
        options = {"n": 2, "max_tokens": 3, "sampler": Direct(), "resample": way, "ess_threshold": threshold}
        return smc(chance, MODEL, PROMPT, HARD, critic=CRITIC, **options)

    variance, said = error_moments(run)
    # Families that resampling thins out by chance look like variance: with two particles that is most of what is said.
    assert variance > 1e-4 and said >= (1 - 1e-9) * variance
    if not threshold:
        assert said == pytest.approx(variance, rel=SUMS)


def test_populations_that_are_joined():
    runs = [smc(seed, MODEL, PROMPT, HARD, n=n, max_tokens=3) for seed, n in enumerate([4, 4, 8, 2])]
    joined = pooled(runs)
    estimates = np.exp([run.log_ml for run in runs])
    assert len(joined) == 18 and math.exp(joined.log_ml) == pytest.approx(estimates.mean())
    assert np.exp(joined.logw).mean() == pytest.approx(estimates.mean())
    for text in {particle.tokens for run in runs for particle in run}:
        each = [
            np.mean([math.exp(particle.logw) if particle.tokens == text else 0.0 for particle in run]) for run in runs
        ]
        there = [math.exp(particle.logw) if particle.tokens == text else 0.0 for particle in joined]
        assert np.mean(there) == pytest.approx(np.mean(each))
    expected = estimates.std(ddof=1) / math.sqrt(4) / estimates.mean()
    assert joined.log_ml_error == pytest.approx(expected)
    assert math.isinf(pooled(runs[:1]).log_ml_error)
    assert math.isinf(smc_steer(0, MODEL, PROMPT, HARD, n=2, max_tokens=3).log_ml_error)
    with pytest.raises(ValueError, match="no populations"):
        pooled([])
