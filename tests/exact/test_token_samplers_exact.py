"""Every random choice of every token sampler enumerated: E[w 1{x = v}] = p(v) exp(logw_next(v)) for each token."""

# ruff: noqa: B023

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest

from guided.infer.distribution import TokenDistribution
from guided.infer.potentials.potential import Potential
from guided.infer.token_samplers.awrs import AWRS, Estimator
from guided.infer.token_samplers.set_samplers import EagerSets, TopKSets
from guided.infer.token_samplers.token_sampler import Direct
from guided.testing.enumeration import enumerate_choices
from guided.vocab import Vocabulary
from tests.amounts import crossed, each, mostly_slow, some
from tests.tolerances import DOUBLE, SUMS

VOCABULARY = Vocabulary.from_tokens([b"a", b"b", b"c", b"d", None], eos_ids=[4])
SILENT = Vocabulary.from_tokens([b"a", b"b", None, b"d", None], eos_ids=[4])

ROWS = {
    "flat": [0.25, 0.2, 0.2, 0.15, 0.2],
    "peaked": [0.7, 0.1, 0.1, 0.05, 0.05],
    "steep": [0.9, 0.09, 0.009, 0.0009, 0.0001],
    "holes": [0.5, 0.0, 0.3, 0.0, 0.2],
    "sure": [1.0, 0.0, 0.0, 0.0, 0.0],
}


class OneStep(Potential):
    """Weights of the next token, whatever came before."""

    def __init__(self, weights, vocabulary=VOCABULARY, *, masks=False, impossible=None):
        self.vocabulary, self.weights, self.masks, self.impossible = vocabulary, weights, masks, impossible
        self.asked = 0
        self.has_masks = masks

    @property
    def boolean(self):
        return set(self.weights) <= {0.0, -math.inf}

    def start(self):
        return -1

    def advance(self, state, token):
        return token

    def prefix_at(self, state):
        return 0.0 if state < 0 else self.weights[state]

    def complete_at(self, state):
        return self.weights[4]

    def possible_at(self, state):
        if self.impossible is None:
            return None
        self.asked += 1
        return np.array([token not in self.impossible for token in range(self.vocabulary.size)])

    def allowed_each(self, states):
        return (
            np.repeat((np.array(self.weights) > -math.inf)[None] & self.usable, len(states), 0) if self.masks else None
        )


def row(probabilities):
    with np.errstate(divide="ignore"):
        return TokenDistribution(np.log(np.array(probabilities)))


def potential_of(allowed, vocabulary=VOCABULARY, **options):
    return OneStep([0.0 if token in allowed else -math.inf for token in range(5)], vocabulary, **options)


def expected_weights(sampler, distribution, potential, **options):
    """E[w 1{x = v}] for each v, by enumeration."""
    found = np.zeros(5)
    total = 0.0
    for probability, draw in enumerate_choices(
        lambda chance: sampler.sample(chance, distribution, potential, potential.start(), options.get("proposal")),
        failures=options.get("failures", 60),
    ):
        assert not math.isnan(draw.logw) and draw.logw < math.inf
        total += probability
        found[draw.token] += probability * math.exp(draw.logw)
    assert total == pytest.approx(1, abs=DOUBLE)
    return found


def truth(probabilities, potential):
    usable = potential.usable
    return np.array([p * math.exp(w) * u for p, w, u in zip(probabilities, potential.weights, usable, strict=True)])


EVERY = [set(some) for size in range(6) for some in itertools.combinations(range(5), size)]
SOME = [set(), {0}, {2, 4}, {1, 3}, {0, 1, 4}, {1, 2, 3, 4}, {0, 1, 2, 3, 4}]

