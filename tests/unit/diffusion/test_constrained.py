"""Decoders under a constraint: every text is in the language, however few the steps and stubborn the model."""

from __future__ import annotations

import numpy as np
import pytest

import guided
from guided.diffusion import Constrained, Denoising, FixedBlocks, Job, LowConfidence, Noise, Threshold, denoise
from guided.diffusion.denoiser import blank
from guided.diffusion.lattice import Lattice, LatticeLimits
from guided.diffusion.law import Standing, log_softmax
from guided.errors import GuidedError, LimitError, UnsatisfiableError
from tests import vocabularies
from tests.amounts import crossed, some
from tests.twin.slow_constraint import SlowConstraint

TOKENS = [b"a", b"b", b"ab", b"(", b")", b"()", None, None]
END, MASK = 6, 7
VOCABULARY = guided.Vocabulary.from_tokens(TOKENS, eos_ids=[END])
GRAMMARS = {
    "regex": guided.regex("(a|b)*ab"),
    "parentheses": guided.gbnf('root ::= "(" root ")" root | "a"? '),
    "choice": guided.choice(["a", "ab", "abab", "(a)"]),
}


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


WAYS = [
    Denoising(LowConfidence(1)), Denoising(LowConfidence(4)), Denoising(Threshold(0.9), FixedBlocks(3)),
    Denoising(Threshold(0.5), FixedBlocks(3), joined=True),
]  # fmt: skip


@pytest.mark.parametrize(
    ("temperature", "model", "how", "name"),
    crossed([0.0, 1.0], [Stubborn(), StubbornBlocks(), StubbornWindow()], WAYS, GRAMMARS, share=9),
)
def test_every_text_is_in_the_language(name, how, model, temperature):
    constraint = guided.compile(GRAMMARS[name], VOCABULARY)
    law = Constrained(constraint, temperature)
    rng = np.random.default_rng(8)
    for text in denoise(model, [Job((n,), 1 + n % 9, law) for n in range(3, 30)], how, rng):
        state = constraint.start
        for token in text.tokens:
            state = constraint.advance(state, token)
        assert state and constraint.is_accepting(state)


