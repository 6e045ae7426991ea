"""Bounds on a string's length that tokens do and do not come near: masks against a vocabulary of single bytes."""

from __future__ import annotations

import random

import pytest

import guided
from guided.automata.lexer.runs import NEAR
from tests import vocabularies
from tests.amounts import crossed, each
from tests.twin.masks import fitting_tokens

LETTERS = ["a", "b", "é", "\\n", "\\u00e9", '"', "}", "ab", "日本"]
BYTES = vocabularies.of_bytes()


def vocabulary_of(seed: random.Random) -> tuple[list[bytes], guided.Vocabulary]:
    """Tokens some of which are longer than any bound that is near."""
    some = vocabularies.random_tokens(seed, LETTERS, 200, 9)
    long = {(letter * (NEAR + 6 + more)).encode()[: NEAR + 6 + more] for letter in "ab" for more in range(3)}
    tokens = sorted(some | long | {b'"', b"a", b"b", b"\xc3", b"\xa9", b"["})
    return tokens, vocabularies.of_tokens(tokens)


def compare(seed: random.Random, tokens: list[bytes], vocabulary: guided.Vocabulary, schema: dict[str, object]) -> None:
    """Masks along some texts, token by token against byte by byte."""
    grammar = guided.json_schema(schema)
    by_token, by_byte = guided.compile(grammar, vocabulary), guided.compile(grammar, BYTES)
    for _ in range(2):
        state, place = by_token.start, by_byte.start
        for _ in range(12):
            fits = fitting_tokens(by_token, state, by_byte, place, tokens)
            inside = sorted(token for token in fits if b'"' not in tokens[token] or state == by_token.start)
            if not inside:
                break
            token = seed.choice(inside)
            state, place = by_token.advance(state, token), by_byte.advance_bytes(place, tokens[token])


@pytest.mark.parametrize(("low", "pattern"), crossed([0, 1, 9], [None, "^[ab]*$"], share=6))
def test_masks_as_a_run_comes_near_to_its_bound(low, pattern):
    seed = random.Random(low)
    tokens, vocabulary = vocabulary_of(seed)
    longest = max(map(len, tokens))
    for high in (NEAR, NEAR + 1, longest - 1, longest, longest + 1, longest + 7):
        schema = {"type": "string", "minLength": low, "maxLength": high}
        if pattern is not None:
            schema["pattern"] = pattern
        compare(seed, tokens, vocabulary, schema)


@pytest.mark.parametrize(
    "pattern", each(["^(?:ab|abé|b)[ab]{0,%d}$", "^(?:aab|abé|b)(?:ab|é){0,%d}$", "^(?:abab|bé){0,%d}b$"], 2)
)
def test_masks_where_short_words_stand_before_a_run_or_make_one(pattern):
    seed = random.Random(len(pattern))
    tokens, vocabulary = vocabulary_of(seed)
    longest = max(map(len, tokens))
    for high in (NEAR + 1, longest - 1, longest, longest + 1):
        compare(seed, tokens, vocabulary, {"type": "string", "pattern": pattern % high})
        compare(seed, tokens, vocabulary, {"type": "string", "pattern": pattern % 200, "maxLength": high})
