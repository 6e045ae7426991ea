"""RS, ARS and CARS with every random choice enumerated: each attempt is kept as x with probability p(x) over the bound."""

from __future__ import annotations

import itertools
import math
import warnings
from collections import defaultdict

import pytest

from guided.errors import LimitError
from guided.infer.errors import FewSamplesWarning
from guided.infer.sequences.asap import asap
from guided.infer.sequences.attempts import Evidence
from guided.infer.sequences.cars import Learning, Unmasked, cars
from guided.infer.sequences.exploration import Exploration
from guided.infer.sequences.rejection import rejection
from guided.infer.sequences.visited import ROOT
from tests.amounts import ALL, crossed, mostly_slow
from tests.tolerances import DOUBLE, SUMS
from tests.twin.enumeration import enumerate_choices
from tests.twin.tiny_problems import PATTERNS, problem, soft_problem


def bound(exploration, learning):
    return 1.0 if learning is Learning.NOTHING else math.exp(exploration.trie.log_value[ROOT])


def attempts(tiny, learning, rounds):
    """For each history: its probability, what each attempt kept, and the bound at the time."""

    def run(chance):
        exploration = Exploration(*tiny.arguments, max_tokens=tiny.max_tokens)
        walk = Unmasked(exploration, learning, chance)
        found, bounds = [], []
        for size in rounds:
            bounds += [bound(exploration, learning)] * size
            found += [exploration.trie.tokens(each.node) if each.kept else None for each in walk.attempts(size)]
        return found, bounds

    histories = list(enumerate_choices(run))
    assert math.fsum(probability for probability, _ in histories) == pytest.approx(1, abs=SUMS)
    return [(probability, *history) for probability, history in histories]


@pytest.mark.parametrize(("pattern", "learning"), crossed(["ab|ba|b", "a*b", "(ab)*", "a{1,2}b?"], Learning, share=6))
def test_each_attempt_is_proper_whatever_was_learned(learning, pattern):
    tiny = problem(pattern, seed=len(pattern), max_tokens=3)
    expected = [defaultdict(float) for _ in range(2)]
    for probability, found, bounds in attempts(tiny, learning, [1, 1]):
        for i, tokens in enumerate(found):
            expected[i][tokens] += probability * bounds[i]
    for of_attempt in expected:
        of_attempt.pop(None, None)
        assert of_attempt == pytest.approx(tiny.weights(), abs=SUMS)


@pytest.mark.parametrize("learning", mostly_slow([*Learning][::-1], 1))
def test_attempts_side_by_side_are_independent(learning):
    tiny = problem("b|ab", seed=1, max_tokens=2)
    pairs = defaultdict(float)
    for probability, found, bounds in attempts(tiny, learning, [1, 2]):
        pairs[tuple(found[1:])] += probability * bounds[1] * bounds[2]
    weights = tiny.weights()
    both = {pair: value for pair, value in pairs.items() if None not in pair}
    assert len(both) == 4
    assert both == pytest.approx({(x, y): weights[x] * weights[y] for x in weights for y in weights}, abs=SUMS)


@pytest.mark.parametrize(("learning", "batch"), crossed(Learning, [1, 2], share=6))
def test_the_sample_that_is_kept_first_has_the_target_distribution(learning, batch):
    # One text is longer than the other: of two that are kept side by side the shorter must not be preferred.
    tiny = problem("b|bb", seed=4, max_tokens=3)
    found = defaultdict(float)

    def run(chance):
        try:
            return cars(
                chance, *tiny.arguments, n=1, max_tokens=3, learning=learning, batch=batch, max_attempts=3 if ALL else 2
            )
        except LimitError:
            return None

    for probability, samples in enumerate_choices(run):
        if samples is not None:
            found[samples.particles[0].tokens] += probability
    total = math.fsum(found.values())
    assert 0.1 < total <= 1
    assert {tokens: share / total for tokens, share in found.items()} == pytest.approx(tiny.target(), abs=SUMS)


