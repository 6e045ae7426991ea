"""What texts take in tokens: bounds for all ways to write them."""

from __future__ import annotations

import random

import pytest

import guided
from guided.constraint.attributed.counts import PIECE, TokenMeasure
from guided.grammar.attributed.measures import BYTES
from guided.grammar.attributed.spellings import Spellings
from guided.grammar.attributed.words import words_of
from guided.vocab.spelled import spell

WORDS = [b"SELECT", b" SELECT", b"NULL", b"::", b" (", b'"name', b"name", b"na", b"me", b", ", b"timestamp", b"'', "]


@pytest.fixture(scope="module")
def vocabulary() -> guided.Vocabulary:
    tokens = [bytes([byte]) for byte in range(256)] + WORDS
    return guided.Vocabulary.from_tokens([*tokens, None], eos_ids=[len(tokens)])


def test_the_fewest_tokens_are_those_of_the_speller(vocabulary: guided.Vocabulary) -> None:
    rng = random.Random(1)
    measure = TokenMeasure.of(vocabulary)
    for _ in range(50):
        text = b"".join(rng.choice(WORDS)[: rng.randint(1, 6)] for _ in range(rng.randint(1, 6)))
        assert measure.fewest(text) == [len(spell(vocabulary, text[at:])) for at in range(len(text) + 1)]


@pytest.mark.parametrize("text", ["SELECT NULL", "select", "(SELECT )", "NULL::timestamp", " , "])
def test_lexemes_take_no_more_however_they_are_spaced(vocabulary: guided.Vocabulary, text: str) -> None:
    measure = TokenMeasure.of(vocabulary)
    assert len(spell(vocabulary, text.encode())) <= measure.text(text) <= BYTES.text(text)


def test_names_count_with_their_quotes(vocabulary: guided.Vocabulary) -> None:
    measure = TokenMeasure.of(vocabulary)
    for form in ("name", " name", '"name"', ' "name"'):
        assert len(spell(vocabulary, form.encode())) <= measure.name("name") <= BYTES.name("name") + 1


def test_any_end_of_a_literal_or_name_is_counted(vocabulary: guided.Vocabulary) -> None:
    measure = TokenMeasure.of(vocabulary)
    assert measure.rest(b"name") == 2  # of `ame`
    assert measure.rest_of_any(words_of(["name", "it's"])) == 5  # `it''s`
    assert measure.rest_of_any(Spellings("[0-9]{4}-[0-9]{2}")) == 7
    # JSON has more states than are tried.
    assert measure.rest_of_any(Spellings("(ab|ba){200}")) == Spellings("(ab|ba){200}").longest_quoted


def test_tokens_in_which_parts_of_names_take_many_are_told(vocabulary: guided.Vocabulary) -> None:
    measure = TokenMeasure.of(vocabulary)
    excess = {word: int(measure.names[1, 256 + place]) for place, word in enumerate(WORDS)}
    # As a name `select` is written with bytes.
    assert excess[b"SELECT"] == 6 - PIECE
    assert excess[b"name"] == excess[b'"name'] == excess[b", "] == 0
