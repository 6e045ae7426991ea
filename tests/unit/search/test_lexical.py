"""Phrases, grid beam search and dynamic beam allocation against enumeration."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import guided
from guided.errors import GuidedError, LimitError, UnsupportedError
from guided.lm import TableModel
from guided.search import PhraseConstraint, beam_search, dynamic_beam_search, grid_beam_search
from guided.search.lexical import bank_slots
from guided.search.phrases import MET
from tests.amounts import each
from tests.tolerances import DOUBLE
from tests.twin.slow_search import (
    END,
    PROMPT,
    VOCABULARY,
    anything,
    contains,
    every_text,
    slow_allocation,
    slow_grid,
    total,
)

WIDE = 3000
"""More than there are candidates at any step of these tests."""


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=4), min_size=1, max_size=3), st.data())
def test_the_automaton_says_what_occurs(options, data):
    automaton = PhraseConstraint.of(*options).automaton
    tokens = data.draw(st.lists(st.integers(0, 2), max_size=12))
    state = 0
    for n, token in enumerate(tokens, 1):
        state = automaton.advance(state, token)
        met = any(contains(tokens[:n], option) for option in options)
        assert (state == MET) == met
        fewest = next(
            length
            for length in itertools.count()
            for rest in itertools.product(range(3), repeat=length)
            if any(contains((*tokens[:n], *rest), option) for option in options)
        )
        assert automaton.remaining(state) == fewest
        assert 0 <= automaton.progress(state) <= 1
        assert met or automaton.next_tokens(state)


@given(st.integers(1, 12), st.lists(st.integers(0, 6), min_size=1, max_size=5))
def test_slots_are_used_up(width, sizes):
    slots = bank_slots(width, sizes)
    assert all(0 <= slot <= size for slot, size in zip(slots, sizes, strict=True))
    assert sum(slots) == min(width, sum(sizes))
    if all(size >= width for size in sizes):
        assert slots[:-1] == [width // len(sizes)] * (len(sizes) - 1)


CASES = {
    "one token": [[(2,)]],
    "two phrases": [[(0, 1)], [(2,)]],
    "alternatives": [[(2, 2), (1, 0)]],
    "a word twice": [[(3,)], [(0,)]],
}


@pytest.mark.parametrize("case", each(CASES, 2))
@pytest.mark.parametrize("pattern", ["[abc]*", "(ab|c)*b?a?"])
def test_wide_beams_find_the_best_of_all(case, pattern):
    phrases = [PhraseConstraint.of(*options) for options in CASES[case]]
    constraint = guided.compile(guided.regex(pattern), VOCABULARY)
    texts = [
        text
        for text in every_text(re.compile(pattern).fullmatch, 5)
        if all(any(contains(text, phrase) for phrase in options) for options in CASES[case])
    ]
    assert texts or case == "alternatives"
    for seed in range(4):
        model = TableModel.random(seed, width=5)
        expected = sorted(texts, key=lambda text: -total(model, text))[:3]
        for search in (grid_beam_search, dynamic_beam_search):
            found = search(model, PROMPT, constraint, phrases, width=WIDE, n_best=3, max_tokens=5)
            assert [h.tokens for h in found] == expected
            assert [h.score for h in found] == pytest.approx([total(model, text) for text in expected], abs=DOUBLE)


def test_overlaps_and_lengths_are_for_dynamic_allocation():
    overlapping = [PhraseConstraint.of((0, 1)), PhraseConstraint.of((1, 2))]
    model = TableModel.random(3, width=5)
    found = dynamic_beam_search(model, PROMPT, anything(), overlapping, width=4, max_tokens=4)
    assert found[0].tokens == (0, 1, 2, END)
    with pytest.raises(LimitError, match="4 tokens"):
        grid_beam_search(model, PROMPT, anything(), overlapping, max_tokens=4)
    uneven = [PhraseConstraint.of((0, 1, 1), (2, 2))]
    texts = [t for t in every_text(lambda _: True, 5) if contains(t, (0, 1, 1)) or contains(t, (2, 2))]
    found = dynamic_beam_search(model, PROMPT, anything(), uneven, width=WIDE, max_tokens=5)
    assert found[0].tokens == max(texts, key=lambda text: total(model, text))
    with pytest.raises(UnsupportedError):
        grid_beam_search(model, PROMPT, anything(), uneven, max_tokens=5)


@pytest.mark.parametrize("width", each([1, 2, 4, 7], 2))
def test_every_output_contains_all_phrases(width):
    phrases = [PhraseConstraint.of((0, 2, 1)), PhraseConstraint.of((2,), (1, 1)), PhraseConstraint.of((1, 0))]
    for seed in range(8):
        model = TableModel.random(seed, width=5, scale=3.0)
        for search in (dynamic_beam_search,) if seed % 2 else (dynamic_beam_search, grid_beam_search):
            wanted = [PhraseConstraint(p.options[:1]) for p in phrases] if search is grid_beam_search else phrases
            found = search(model, PROMPT, anything(), wanted, width=width, n_best=width, max_tokens=12)
            assert len(found)
            for hypothesis in found:
                assert all(any(contains(hypothesis.tokens, o) for o in phrase.options) for phrase in wanted)
                assert hypothesis.score == pytest.approx(total(model, hypothesis.tokens))


def test_without_phrases_it_is_beam_search():
    for seed in range(10):
        model = TableModel.random(seed, width=5)
        for penalty in (0.0, 1.0):
            options = {"width": 3, "n_best": 3, "max_tokens": 6, "length_penalty": penalty}
            beam = beam_search(model, PROMPT, anything(), **options)
            assert grid_beam_search(model, PROMPT, anything(), [], **options) == beam
            assert dynamic_beam_search(model, PROMPT, anything(), [], **options) == beam


def test_a_phrase_that_the_grammar_forbids_is_not_found():
    constraint = guided.compile(guided.regex("[ab]*"), VOCABULARY)
    for search in (grid_beam_search, dynamic_beam_search):
        found = search(TableModel.random(1, width=5), PROMPT, constraint, [PhraseConstraint.of((2,))], max_tokens=5)
        assert len(found) == 0 and found.cost.rows > 0


def test_one_pass_a_step_and_no_more_rows_than_the_beam():
    model = TableModel.random(5, width=5)
    phrases = [PhraseConstraint.of((0, 1)), PhraseConstraint.of((2,))]
    found = dynamic_beam_search(model, PROMPT, anything(), phrases, width=4, max_tokens=10)
    assert found.cost.passes <= 9 and found.cost.rows <= 4 * found.cost.passes


@pytest.mark.parametrize("options", [(), ((),), ((1,), ())])
def test_empty_phrases_are_refused(options):
    with pytest.raises(GuidedError, match="at least one token"):
        PhraseConstraint(options)


@pytest.mark.parametrize("phrase", [(END,), (0, 9), (-1,)])
def test_ids_that_no_text_has_are_refused(phrase):
    for search in (grid_beam_search, dynamic_beam_search):
        with pytest.raises(GuidedError, match="cannot stand in a text"):
            search(TableModel.random(1, width=5), PROMPT, anything(), [PhraseConstraint.of(phrase)])
        with pytest.raises(GuidedError, match="wide"):
            search(TableModel.random(1, width=5), PROMPT, anything(), [], width=0)
        with pytest.raises(LimitError):
            search(TableModel.random(1, width=5), PROMPT, anything(), [PhraseConstraint.of([0] * 9)], max_tokens=9)


@pytest.mark.parametrize("width", each([1, 2, 3], 2))
@pytest.mark.parametrize("pattern", ["[abc]*", "(ab|c|a)*b?"])
def test_narrow_grids_are_those_of_the_plain_twin(width, pattern):
    constraint = guided.compile(guided.regex(pattern), VOCABULARY)
    texts = list(every_text(re.compile(pattern).fullmatch, 5))
    for phrases in ([(2,)], [(0, 1), (2,)], [(2, 2)]):
        for seed in range(6):
            model = TableModel.random(seed, width=5)
            wanted = [PhraseConstraint.of(phrase) for phrase in phrases]
            found = grid_beam_search(model, PROMPT, constraint, wanted, width=width, n_best=width, max_tokens=5)
            assert [h.tokens for h in found] == slow_grid(model, texts, phrases, width, 5)[:width]


@pytest.mark.parametrize("width", each([3, 1, 4, 7], 4))
@pytest.mark.parametrize("pattern", ["[abc]*", "(ab|c|a)*b?"])
def test_narrow_allocation_is_that_of_the_plain_twin(width, pattern):
    constraint = guided.compile(guided.regex(pattern), VOCABULARY)
    texts = list(every_text(re.compile(pattern).fullmatch, 5))
    for options in ([[(2,)]], [[(0, 1)], [(2,)]], [[(2, 0), (3,)]], [[(0, 1), (1, 2, 2)]]):
        for seed in range(6):
            model = TableModel.random(seed, width=5)
            wanted = [PhraseConstraint.of(*each) for each in options]
            found = dynamic_beam_search(model, PROMPT, constraint, wanted, width=width, n_best=width, max_tokens=5)
            assert [h.tokens for h in found] == slow_allocation(model, texts, options, width, 5)[:width]
