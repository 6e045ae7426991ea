"""Minimum Bayes risk by brute force; the consensus game number by number, and at its equilibrium."""

from __future__ import annotations

import math

import numpy as np
import pytest

import guided
from guided.errors import GuidedError
from guided.infer import exact, smc
from guided.lm import TableModel
from guided.search import consensus_game, exact_match, minimum_bayes_risk, word_f1
from tests.amounts import some

VOCABULARY = guided.Vocabulary.from_tokens([b"a", b"b", b" ", None], eos_ids=[3])
MODEL = TableModel.random(9, width=4)
GRAMMAR = guided.compile(guided.regex("(a|b)( (a|b)){0,2}"), VOCABULARY)


@pytest.mark.parametrize("utility", [exact_match, word_f1, lambda a, b: -abs(len(a) - len(b))])
def test_the_least_risk_is_brute_force(utility):
    texts = exact(MODEL, (0,), GRAMMAR, max_tokens=6).posterior()
    assert len(texts) == 14
    expected = {one: sum(p * utility(one, other) for other, p in texts.items()) for one in texts}
    found = minimum_bayes_risk(texts, utility)
    assert {each.text: each.utility for each in found} == pytest.approx(expected)
    assert found[0].utility == max(each.utility for each in found)
    if utility is exact_match:
        assert found[0].text == max(texts, key=texts.__getitem__) and found[0].probability == found[0].utility


def test_samples_come_near_to_it():
    whole = minimum_bayes_risk(exact(MODEL, (0,), GRAMMAR, max_tokens=6).posterior())
    drawn = minimum_bayes_risk(smc(0, MODEL, (0,), GRAMMAR, n=400, max_tokens=6))
    risks = {each.text: each.utility for each in whole}
    assert risks[drawn[0].text] > whole[0].utility - 0.05
    some = minimum_bayes_risk({"a": 3, "b": 1}, exact_match, candidates=["b", "c", "b"])
    assert [(each.text, each.utility) for each in some] == [("b", 0.25), ("c", 0.0)]


@pytest.mark.parametrize("wrong", [{}, {"a": 0.0}, {"a": -1.0, "b": 3.0}])
def test_nothing_to_choose_among(wrong):
    with pytest.raises(GuidedError, match="no samples"):
        minimum_bayes_risk(wrong)


def test_words_that_are_shared():
    assert word_f1("", "") == 1.0 and word_f1("a", "") == 0.0 and word_f1("a b", "b a") == 1.0
    assert word_f1("a a a", "a b") == pytest.approx(2 * (1 / 3) * (1 / 2) / (1 / 3 + 1 / 2))


def slow_game(generator, discriminator, rounds, rate, stay):
    """Equations 4 to 7 of the paper, for each candidate and each signal by itself."""
    n = len(generator[0])
    start_g = [[math.exp(x) / sum(map(math.exp, row)) for x in row] for row in generator]
    start_d = [
        [math.exp(discriminator[v][y]) / sum(math.exp(discriminator[u][y]) for u in (0, 1)) for y in range(n)]
        for v in (0, 1)
    ]
    g, d = [start_g], [start_d]
    for t in range(1, rounds + 1):
        q_g = [[sum(d[s][v][y] for s in range(t)) / (2 * t) for y in range(n)] for v in (0, 1)]
        q_d = [[sum(g[s][v][y] for s in range(t)) / (2 * t) for y in range(n)] for v in (0, 1)]

        def step(q, start, t=t):
            return math.exp((q + stay * math.log(start)) / (1 / (rate * t) + stay))

        new_g = [[step(q_g[v][y], start_g[v][y]) for y in range(n)] for v in (0, 1)]
        new_d = [[step(q_d[v][y], start_d[v][y]) for y in range(n)] for v in (0, 1)]
        g.append([[x / sum(row) for x in row] for row in new_g])
        d.append([[new_d[v][y] / (new_d[0][y] + new_d[1][y]) for y in range(n)] for v in (0, 1)])
    return g[-1], d[-1]


@pytest.mark.parametrize("seed", range(3))
def test_the_game_is_the_papers(seed):
    rng = np.random.default_rng(seed)
    generator, discriminator = rng.normal(size=(2, 4)), rng.normal(size=(2, 4))
    found = consensus_game(generator, discriminator, rounds=12, rate=0.3, stay=0.2)
    slow_g, slow_d = slow_game(generator.tolist(), discriminator.tolist(), 12, 0.3, 0.2)
    np.testing.assert_allclose(found.generator, slow_g)
    np.testing.assert_allclose(found.discriminator, slow_d)


def test_the_game_comes_to_rest():
    """Each policy is then the best answer to the other, held near where it began: pi ~ start exp(Q / stay)."""
    rng = np.random.default_rng(1)
    generator, discriminator = rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
    found = consensus_game(generator, discriminator, rounds=some(20_000, 2), stay=1.0)
    answer_g = np.exp(found.discriminator / 2 + generator)
    answer_d = np.exp(found.generator / 2 + discriminator)
    # Means of all rounds are behind by some rounds in 20,000.
    np.testing.assert_allclose(found.generator, answer_g / answer_g.sum(1, keepdims=True), atol=1e-3)
    # As above.
    np.testing.assert_allclose(found.discriminator, answer_d / answer_d.sum(0, keepdims=True), atol=1e-3)


def test_agreement_decides():
    """The generator alone likes the first, the discriminator alone the last; both like the second well enough."""
    generator = np.log([[0.3, 0.3, 0.4], [0.5, 0.45, 0.05]])
    discriminator = np.log([[0.8, 0.2, 0.1], [0.2, 0.8, 0.9]])
    found = consensus_game(generator, discriminator)
    assert found.by_discriminator[0] == found.by_generator[0] == 1
    still = consensus_game(generator, discriminator, stay=1e6)
    assert still.by_generator == [0, 1, 2] and still.by_discriminator == [2, 1, 0]


@pytest.mark.parametrize(
    ("generator", "discriminator", "options"),
    [
        ([[0.0]], [[0.0]], {}),
        ([[0.0, 1.0], [0.0, 1.0]], [[0.0], [0.0]], {}),
        ([[-math.inf, -math.inf], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]], {}),
        ([[math.nan, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]], {}),
        ([[0.0], [0.0]], [[0.0], [0.0]], {"stay": 0.0}),
    ],
)
def test_policies_that_are_none(generator, discriminator, options):
    with pytest.raises(GuidedError):
        consensus_game(generator, discriminator, **options)
