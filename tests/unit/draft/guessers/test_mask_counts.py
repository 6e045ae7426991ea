"""Guesses by masks: what carries over from one grammar to the next, and what is guessed where nothing was seen."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import guided
from guided.draft import BestFirst, Context, Fixed, MaskCounts, Observed, Path, Proposal, speculate
from guided.lm.model import Tree
from guided.lm.table import TableModel
from tests.amounts import some

VOCABULARY = guided.Vocabulary.from_tokens([b"a", b"b", b"ab", None, b"c", b"bc", b"x"], eos_ids=[3])


def path_of(pattern, text):
    """The place after some tokens under a pattern."""
    constraint = guided.compile(guided.regex(pattern), VOCABULARY)
    state = constraint.start
    for token in text:
        state = constraint.advance(state, token)
    assert state != 0
    return Path(Context(0, [6, *text], 1, constraint, state, 8), (), state)


def wrote(counts, pattern, text):
    """Let a whole text be seen."""
    constraint = guided.compile(guided.regex(pattern), VOCABULARY)
    context = Context(0, [6, *text], 1, constraint, constraint.start, 8)
    counts.learn([Observed(context, Proposal(), (), tuple(text), Tree(), None, torch.zeros(0, 7))])


def guessed(counts, path):
    """The tokens guessed, the likeliest first."""
    best: dict[int, float] = {}
    for guess in counts.guess(path):
        best[guess.token] = max(best.get(guess.token, 0.0), guess.share)
    return sorted(best, key=lambda token: -best[token])


def test_what_came_under_a_mask_is_guessed_in_another_grammar():
    counts = MaskCounts()
    for _ in range(3):
        wrote(counts, "a(b|c)a", [0, 4, 0])
    wrote(counts, "a(b|c)a", [0, 1, 0])
    assert guessed(counts, path_of("cc(b|c)x", [4, 4])) == [4, 1]
    last = [guess for guess in counts.guess(path_of("xa(b|c)x", [6, 0])) if guess.token == 4]
    assert len({guess.level for guess in last}) == 2, "after the same token both counts speak"


def test_small_masks_that_were_never_seen_are_guessed_at_by_length():
    assert guessed(MaskCounts(), path_of("(abc|c)x", []))[0] == 2


def test_tokens_that_were_passed_over_come_last():
    counts = MaskCounts()
    for _ in range(4):
        wrote(counts, "ab", [0, 1])
    assert guessed(counts, path_of("(abc|c)x", []))[:2] == [0, 4], "ab could have been written and was not"


def test_without_a_grammar_nothing_is_guessed():
    assert not MaskCounts().guess(Path(Context(0, [1, 2], 2, None, 0, 8), (), 0))


@settings(max_examples=some(60))
@given(st.integers(0, 10**6), st.sampled_from(["(a|b|c)*", "(ab|bc)*x", "a(b|c)+", "[abcx]{0,9}"]))
def test_every_guess_is_allowed(seed, pattern):
    constraint = guided.compile(guided.regex(pattern), VOCABULARY)
    counts = MaskCounts()
    model = TableModel.random(seed, width=7, eos_ids=[3], order=2)
    plain, _ = speculate(seed, model, [[0]] * 3, [constraint] * 3, max_tokens=9)
    for text in plain:
        context = Context(0, [0, *text.tokens], 1, constraint, constraint.start, 8)
        state = constraint.start
        for i, token in enumerate(text.tokens):
            here = Path(Context(0, [0, *text.tokens[:i]], 1, constraint, state, 8), (), state)
            assert all(constraint.advance(state, guess.token) for guess in counts.guess(here))
            state = constraint.advance(state, token)
        counts.learn([Observed(context, Proposal(), (), text.tokens, Tree(), None, torch.zeros(0, 7))])


def test_texts_under_new_grammars_take_fewer_passes():
    """Grammars that differ in their names only: the second text is known but for its name's first token."""
    model = TableModel(lambda tokens: np.log([0.3, 0.2, 0.05, 0.05, 0.2, 0.1, 0.1]), width=7, eos_ids=[3])
    drafter = BestFirst(MaskCounts())
    passes = []
    for name in ("abc", "cab", "bca", "bcc"):
        constraint = guided.compile(guided.regex(f"x{name}x(a|b)(a|b)(a|b)(a|b)x"), VOCABULARY)
        (text,), counts = speculate(0, model, [[0]], [constraint], drafter, greedy=True, policy=Fixed(8))
        (plain,), _ = speculate(0, model, [[0]], [constraint], greedy=True)
        assert text == plain
        passes.append(counts.passes)
    assert passes[-1] < passes[0]