def test_drafts_under_a_constraint_change_nothing():
    law = Constrained(guided.compile(GRAMMARS["parentheses"], VOCABULARY))
    jobs = [Job((n,), 9, law) for n in range(6)]
    plain, fast = (denoise(Stubborn(), jobs, Denoising(LowConfidence(9), drafts=drafts)) for drafts in (0, 4))
    assert [text.tokens for text in plain] == [text.tokens for text in fast]
    assert sum(text.passes for text in fast) < sum(text.passes for text in plain)


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_steps_are_of_the_text_and_ends_behind_its_end_come_along(steps):
    eight = Constrained(guided.compile(guided.regex(r"(\(|\)){8}"), VOCABULARY))
    (made,) = denoise(Stubborn(), [Job((), 60, eight)], Denoising(LowConfidence(steps)))
    assert made.passes == steps
    # As many in each step as of what was proposed then: the others of the 60 are behind its end and in nobody's count.
    first = made.frames[0]
    text = int(np.flatnonzero(first.proposed == END)[0]) + 1
    assert text <= 9 and int(first.committed[:text].sum()) == -(-text // steps)


def test_fixed_tokens_stay_and_padding_counts_as_the_end():
    class Padding(Stubborn):
        pad_id = 1

        def scores(self, canvases):
            found = super().scores(canvases)
            found[:, 3:, 1] = 50
            return found

    constraint = guided.compile(guided.regex("[a(]*"), VOCABULARY)
    law = Constrained(constraint, pad_id=1)
    (text,) = denoise(Padding(), [Job((0,), 7, law, {1: 3})])
    assert text.tokens[1] == 3 and text.n_text <= 3 and set(text.tokens[3:]) == {END}


@pytest.mark.parametrize("model", [Stubborn(), StubbornBlocks(), StubbornWindow()])
def test_tokens_fixed_anywhere_are_met_or_refused_because_no_text_has_them(model):
    """Also those behind the block or the part that is written first."""
    rng = np.random.default_rng(26)
    met = refused = 0
    for number in range(some(120, 4)):
        law = Constrained(guided.compile(list(GRAMMARS.values())[number % 3], VOCABULARY))
        length = int(rng.integers(3, 10))
        places = rng.choice(length, int(rng.integers(1, 3)), replace=False).tolist()
        fixed = {place: int(rng.integers(len(TOKENS) - 1)) for place in places}
        job = Job((number,), length, law, fixed)
        try:
            Lattice(law.constraint, np.zeros((length, len(TOKENS))), fixed)
        except UnsatisfiableError:
            with pytest.raises((UnsatisfiableError, LimitError)):
                denoise(model, [job], Denoising(LowConfidence(2)))
            refused += 1
            continue
        (text,) = denoise(model, [job], Denoising(LowConfidence(2)))
        assert all(text.tokens[place] == token for place, token in fixed.items())
        Lattice(law.constraint, np.zeros((length, len(TOKENS))), dict(enumerate(text.tokens)))
        met += 1
    assert met > 5 and refused > 5


@pytest.mark.parametrize("model", [Stubborn(), StubbornBlocks()])
def test_a_canvas_on_which_all_is_given_is_checked_all_the_same(model):
    law = Constrained(guided.compile(guided.regex("(ab){0,4}"), VOCABULARY))
    for fixed in ({0: END}, {0: 2, 1: 0, 2: 1, 3: END}):
        (text,) = denoise(model, [Job((), 4, law, fixed)])
        assert all(text.tokens[place] == token for place, token in fixed.items())
    for fixed in ({0: 0, 1: END}, {0: 0, 1: 0, 2: 1, 3: END}):
        with pytest.raises(UnsatisfiableError):
            denoise(model, [Job((), 4, law, fixed)])
    (free,) = denoise(model, [Job((), 4, fixed={0: END})])
    assert free.text == ()


def test_what_a_cut_has_left_is_no_confidence():
    """With one state kept everything is sure, whatever the model says: then its own law says how sure a token is."""
    constraint = guided.compile(guided.regex("(a|b)*"), VOCABULARY)
    slow = SlowConstraint(guided.regex("(a|b)*"), VOCABULARY)
    at = Standing(blank(Stubborn(), (), 5))
    scores = Stubborn().scores([at.canvas])[0]
    own = np.exp(log_softmax(scores))
    exact = Constrained(constraint).proposal(at, scores, np.random.default_rng(0))
    cut = Constrained(slow, limits=LatticeLimits(tokens=1)).proposal(at, scores, np.random.default_rng(0))
    assert np.abs(exact.probabilities - own).max() > 0.1
    assert cut.probabilities.tolist() == own.tolist()


def test_what_cannot_be_is_refused_with_the_bound():
    constraint = guided.compile(guided.regex("(ab){4}"), VOCABULARY)
    law = Constrained(constraint)
    with pytest.raises(LimitError, match="no text of the grammar has 3 tokens or fewer: the shortest has 4"):
        denoise(Stubborn(), [Job((0,), 3, law)])
    with pytest.raises(UnsatisfiableError, match="no text of the constraint fits 5 positions"):
        denoise(Stubborn(), [Job((0,), 5, law, {0: 3})])
    with pytest.raises(GuidedError, match="temperature is -1"):
        Constrained(constraint, -1.0)


def test_limits_on_tokens_hold():
    letters = [b"a", b"b", b"ab", *(byte for byte in vocabularies.SINGLE_BYTES if byte not in (b"a", b"b"))]
    vocabulary = guided.Vocabulary.from_tokens([*letters, None, None], eos_ids=[len(letters)])

    class Denoiser(Stubborn):
        width, mask_id, eos_ids = len(letters) + 2, len(letters) + 1, frozenset({len(letters)})

        def scores(self, canvases):
            found = np.zeros((len(canvases), len(canvases[0]), self.width), np.float32)
            # It would write letters for ever.
            found[..., :3] = 9 + np.arange(3)
            found[..., self.mask_id] = -np.inf
            return found

    grammar = guided.ebnf('root ::= x "."\nx[max_tokens=3] ::= [ab]*')
    constraint = guided.compile(grammar, vocabulary)
    for how in WAYS:
        for text in denoise(Denoiser(), [Job((), 6, Constrained(constraint))], how, np.random.default_rng(1)):
            state = constraint.start
            for token in text.tokens:
                state = constraint.advance(state, token)
            assert state and constraint.is_accepting(state)
            assert sum(token < 3 for token in text.tokens) <= 3