FINITE = {
    "direct": Direct(),
    "recursive": AWRS(estimator=Estimator.RECURSIVE),
    "recursive, 2 rejects": AWRS(estimator=Estimator.RECURSIVE, max_rejects=2),
    "recursive, 3 rejects": AWRS(estimator=Estimator.RECURSIVE, max_rejects=3),
    "two loops": AWRS(estimator=Estimator.TWO_LOOPS),
    "geometric, 2 rejects": AWRS(estimator=Estimator.GEOMETRIC, max_rejects=2),
    "geometric, 4 rejects": AWRS(estimator=Estimator.GEOMETRIC, max_rejects=4),
    "3 accepts, 3 rejects": AWRS(max_accepts=3, max_rejects=3),
    "adaptive, 3 rejects": AWRS(max_rejects=3),
    "not pruned": AWRS(max_rejects=3, prune=False),
}

CHEAP = {"direct", "recursive, 2 rejects", "recursive, 3 rejects", "geometric, 2 rejects"}


@pytest.mark.parametrize(("name", "shape"), crossed(FINITE, ["peaked", "steep", "holes"], share=6))
def test_properly_weighted(name, shape):
    cheap = name in CHEAP
    for allowed in EVERY if cheap else SOME:
        for vocabulary in (VOCABULARY, SILENT) if cheap or len(allowed) == 3 else (VOCABULARY,):
            potential = potential_of(allowed, vocabulary)
            found = expected_weights(FINITE[name], row(ROWS[shape]), potential)
            np.testing.assert_allclose(found, truth(ROWS[shape], potential), atol=DOUBLE, err_msg=f"{allowed}")


NARROWING = [
    AWRS(estimator=Estimator.RECURSIVE),
    AWRS(estimator=Estimator.RECURSIVE, max_rejects=3),
    AWRS(estimator=Estimator.GEOMETRIC, max_rejects=4),
    AWRS(max_accepts=3, max_rejects=3),
]


@pytest.mark.parametrize(("after", "sampler"), crossed([1, 2], NARROWING, share=6))
def test_what_is_known_to_be_impossible_changes_no_expectation(sampler, after):
    asked = 0
    for shape in ("steep", "flat")[: some(2, 4)]:
        for allowed in each(SOME, 2):
            for impossible in ({0, 1}, {3}, {0, 1, 2, 3, 4}):
                potential = potential_of(allowed, impossible=impossible - allowed)
                found = expected_weights(dataclasses.replace(sampler, narrow_after=after), row(ROWS[shape]), potential)
                np.testing.assert_allclose(found, truth(ROWS[shape], potential), atol=DOUBLE, err_msg=f"{allowed}")
                asked += potential.asked
    assert asked > some(100, 8)


@pytest.mark.parametrize(("after", "before", "few"), crossed([None, 1, 2], [0.0, -math.inf], [0, 5], share=6))
def test_masks_change_no_expectation(monkeypatch, after, before, few):
    """Taken at once, after some rejections, or never; with one particle, or two that share a prefix."""
    monkeypatch.setattr("guided.infer.token_samplers.awrs.FEW", few)
    for options in ({}, {"max_rejects": 2}, {"max_rejects": 3}, {"masks": False, "max_rejects": 4}):
        sampler = AWRS(narrow_after=after, **options)
        for shape in ("flat", "steep"):
            for allowed in SOME:
                potential = potential_of(allowed, SILENT, masks=True)
                expected = truth(ROWS[shape], potential)
                if shape == "flat" or "max_rejects" in options:
                    found = np.zeros(5)
                    for probability, draw in enumerate_choices(
                        lambda chance: sampler.sample(chance, row(ROWS[shape]), potential, -1, None, before)
                    ):
                        found[draw.token] += probability * math.exp(draw.logw)
                    np.testing.assert_allclose(found, expected, atol=DOUBLE)
                if shape == "flat" and not options:
                    found = np.zeros((2, 5))
                    both = row(ROWS[shape])
                    for probability, draws in enumerate_choices(
                        lambda chance: sampler.sample_each(
                            chance, [both, both], potential, [-1, -1], None, [before, before]
                        )
                    ):
                        for each, draw in zip(found, draws, strict=True):
                            each[draw.token] += probability * math.exp(draw.logw)
                    np.testing.assert_allclose(found, [expected] * 2, atol=DOUBLE)


