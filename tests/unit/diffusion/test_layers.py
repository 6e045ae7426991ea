"""Layers of states beside enumeration: best texts, marginals, draws, refusals, on random automata and real grammars."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import guided
from guided.diffusion import Constrained, Denoising, FixedBlocks, Job, LowConfidence, Noise, Threshold, denoise
from guided.diffusion import layers as layers_module
from guided.diffusion.layers import Layers, Transitions
from guided.errors import GuidedError, LimitError, UnsatisfiableError
from tests.tolerances import SUMS

TOKENS = [b"a", b"b", b"ab", b"(", b")", b"()", None, None]
END, MASK = 6, 7
VOCABULARY = guided.Vocabulary.from_tokens(TOKENS, eos_ids=[END])
GRAMMARS = {
    "regex": guided.regex("(a|b)*ab"),
    "parentheses": guided.gbnf('root ::= "(" root ")" root | "a"? '),
    "choice": guided.choice(["a", "ab", "abab", "(a)"]),
}


def texts_of(constraint, length, known):
    """All rows of tokens that the constraint accepts, by brute force."""
    for text in itertools.product(range(len(TOKENS) - 1), repeat=length):
        if any(given not in (-1, token) for given, token in zip(known, text)):
            continue
        state = constraint.start
        for token in text:
            state = constraint.advance(state, token)
            if not state:
                break
        if state and constraint.is_accepting(state):
            yield text


def weight(logp, text, known):
    return sum(logp[i, token] for i, token in enumerate(text) if known[i] < 0)


@pytest.mark.parametrize("name", GRAMMARS)
def test_best_marginals_and_mass_are_those_of_enumeration(name):
    constraint = guided.compile(GRAMMARS[name], VOCABULARY)
    transitions = Transitions(constraint)
    rng = np.random.default_rng(11)
    solved = refused = 0
    for _ in range(40):
        length = int(rng.integers(1, 5))
        logp = np.log(rng.dirichlet(np.full(len(TOKENS), 0.3), length) + 1e-12)
        known = np.where(rng.random(length) < 0.25, rng.integers(0, END + 1, length), -1)
        texts = list(texts_of(constraint, length, known))
        if not texts:
            with pytest.raises((UnsatisfiableError, LimitError)):
                Layers(transitions, constraint.start, logp, known)
            refused += 1
            continue
        solved += 1
        layers = Layers(transitions, constraint.start, logp, known)
        weights = np.array([weight(logp, text, known) for text in texts])
        assert layers.cut == 0 and math.isclose(layers.log_z, np.logaddexp.reduce(weights), abs_tol=SUMS)
        best, value = layers.best()
        assert tuple(best) in texts and math.isclose(value, weights.max(), abs_tol=SUMS)
        assert math.isclose(weight(logp, best, known), value, abs_tol=SUMS)
        expected = np.zeros_like(logp)
        for text, share in zip(texts, np.exp(weights - np.logaddexp.reduce(weights))):
            expected[np.arange(length), text] += share
        np.testing.assert_allclose(layers.marginals(), expected, atol=SUMS)
        assert tuple(layers.draw(rng)) in texts
    assert solved >= 5 and refused >= 5


def test_draws_follow_the_target():
    constraint = guided.compile(GRAMMARS["parentheses"], VOCABULARY)
    rng = np.random.default_rng(4)
    logp, known = np.log(rng.dirichlet(np.ones(len(TOKENS)), 4)), np.array([-1, -1, -1, -1])
    layers = Layers(Transitions(constraint), constraint.start, logp, known)
    texts = list(texts_of(constraint, 4, known))
    shares = np.exp([weight(logp, text, known) - layers.log_z for text in texts])
    n = 1500
    drawn = [tuple(layers.draw(rng)) for _ in range(n)]
    for text, share in zip(texts, shares):
        assert abs(drawn.count(text) / n - share) < 4 * np.sqrt(share * (1 - share) / n) + 1 / n  # Standard errors.


def test_with_room_a_text_may_end_later():
    constraint = guided.compile(GRAMMARS["parentheses"], VOCABULARY)
    transitions, rng = Transitions(constraint), np.random.default_rng(5)
    logp, known = np.log(rng.dirichlet(np.ones(len(TOKENS)), 3)), np.full(3, -1)
    layers = Layers(transitions, constraint.start, logp, known, room=1)
    fits = []
    for text in itertools.product(range(END + 1), repeat=3):
        state = constraint.start
        for token in text:
            state = state and constraint.advance(state, token)
        if state and constraint.shortest_completion(state) <= 1:
            fits.append(weight(logp, text, known))
    assert math.isclose(layers.log_z, np.logaddexp.reduce(fits), abs_tol=SUMS)


@pytest.mark.parametrize("most_whole", [0, 1000])
def test_few_states_bound_what_they_cut_and_widen_where_stuck(most_whole, monkeypatch):
    monkeypatch.setattr(layers_module, "MOST_TOKENS", 1)
    constraint = guided.compile(GRAMMARS["choice"], VOCABULARY)
    whole_steps, rng = Transitions(constraint), np.random.default_rng(6)
    cut = 0
    for _ in range(30):
        few_steps = Transitions(constraint, most_whole=most_whole)
        logp = np.log(rng.dirichlet(np.ones(len(TOKENS)), 4))
        whole = Layers(whole_steps, constraint.start, logp, np.full(4, -1))
        narrow = Layers(few_steps, constraint.start, logp, np.full(4, -1), most_states=1)
        assert narrow.best()[1] <= whole.best()[1] + SUMS
        missing = 1 - math.exp(narrow.log_z - whole.log_z)
        assert -SUMS <= missing <= narrow.cut + SUMS < 1 + SUMS
        cut += narrow.cut > 0
        for known in ([2, 2, END, END], [3, 0, 4, END]):
            stuck = Layers(few_steps, constraint.start, logp, np.array(known), most_states=1)
            assert stuck.best()[0].tolist() == known
    assert cut > 10


class Stubborn:
    """A masked denoiser that would rather write anything else than what is asked."""

    noise, block, pad_id, window, longest = Noise.MASKED, None, None, None, None
    width, mask_id, eos_ids = len(TOKENS), MASK, frozenset({END})

    def scores(self, canvases):
        found = np.zeros((len(canvases), len(canvases[0]), self.width), np.float32)
        for row, canvas in enumerate(canvases):
            key = hash((canvas.prompt, tuple(canvas.tokens.tolist()))) % 2**32
            found[row] = np.random.default_rng(key).normal(size=found[row].shape) * 4
        found[..., MASK] = -np.inf
        return found


class StubbornBlocks(Stubborn):
    block = 4


class StubbornWindow(Stubborn):
    window = 3


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("model", [Stubborn(), StubbornBlocks(), StubbornWindow()])
@pytest.mark.parametrize("how", [
    Denoising(LowConfidence(1)), Denoising(LowConfidence(4)), Denoising(Threshold(0.9), FixedBlocks(3)),
    Denoising(Threshold(0.5), FixedBlocks(3), joined=True),
])  # fmt: skip
@pytest.mark.parametrize("name", GRAMMARS)
def test_every_text_is_in_the_language(name, how, model, temperature):
    constraint = guided.compile(GRAMMARS[name], VOCABULARY)
    law = Constrained(Transitions(constraint), temperature)
    rng = np.random.default_rng(8)
    for text in denoise(model, [Job((n,), 1 + n % 9, law) for n in range(3, 30)], how, rng):
        state = constraint.start
        for token in text.tokens:
            state = constraint.advance(state, token)
        assert state and constraint.is_accepting(state)


def test_drafts_under_a_constraint_change_nothing():
    law = Constrained(Transitions(guided.compile(GRAMMARS["parentheses"], VOCABULARY)))
    jobs = [Job((n,), 9, law) for n in range(6)]
    plain, fast = (denoise(Stubborn(), jobs, Denoising(LowConfidence(9), drafts=drafts)) for drafts in (0, 4))
    assert [text.tokens for text in plain] == [text.tokens for text in fast]
    assert sum(text.passes for text in fast) < sum(text.passes for text in plain)


def test_fixed_tokens_stay_and_padding_counts_as_the_end():
    class Padding(Stubborn):
        pad_id = 1

        def scores(self, canvases):
            found = super().scores(canvases)
            found[:, 3:, 1] = 50
            return found

    constraint = guided.compile(guided.regex("[a(]*"), VOCABULARY)
    law = Constrained(Transitions(constraint), pad_id=1)
    (text,) = denoise(Padding(), [Job((0,), 7, law, {1: 3})])
    assert text.tokens[1] == 3 and text.n_text <= 3 and set(text.tokens[3:]) == {END}


def test_what_cannot_be_is_refused_with_the_bound():
    constraint = guided.compile(guided.regex("(ab){4}"), VOCABULARY)
    law = Constrained(Transitions(constraint))
    with pytest.raises(LimitError, match="shortest text of the grammar has 4 tokens, but the canvas has 3"):
        denoise(Stubborn(), [Job((0,), 3, law)])
    with pytest.raises(UnsatisfiableError, match="no text of the grammar has the fixed tokens in 5 positions"):
        denoise(Stubborn(), [Job((0,), 5, law, {0: 3})])
    with pytest.raises(GuidedError, match="most_states is 0"):
        Constrained(Transitions(constraint), most_states=0)
