"""Phrases given as text: they count in any tokens, and the tokens to place are the tokenizer's own."""

from __future__ import annotations

import re
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

import guided
from guided.errors import GuidedError, UnsupportedError
from guided.lm import TableModel
from guided.search import (
    Clause,
    Literal,
    PhraseConstraint,
    TextPhrase,
    beam_search,
    dynamic_beam_search,
    grid_beam_search,
    neurologic_search,
)
from guided.search.phrases import MET
from guided.search.text_phrases import WordAutomaton, spellings
from guided.vocab import Vocabulary
from tests.amounts import each, mostly_slow

TOKENS = [b"a", b"b", b"c", b" ", b"ab", b"bc", b" ab", b"abc", b"ca", b""]
END = len(TOKENS) - 1
VOCABULARY = Vocabulary.from_tokens([*TOKENS[:-1], None], eos_ids=[END])


def encode(text: str) -> list[int]:
    """The longest token first."""
    found, data = [], text.encode()
    while data:
        token = max((t for t in TOKENS if t and data.startswith(t)), key=len, default=None)
        if token is None:
            # A tokenizer without this character: its unknown token has no bytes.
            return [END]
        found.append(TOKENS.index(token))
        data = data[len(token) :]
    return found


def data_of(tokens):
    return b"".join(TOKENS[token] for token in tokens)


TEXTS = st.text("abc ", min_size=1, max_size=4)


@given(st.lists(TEXTS, min_size=1, max_size=3), st.lists(st.integers(0, END - 1), max_size=10))
def test_a_phrase_is_met_where_its_bytes_are(texts, tokens):
    phrase = TextPhrase.written(VOCABULARY, encode, *texts)
    state = 0
    for n, token in enumerate(tokens, 1):
        state = phrase.automaton.advance(state, token)
        assert (state == MET) == any(text.encode() in data_of(tokens[:n]) for text in texts)
        assert (phrase.automaton.remaining(state) == 0) == (state == MET)
        assert 0 <= phrase.automaton.progress(state) <= 1
        assert phrase.automaton.next_tokens(state) or state == MET


@given(st.lists(TEXTS, min_size=1, max_size=3), st.lists(st.integers(0, END - 1), max_size=4))
def test_the_tokens_to_place_lead_to_the_end(texts, tokens):
    automaton = TextPhrase.written(VOCABULARY, encode, *texts).automaton
    state = 0
    for token in tokens:
        state = automaton.advance(state, token)
    for _ in range(max(len(option) for text in texts for option in spellings(text, VOCABULARY, encode))):
        if state != MET:
            state = min((automaton.advance(state, t) for t in automaton.next_tokens(state)), key=automaton.remaining)
    assert state == MET


def test_spellings_are_what_the_tokenizer_writes():
    assert spellings("ab", VOCABULARY, encode) == ((TOKENS.index(b"ab"),), (TOKENS.index(b" ab"),))
    assert set(TextPhrase.written(VOCABULARY, encode, "ab", "c").options) == {
        (TOKENS.index(b"ab"),),
        (TOKENS.index(b" ab"),),
        (TOKENS.index(b"c"),),
    }
    with pytest.raises(GuidedError, match="is empty"):
        spellings("", VOCABULARY, encode)
    with pytest.raises(GuidedError, match="does not write 'xy'"):
        spellings("xy", VOCABULARY, encode)


GRAMMAR = guided.compile(guided.regex("[abc ]{0,5}", dialect="python"), VOCABULARY)
MODELS = [TableModel.random(seed, width=len(TOKENS), eos_ids=[END]) for seed in range(5)]


@cache
def every_text(model):
    """All texts there are, in all their tokens: no beam of this width drops one."""
    return tuple(beam_search(model, [], GRAMMAR, width=20000, n_best=20000, max_tokens=6))


def is_in(text: str, data: bytes) -> bool:
    return text.encode() in data


@pytest.mark.parametrize("model", mostly_slow(MODELS, 1))
@pytest.mark.parametrize("texts", each([("abc",), ("b c",), ("cc", "ab")], 2))
def test_searches_place_texts(model, texts):
    phrases = [TextPhrase.written(VOCABULARY, encode, text) for text in texts]
    wide = {"width": 5000, "n_best": 5, "max_tokens": 6}
    best = max(each.score for each in every_text(model) if all(is_in(text, each.data) for text in texts))
    for found in (
        dynamic_beam_search(model, [], GRAMMAR, phrases, **wide),
        neurologic_search(model, [], GRAMMAR, [Clause.of(Literal(phrase)) for phrase in phrases], **wide),
    ):
        assert all(is_in(text, each.data) for each in found for text in texts)
        assert found[0].score == pytest.approx(best)
    for hypothesis in grid_beam_search(model, [], GRAMMAR, phrases, width=20, max_tokens=6):
        assert all(is_in(text, hypothesis.data) for text in texts)