def test_weights_from_a_mask_are_exact():
    """What is left after the first rejection is all allowed: no second token is tested, and the weight is the mass."""
    potential = potential_of({1, 3}, masks=True)
    sampler = AWRS(masks=False, narrow_after=1)
    draws = [
        draw for _, draw in enumerate_choices(lambda chance: sampler.sample(chance, row(ROWS["flat"]), potential, -1))
    ]
    narrowed = [draw for draw in draws if draw.calls > draw.tested]
    assert {draw.token for draw in narrowed} == {1, 3} and len(narrowed) < len(draws)
    for draw in narrowed:
        assert (draw.calls, draw.tested, draw.accepted) == (3, 2, 1)
        assert draw.logw == pytest.approx(math.log(0.35), abs=DOUBLE)


def test_dear_masks_wait_and_weights_stay_exact(monkeypatch):
    """No draw is made from such a mask at once, and it is asked for behind a few rejections more."""
    monkeypatch.setattr("guided.infer.token_samplers.awrs.TRIES", 3)
    potential = potential_of({4}, masks=True)
    potential.masks_are_dear = True
    sampler = AWRS(narrow_after=1)
    found = expected_weights(sampler, row(ROWS["flat"]), potential)
    np.testing.assert_allclose(found, truth(ROWS["flat"], potential), atol=DOUBLE)
    draws = [
        draw for _, draw in enumerate_choices(lambda chance: sampler.sample(chance, row(ROWS["flat"]), potential, -1))
    ]
    assert {draw.tested for draw in draws if draw.calls > draw.tested} == {4}
    assert {draw.tested for draw in draws if draw.calls == draw.tested} == {2, 3, 4}


@pytest.mark.parametrize("accepts", mostly_slow([2, 3], 1))
@pytest.mark.parametrize("probabilities", [[0.95, 0.03, 0.02, 0, 0], [0.05, 0.9, 0.05, 0, 0], [0.3, 0.3, 0.4, 0, 0]])
def test_geometric_without_a_limit(accepts, probabilities):
    """Counts of failures have no upper end; what is taken together from 8 on has probability 0.05 ** 8 at most."""
    allowed = {token for token, p in enumerate(probabilities) if p >= 0.3 or (p == 0.05 and token)}
    sampler = AWRS(estimator=Estimator.GEOMETRIC, max_accepts=accepts)
    potential = potential_of(allowed)
    found = expected_weights(sampler, row(probabilities), potential, failures=8)
    np.testing.assert_allclose(found, truth(probabilities, potential), atol=SUMS)


@pytest.mark.parametrize(
    "name", each(["direct", "recursive", "two loops", "geometric, 4 rejects", "3 accepts, 3 rejects"], 2)
)
def test_a_proposal_changes_no_expectation(name):
    p, q = ROWS["peaked"], [0.1, 0.3, 0.2, 0.3, 0.1]
    for allowed in SOME:
        potential = potential_of(allowed)
        found = expected_weights(FINITE[name], row(p), potential, proposal=row(q))
        np.testing.assert_allclose(found, truth(p, potential), atol=DOUBLE, err_msg=f"{allowed}")


def test_direct_takes_weights_of_any_size():
    for weights in ([0.5, -1.0, -math.inf, 2.0, -0.3], [-800.0, -801.0, -math.inf, -802.0, -math.inf]):
        potential = OneStep(weights)
        for proposal in (None, row([0.1, 0.3, 0.2, 0.3, 0.1])):
            found = np.zeros(5)
            for probability, draw in enumerate_choices(
                lambda chance: Direct().sample(chance, row(ROWS["flat"]), potential, -1, proposal)
            ):
                found[draw.token] += probability * math.exp(draw.logw - max(weights))
            expected = [p * math.exp(w - max(weights)) for p, w in zip(ROWS["flat"], weights, strict=True)]
            np.testing.assert_allclose(found, expected, atol=DOUBLE)


@pytest.mark.parametrize("masks", [False, True])
def test_direct_with_and_without_masks(masks):
    for allowed in SOME:
        potential = potential_of(allowed, SILENT, masks=masks)
        found = expected_weights(Direct(), row(ROWS["peaked"]), potential)
        np.testing.assert_allclose(found, truth(ROWS["peaked"], potential), atol=DOUBLE)


