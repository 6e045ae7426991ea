"""Steering, a hard constraint and proper weights together: the target is steered(x) [x in L], to the last digit.

The target is written out from the steerers' formulas in plain floats; enumeration, importance sampling, AWRS and SMC on
the steered model must all arrive at it.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest

import guided
from guided.infer import AWRS, Direct, Estimator, exact, importance, smc
from guided.lm import TableModel
from guided.steer import RAD, ClassifierFree, Contrastive, Product, Replaced, Stack, TextReward
from guided.testing.enumeration import enumerate_choices
from guided.vocab import Vocabulary
from tests.tolerances import SUMS

VOCABULARY = Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
MODEL, OTHER = TableModel.random(11, width=3), TableModel.random(12, width=3)
PROMPT = (0, 1)
MAX_TOKENS = 3


def softmax(row):
    exps = [math.exp(value) if value > -math.inf else 0.0 for value in row]
    return [value / sum(exps) for value in exps]


def reward(texts):
    return [text.count("b") / (len(text) + 1) for text in texts]


def spelled(tokens):
    return "".join("ab$"[token] for token in tokens)


def product(text):
    return [a + 0.7 * b for a, b in zip(MODEL.logprobs(PROMPT + text), OTHER.logprobs(PROMPT + text))]


def contrastive(text):
    own, other = MODEL.logprobs(PROMPT + text), OTHER.logprobs(PROMPT + text)
    return [1.5 * a - 0.5 * b if a >= max(own) + math.log(0.1) else -math.inf for a, b in zip(own, other)]


def guidance_then_reward(text):
    own, negative = MODEL.logprobs(PROMPT + text), MODEL.logprobs((1, *text))
    guided_ = [2 * a - b for a, b in zip(own, negative)]
    return [value + 2 * reward([spelled((*PROMPT, *text, token))])[0] for token, value in enumerate(guided_)]


CASES = {
    "product": ([Product((OTHER,), (1.0, 0.7))], product),
    "contrastive": ([Contrastive(OTHER)], contrastive),
    "guidance, then a reward": (
        [ClassifierFree(2.0, Replaced((1,))), RAD(TextReward(reward, spelled), beta=2.0, top_k=3)],
        guidance_then_reward,
    ),
}


@pytest.fixture(params=CASES, scope="module")
def case(request):
    """The steered model, the constraint, and the target's weights of each sequence with its end."""
    steerers, formula = CASES[request.param]
    constraint = guided.compile(guided.regex("a?b|ba|a"), VOCABULARY)
    language = {"ab", "b", "ba", "a"}
    target = {}
    for length in range(MAX_TOKENS):
        for text in itertools.product((0, 1), repeat=length):
            if spelled(text) in language:
                whole = (*text, 2)
                p = math.prod(softmax(formula(whole[:n]))[whole[n]] for n in range(len(whole)))
                if p:
                    target[whole] = p
    return Stack(steerers).over(MODEL), constraint, target


def test_enumeration(case):
    model, constraint, target = case
    found = exact(model, PROMPT, constraint, max_tokens=MAX_TOKENS)
    weights = {particle.tokens: math.exp(particle.logw) for particle in found.particles}
    assert set(weights) == set(target)
    for text, value in target.items():
        assert weights[text] == pytest.approx(value, rel=SUMS)


def expected_weights(run):
    found, total = defaultdict(float), 0.0
    for probability, population in enumerate_choices(run):
        total += probability
        for particle in population:
            if particle.logw > -math.inf:
                found[particle.tokens] += probability * math.exp(particle.logw) / len(population)
    assert total == pytest.approx(1.0, abs=SUMS)
    return found


@pytest.mark.parametrize("sampler", [Direct(), AWRS(estimator=Estimator.RECURSIVE)], ids=["direct", "awrs"])
def test_importance_sampling(case, sampler):
    model, constraint, target = case
    found = expected_weights(
        lambda chance: importance(chance, model, PROMPT, constraint, n=1, max_tokens=MAX_TOKENS, sampler=sampler)
    )
    assert set(found) == set(target)
    for text, value in target.items():
        assert found[text] == pytest.approx(value, abs=SUMS)


def test_smc(case):
    model, constraint, target = case
    found = expected_weights(
        lambda chance: smc(
            chance, model, PROMPT, constraint, n=2, max_tokens=MAX_TOKENS, sampler=Direct(), ess_threshold=1.0
        )
    )
    for text, value in target.items():
        assert found[text] == pytest.approx(value, abs=SUMS)


def test_smc_draws(case):
    """The same by drawing, with more particles than can be enumerated: a smoke test of the estimate of Z."""
    model, constraint, target = case
    estimates = [
        math.exp(smc(np.random.default_rng(seed), model, PROMPT, constraint, n=8, max_tokens=MAX_TOKENS).log_ml)
        for seed in range(60)
    ]
    spread = np.std(estimates) / math.sqrt(len(estimates))
    # Four standard errors.
    assert np.mean(estimates) == pytest.approx(sum(target.values()), abs=4 * spread + 1e-9)