@pytest.mark.parametrize("model", each(MODELS, 3))
def test_excluded_texts_come_in_no_tokens(model):
    excluded = [TextPhrase.written(VOCABULARY, encode, text) for text in ("ab", "c")]
    clauses = [Clause.of(Literal(phrase, positive=False)) for phrase in excluded]
    found = neurologic_search(model, [], GRAMMAR, clauses, width=40, n_best=10, max_tokens=6)
    assert len(found) == 10
    assert not any(is_in(text, each.data) for each in found for text in ("ab", "c"))
    best = max(each.score for each in every_text(model) if not is_in("ab", each.data) and not is_in("c", each.data))
    assert found[0].score == pytest.approx(best)


def test_grid_search_places_the_shortest_spellings():
    phrase = TextPhrase.written(VOCABULARY, encode, "b c", "ab")
    assert {len(option) for option in phrase.options} > {1}
    assert set(phrase.placed_together().options) == {(TOKENS.index(b"ab"),), (TOKENS.index(b" ab"),)}
    with pytest.raises(UnsupportedError, match="dynamic_beam_search"):
        PhraseConstraint(phrase.options).placed_together()


def test_tokens_without_bytes_do_not_break_a_phrase():
    automaton = TextPhrase.written(VOCABULARY, encode, "ab").automaton
    state = automaton.advance(automaton.advance(0, TOKENS.index(b"a")), END)
    assert automaton.advance(state, TOKENS.index(b"b")) == MET


WORDS = st.text("abc. ", min_size=1, max_size=4)


def as_words(text):
    """Python's own reading of whole words."""
    before = r"(?<![a-c])" if text[0] in "abc" else ""
    return before + re.escape(text) + (r"(?![a-c])" if text[-1] in "abc" else "")


def written(*texts):
    """A phrase of whole words, in tokens that are the letters; the full stop has no token."""
    return TextPhrase.written(VOCABULARY, encode, *texts, whole_words=True)


@given(st.lists(TEXTS, min_size=1, max_size=3), st.lists(st.integers(0, END - 1), max_size=10))
def test_whole_words_are_those_of_a_pattern(texts, tokens):
    automaton = written(*texts).automaton
    state = 0
    for n, token in enumerate(tokens, 1):
        state = automaton.advance(state, token)
        data = data_of(tokens[:n]).decode()
        assert automaton.at_end(state) == any(re.search(as_words(text), data) for text in texts)
        # For good: whatever comes, a letter or a space.
        for_good = all(re.search("|".join(map(as_words, texts)), data + more) for more in ("a", "b", "c", " "))
        assert (state == MET) == for_good
        assert (automaton.remaining(state) == 0) == automaton.at_end(state)
        assert 0 <= automaton.progress(state) <= 1


@given(st.lists(WORDS, min_size=1, max_size=3), st.text("abc._ \u00e9", max_size=12))
def test_bytes_of_words(texts, data):
    automaton = WordAutomaton([text.encode() for text in texts])
    state = 0
    for byte in data.encode():
        state = automaton.advance(state, byte)
    patterns = [
        (r"(?<!\w)" if text[0] in "abc" else "") + re.escape(text) + (r"(?!\w)" if text[-1] in "abc" else "")
        for text in texts
    ]
    assert automaton.at_end(state) == any(re.search(pattern, data) for pattern in patterns)


@pytest.mark.parametrize("seed", each(range(3), 3))
def test_searches_place_whole_words(seed):
    """The best text with "ab" as a word, and without it, by enumeration."""
    model = TableModel.random(seed, width=len(TOKENS))
    constraint = guided.compile(guided.regex("[abc ]{0,5}"), VOCABULARY)
    phrase = written("ab")
    texts = [t.text for t in beam_search(model, (0,), constraint, width=3000, n_best=3000, max_tokens=5)]
    having = [text for text in texts if re.search(as_words("ab"), text)]
    lacking = [text for text in texts if text not in set(having)]
    options = {"width": 3000, "max_tokens": 5}
    assert dynamic_beam_search(model, (0,), constraint, [phrase], **options)[0].text == having[0]
    assert neurologic_search(model, (0,), constraint, [Clause.of(Literal(phrase))], **options)[0].text == having[0]
    without = [Clause.of(Literal(phrase, positive=False))]
    assert neurologic_search(model, (0,), constraint, without, **options)[0].text == lacking[0]
    with pytest.raises(UnsupportedError, match="whether they are words"):
        grid_beam_search(model, (0,), constraint, [phrase], **options)