@pytest.mark.parametrize("make", [problem, soft_problem])
def test_rejection_keeps_the_target(make):
    tiny = make("a*b", seed=2, max_tokens=3)
    if make is soft_problem:
        # No weight above 1: the largest complete weight is subtracted.
        tiny.potential.factors = tuple(abs(factor) for factor in tiny.potential.factors)
    found = defaultdict(float)

    def run(chance):
        try:
            return rejection(chance, *tiny.arguments, n=1, max_tokens=3, max_attempts=2, batch=1)
        except LimitError:
            return None

    for probability, samples in enumerate_choices(run):
        if samples is not None:
            found[samples.particles[0].tokens] += probability
    total = math.fsum(found.values())
    assert {tokens: share / total for tokens, share in found.items()} == pytest.approx(tiny.target(), abs=SUMS)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_first_sequence_of_asap_is_masked_sampling(pattern):
    tiny = problem(pattern, seed=3)
    found = defaultdict(float)

    def run(chance):
        try:
            return asap(chance, *tiny.arguments, n=1, max_tokens=4, max_attempts=1)
        except LimitError:
            return None

    for probability, samples in enumerate_choices(run):
        if samples is not None:
            found[samples.particles[0].tokens] += probability
    assert found == pytest.approx(tiny.masked(), abs=DOUBLE)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_second_sequence_of_asap_follows_the_formula(pattern):
    tiny = problem(pattern, seed=3, max_tokens=3)
    found = defaultdict(float)

    def run(chance):
        kept = []
        asap(chance, *tiny.arguments, n=2, max_tokens=3, max_attempts=2, progress=lambda r: kept.extend(r.particles))
        return tuple(particle.tokens if particle.finished else None for particle in kept)

    def total_of(run, chance):
        try:
            return run(chance)
        except LimitError:
            return None

    for probability, pair in enumerate_choices(lambda chance: total_of(run, chance)):
        found[pair] += probability
    for (first, second), probability in [(pair, p) for pair, p in found.items() if pair and None not in pair]:
        chain = tiny.masked()[first]
        for i, token in enumerate(second):
            shares = {v: w * value(tiny, (*second[:i], v), first) for v, w in step(tiny, second[:i]).items()}
            chain *= shares[token] / math.fsum(shares.values())
        assert probability == pytest.approx(chain, abs=DOUBLE)


def step(tiny, tokens):
    """The model's probabilities of the tokens that may follow."""
    logs, allowed = tiny.model.logprobs(tiny.prompt + tokens), tiny.potential.logw_next(tokens)
    last = len(tokens) == tiny.max_tokens - 1
    return {v: math.exp(logs[v]) for v in range(4) if allowed[v] == 0 and (v == 3 or not last)}


def value(tiny, tokens, visited):
    """The expected future of a prefix by the paper's recursion, when one sequence has been visited."""
    if tokens[-1] == 3 or visited[: len(tokens)] != tokens:
        return 1.0
    return math.fsum(share * value(tiny, (*tokens, v), visited) for v, share in step(tiny, tokens).items())


@pytest.mark.parametrize(
    ("make", "n", "max_attempts", "batch"),
    [
        (problem, 2, 2, 1),
        (soft_problem, 2, 2, 2),
        *(pytest.param(problem, 2, 3, batch, marks=pytest.mark.slow) for batch in (1, 2)),
    ],
)
def test_the_evidence_of_rejection_is_unbiased(make, n, max_attempts, batch):
    """Over every random choice, whichever of the two rules ended it, and however many were drawn side by side."""
    tiny = make("b|a", seed=2, max_tokens=2)
    if make is soft_problem:
        tiny.potential.factors = tuple(abs(factor) for factor in tiny.potential.factors)

    def run(chance):
        options = {"n": n, "max_tokens": 2, "max_attempts": max_attempts, "batch": batch}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FewSamplesWarning)
            try:
                return rejection(chance, *tiny.arguments, **options)
            except LimitError:
                return None

    mean = total = square = 0.0
    for probability, samples in enumerate_choices(run):
        total += probability
        if samples is not None:
            assert samples.missing == n - len(samples)
            estimate = math.exp(samples.log_ml)
            mean += probability * estimate
            square += probability * estimate**2
    z = math.fsum(tiny.weights().values())
    assert total == pytest.approx(1, abs=SUMS) and mean == pytest.approx(z, abs=SUMS)
    assert square - mean**2 > 0.001


@pytest.mark.parametrize("n", [2, 3, 5])
@pytest.mark.parametrize("most", [5, 8])
@pytest.mark.parametrize("z", [0.1, 0.7])
def test_evidence_and_its_variance_are_unbiased(n, most, z):
    """Over every sequence of attempts kept or not: E[estimate] = Z, and E[estimate^2 error^2] is its variance or less.

    Where ``most`` ends it early, with one trial no spread is known, and with n kept nothing else is left out.
    """
    mean = square = said = 0.0
    for kept in itertools.product([False, True], repeat=most):
        probability = math.prod(z if each else 1 - z for each in kept)
        places = [place for place, each in enumerate(kept, 1) if each]
        if len(places) < n:
            found = Evidence().after(most, [0.0] * len(places), -math.inf)
        else:
            found = Evidence().after(places[n - 1] - 1, [0.0] * (n - 1), 0.0)
        if found.log_ml is not None:
            estimate = math.exp(found.log_ml)
            mean += probability * estimate
            square += probability * estimate**2
            if found.log_ml_error < math.inf:
                said += probability * (estimate * found.log_ml_error) ** 2
    assert mean == pytest.approx(z, abs=DOUBLE)
    variance = square - mean**2
    assert said <= variance * 1.25 and (n == 2 or said >= 0.6 * variance)
