"""Models as potentials, powers and normalisation, against sums over all texts."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import guided
from guided.infer import AWRS, Direct, ModelPotential, Potential, TextScorer, exact, smc
from guided.infer.potentials import model_potential
from guided.infer.potentials.potential import as_potential
from guided.lm import TableModel
from guided.testing import check_potential
from guided.testing.enumeration import enumerate_choices
from tests.amounts import ALL
from tests.tolerances import DOUBLE, SUMS

VOCABULARY = guided.Vocabulary.from_tokens([b"a", b"b", None, None], eos_ids=[3])
TWO_ENDS = guided.Vocabulary.from_tokens([b"a", b"b", None, None], eos_ids=[2, 3])
MODEL = TableModel.random(3, width=4)
OTHER = TableModel.random(4, width=4)
CONSTRAINT = guided.compile(guided.regex("(ab|b)*a?"), VOCABULARY)
TEXTS = [text for length in range(3) for text in itertools.product(range(2), repeat=length)]


def logp(table, prompt, text, end=3):
    return sum(table.logprobs((*prompt, *text[:t]))[token] for t, token in enumerate((*text, end)))


@pytest.mark.parametrize("vocabulary", [VOCABULARY, TWO_ENDS], ids=["one end", "two ends"])
def test_the_laws(vocabulary):
    scorer = TextScorer(vocabulary, lambda texts: [0.1 * len(text) for text in texts])
    for potential in (
        ModelPotential(OTHER, (0, 1), vocabulary),
        ModelPotential(OTHER, (0, 1), vocabulary) ** 0.5,
        ModelPotential(OTHER, (1,), vocabulary) * scorer**3,
        (ModelPotential(OTHER, (1,), vocabulary) * scorer).normalize(),
        ModelPotential(OTHER, (1,), vocabulary) * guided.compile(guided.regex("(ab|b)*a?"), vocabulary),
    ):
        check_potential(potential, length=6 if ALL else 4)


def test_prompt_intersection_is_exact():
    """Texts weigh p(x | prompt) q(x | another prompt), and smc gets the evidence of it, all choices summed over."""
    potential = ModelPotential(OTHER, (1, 0), VOCABULARY) * CONSTRAINT
    allowed = as_potential(CONSTRAINT)
    target = {
        (*text, 3): math.exp(logp(MODEL, (0,), text) + logp(OTHER, (1, 0), text))
        for text in TEXTS
        if allowed.complete(text) == 0
    }
    found = exact(MODEL, (0,), potential, max_tokens=3)
    assert math.exp(found.log_ml) == pytest.approx(math.fsum(target.values()), rel=SUMS)
    weights = dict.fromkeys(target, 0.0)
    for probability, population in enumerate_choices(
        lambda chance: smc(chance, MODEL, (0,), potential, n=2, max_tokens=3, sampler=Direct(), ess_threshold=1.0)
    ):
        for particle in population:
            if particle.logw > -math.inf:
                weights[particle.tokens] += probability * math.exp(particle.logw) / 2
    assert weights == pytest.approx(target, rel=SUMS)


def test_a_step_is_one_pass():
    potential = ModelPotential(OTHER, (1, 0), VOCABULARY) * CONSTRAINT
    before = OTHER.calls.passes
    population = smc(0, MODEL, (0,), potential, n=8, max_tokens=5)
    assert population.log_ml > -math.inf
    # The prompt, and a pass for each step whose token was not the last.
    assert OTHER.calls.passes - before <= 1 + 4


@pytest.mark.parametrize("remembered", [1, 3, 512])
def test_rows_that_were_forgotten_are_computed_again(remembered, monkeypatch):
    monkeypatch.setattr(model_potential, "REMEMBERED", remembered)
    potential = ModelPotential(OTHER, (1,), VOCABULARY)
    rng = np.random.default_rng(0)
    for _ in range(100):
        some = [tuple(rng.integers(0, 2, rng.integers(0, 6)).tolist()) for _ in range(3)]
        rows = potential.logw_next_each(some)
        for text, row, prefix, whole in zip(
            some, rows, potential.prefix_each(some), potential.complete_each(some), strict=True
        ):
            expected = OTHER.logprobs((1, *text))
            np.testing.assert_allclose(row[[0, 1, 3]], expected[[0, 1, 3]], atol=DOUBLE)
            assert whole == pytest.approx(logp(OTHER, (1,), text), abs=DOUBLE)
            assert prefix == pytest.approx(whole - expected[3], abs=DOUBLE)


def test_ends_are_one_event():
    potential = ModelPotential(OTHER, (), TWO_ENDS)
    for text in TEXTS:
        both = np.logaddexp(logp(OTHER, (), text, 2), logp(OTHER, (), text, 3))
        assert potential.complete(text) == pytest.approx(both, abs=DOUBLE)


def test_powers():
    scorer = TextScorer(VOCABULARY, lambda texts: [len(text) - 1.0 for text in texts])
    for text in TEXTS:
        assert (scorer**2.5).complete(text) == pytest.approx(2.5 * scorer.complete(text))
    power = as_potential(CONSTRAINT) ** 7
    assert power.boolean and power.has_masks
    runs = [smc(1, MODEL, (0,), each, n=4, max_tokens=4, sampler=AWRS()) for each in (power, CONSTRAINT)]
    assert runs[0].particles == runs[1].particles
    for exponent in (0, -1, math.inf, math.nan):
        with pytest.raises(ValueError, match="power"):
            scorer**exponent


def test_a_normalised_product_is_a_product_of_experts():
    """Token by token, by hand; and over all texts it sums to 1, the last token's end included."""
    product = ModelPotential(MODEL, (0,), VOCABULARY) * ModelPotential(OTHER, (1,), VOCABULARY) ** 2
    experts = product.normalize()
    for text in TEXTS:
        scores = MODEL.logprobs((0, *text)) + 2 * OTHER.logprobs((1, *text))
        scores[2] = -np.inf
        expected = scores - np.logaddexp.reduce(scores)
        np.testing.assert_allclose(experts.logw_next(text), expected, atol=SUMS)
    unfinished = [math.exp(experts.prefix(text)) for text in TEXTS if len(text) == 2]
    ended = [math.exp(experts.complete(text)) for text in TEXTS if len(text) < 2]
    assert sum(unfinished) + sum(ended) == pytest.approx(1, abs=SUMS)


def test_what_cannot_go_on_stays_forbidden():
    stuck = (as_potential(CONSTRAINT) * ModelPotential(OTHER, (), VOCABULARY)).normalize()
    assert stuck.prefix((0, 0)) == -math.inf and stuck.complete((0, 0)) == -math.inf
    assert (stuck.logw_next((0, 0)) == -math.inf).all()


class Batches(Potential[bytes]):
    """Counts how many states it is asked about at a time."""

    vocabulary = VOCABULARY
    has_rows = True

    def __init__(self):
        self.asked = []

    def start(self):
        return b""

    def advance(self, state, token):
        return state + bytes([token])

    def prefix_at(self, state):
        return 0.0

    def complete_at(self, state):
        return 0.0

    def logw_next_each(self, states):
        self.asked.append(len(states))
        return np.repeat(np.where(self.usable, 0.0, -np.inf)[None], len(states), axis=0)


def test_states_are_asked_about_together():
    batches = Batches()
    smc(0, MODEL, (0,), batches, n=16, max_tokens=4, ess_threshold=0.0)
    assert len(batches.asked) <= 3 and max(batches.asked) > 1