def test_without_proper_weights_it_is_masking():
    sampler = AWRS(proper_weights=False)
    for allowed in EVERY[1:]:
        potential = potential_of(allowed)
        kept = truth(ROWS["flat"], potential)
        found = np.zeros(5)
        for probability, draw in enumerate_choices(
            lambda chance: sampler.sample(chance, row(ROWS["flat"]), potential, -1)
        ):
            assert draw.logw == 0
            found[draw.token] += probability
        np.testing.assert_allclose(found, kept / kept.sum(), atol=DOUBLE)


def test_all_allowed_weighs_exactly_what_was_pruned():
    for sampler in (AWRS(), AWRS(estimator=Estimator.TWO_LOOPS), AWRS(max_accepts=4), Direct()):
        potential = potential_of(range(5), SILENT)
        for _, draw in enumerate_choices(lambda chance: sampler.sample(chance, row(ROWS["flat"]), potential, -1)):
            assert draw.logw == pytest.approx(math.log(0.8), abs=DOUBLE)


def test_nothing_allowed_weighs_nothing_and_names_a_token_that_is_not_allowed():
    for sampler in (AWRS(), AWRS(estimator=Estimator.TWO_LOOPS), AWRS(max_accepts=4), AWRS(proper_weights=False)):
        outcomes = list(
            enumerate_choices(
                lambda chance: sampler.sample(chance, row(ROWS["flat"]), potential_of(()), -1), failures=1
            )
        )
        assert all(draw.logw == -math.inf and 0 <= draw.token < 5 for _, draw in outcomes)
        assert all(draw.tested == 5 and draw.accepted == 0 for _, draw in outcomes)


def test_calls_are_counted_once_a_token():
    draws = [
        draw
        for _, draw in enumerate_choices(lambda chance: AWRS().sample(chance, row(ROWS["sure"]), potential_of({0}), -1))
    ]
    assert [(draw.calls, draw.tested, draw.accepted) for draw in draws] == [(1, 1, 1)]


class Spelled(Potential):
    """Weights of byte strings and of their beginnings, over a vocabulary with tokens inside of others."""

    vocabulary = Vocabulary.from_tokens(
        [b"a", b"ab", b"b", b"abc", b"ab", None, None], eos_ids=[5], special_tokens={"<s>": 6}
    )

    def __init__(self, weights, end=0.0):
        self.weights, self.end = weights, end

    def start(self):
        return b""

    def advance(self, state, token):
        return state + (self.vocabulary.token_bytes(token) or b"?")

    def prefix_at(self, state):
        return self.weights.get(state, -math.inf) if state else 0.0

    def complete_at(self, state):
        return self.end

    def step_bytes(self, state, data):
        after = state + data
        value = self.prefix_at(after)
        return after, value - self.prefix_at(state) if value > -math.inf else -math.inf


@pytest.mark.parametrize("sampler", [EagerSets(), *map(TopKSets, (0, 1, 2, 3, 9))], ids=str)
def test_sets_are_properly_weighted(sampler):
    probabilities = np.array([0.3, 0.2, 0.1, 0.15, 0.05, 0.15, 0.05])
    for potential in (
        Spelled({b"a": 0.0, b"ab": 0.0, b"abc": 0.0, b"b": 0.0}),
        Spelled({b"a": 0.0, b"ab": 0.0}, end=-math.inf),
        Spelled({b"a": -1.0, b"ab": 0.4, b"abc": -2.0, b"b": 0.3}, end=-0.5),
        Spelled({b"b": 0.0}),
        Spelled({}, end=-math.inf),
    ):
        found = np.zeros(7)
        distribution = TokenDistribution(np.log(probabilities))
        for probability, draw in enumerate_choices(lambda chance: sampler.sample(chance, distribution, potential, b"")):
            found[draw.token] += probability * math.exp(draw.logw)
        expected = probabilities * np.exp(potential.logw_next_at(b""))
        np.testing.assert_allclose(found, expected, atol=DOUBLE)
