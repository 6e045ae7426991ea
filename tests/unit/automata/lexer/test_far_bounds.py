"""Bounds that no token comes near, beside a pattern and in it: masks against a vocabulary of single bytes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

import guided
from guided.automata.lexer.endless import is_endless
from guided.automata.lexer.runs import may_be_longer, within_reach
from guided.grammar.formats.patterns import pattern_language
from guided.grammar.regular.expr import (
    Expr,
    byte_range,
    complement,
    concat,
    intersection,
    json_string,
    literal,
    repeat,
)
from guided.grammar.regular.texts import CHARACTER
from guided.kernels.data.layout import DEAD
from tests import vocabularies
from tests.amounts import Refusals, crossed, each, some

FAR = 10**6
LENGTHS = {
    "^[a-z](-?[a-z])*$": range(1, FAR), "^([a-z]{1,5}[.])*[a-z]{1,4}$": range(1, FAR), "^(aé|b)*xyz$": range(3, FAR),
    "[0-9]b": range(2, FAR), "^[a-c]*(dd){3}$": range(6, FAR), "^[a-d]{2,14}-[a-d]{0,40}b$": range(4, 57),
    "^([a-z]+|7){2,9}$": range(2, FAR), "^([a-z]|[a-z]b){1,40}$": range(1, 81), "^([a-z]+|7-)+$": range(1, FAR),
    "^(ab){2,30}$": range(4, 61, 2), "^(é|aé|q){2,5}$": range(2, 11), "^[^a]{2,20}$": range(2, 21),
}  # fmt: skip
"""Patterns, and the lengths of their texts."""
PATTERNS = list(LENGTHS)
LETTERS = ["a", "b", "-", ".", "é", "xyz", "dd", "7", "7b", "c", '"', "aé", "ab"]
BYTES = vocabularies.of_bytes()


def allowed(state, constraint, n: int) -> set[int]:
    row = np.zeros(constraint.vocabulary.n_words, np.uint32)
    constraint.fill_mask(state, row)
    return {token for token in range(n) if row[token >> 5] >> (token & 31) & 1}


def compare_masks(
    schema: dict[str, object], seed: random.Random, tokens: list[bytes], vocabulary, walks: int = some(3, 2)
) -> None:
    grammar = guided.json_schema(schema)
    by_token, by_byte = guided.compile(grammar, vocabulary), guided.compile(grammar, BYTES)
    step_byte = cache(by_byte.advance)
    for _ in range(walks):
        state, place = by_token.start, by_byte.start
        for step in range(8):
            fits = set()
            for token, text in enumerate(tokens):
                after = place
                for byte in text:
                    after = step_byte(after, byte)
                    if after == DEAD:
                        break
                else:
                    fits.add(token)
            assert allowed(state, by_token, len(tokens)) == fits, schema
            if not fits:
                break
            if step == 0:
                # Not white space before the string, for ever.
                fits = {token for token in fits if tokens[token].strip(b" \t\r\n")}
            token = seed.choice(sorted(fits - {tokens.index(b'"')} or fits))
            state = by_token.advance(state, token)
            for byte in tokens[token]:
                place = by_byte.advance(place, byte)


def some_tokens(seed: random.Random, more: Sequence[bytes] = ()) -> tuple[list[bytes], guided.Vocabulary]:
    """Tokens enough for effects, which small tries are walked without."""
    pieces = vocabularies.random_tokens(seed, LETTERS, 2500, 5)
    tokens = vocabularies.with_bytes({*pieces, *more, b'a"', b'b"', b'-"', b'ab"'})
    return tokens, vocabularies.of_tokens(tokens)


@pytest.mark.parametrize(("pattern", "also"), crossed(PATTERNS, [False, True], share=6))
def test_masks_under_bounds_near_and_far(pattern, also):
    seed = random.Random(pattern)
    tokens, vocabulary = some_tokens(seed)
    longest = max(map(len, tokens))
    for high in range(max(longest - 6, 7), longest + 9, 3):
        schema: dict[str, object] = {"type": "string", "pattern": pattern, "maxLength": high}
        if also:
            schema = {"anyOf": [schema, {"type": "string", "pattern": "^q[a-c]+$"}]}
        compare_masks(schema, seed, tokens, vocabulary)


@pytest.mark.parametrize(("pattern", "least"), crossed([*PATTERNS, "b+-", "^q?(dd|é)+$"], [1, 6, 17], share=6))
def test_masks_under_bounds_on_both_sides(pattern, least):
    seed = random.Random(pattern)
    tokens, vocabulary = some_tokens(seed)
    longest = max(map(len, tokens))
    lengths = {**LENGTHS, "b+-": range(2, FAR), "^q?(dd|é)+$": range(1, FAR)}[pattern]
    for high in (least, least + 2, longest + 1, max(longest, least) + 9):
        schema: dict[str, object] = {"type": "string", "pattern": pattern, "minLength": least, "maxLength": high}
        if any(length in lengths for length in range(least, high + 1)):
            compare_masks(schema, seed, tokens, vocabulary)
        else:
            with pytest.raises(guided.UnsatisfiableError):
                guided.compile(guided.json_schema(schema), vocabulary)


@pytest.mark.parametrize("pattern", each(["a+b*", "(dd|é){2,}", "7.*-.*", "xyz|^b", "(?!aé)b"], 2))
@pytest.mark.parametrize("least", [1, 7, 18])
def test_masks_of_what_is_searched_for_in_long_texts(pattern, least):
    seed = random.Random(pattern)
    tokens, vocabulary = some_tokens(seed)
    compare_masks({"type": "string", "pattern": pattern, "minLength": least}, seed, tokens, vocabulary)


@pytest.mark.parametrize(("pattern", "least"), crossed(PATTERNS, [0, 1, 3]))
def test_masks_of_what_repeats_more_than_single_characters(pattern, least):
    seed = random.Random(pattern)
    tokens, vocabulary = some_tokens(seed)
    compare_masks({"type": "string", "pattern": pattern, "minLength": least}, seed, tokens, vocabulary)


@pytest.mark.parametrize("pattern", each(["b+", "^a.*b", "dd", "7.*-", "^x(yz)*$"], 2))
def test_masks_of_names_beside_patterns_and_declared_names(pattern):
    seed = random.Random(pattern)
    tokens, vocabulary = some_tokens(seed, b'{"|":|,"|rue|yz|ab":|dd"|dd":1|a7"'.split(b"|"))
    schema: dict[str, object] = {
        "type": "object",
        "properties": {name: {"const": 1} for name in ("ab", "dd", "a7", "7b-", "x", "xyz", "é")},
        "patternProperties": {pattern: {"enum": [1, True]}},
        "additionalProperties": {"const": True},
    }
    compare_masks(schema, seed, tokens, vocabulary)


def bounded(pattern: str, high: int) -> Expr:
    return intersection((pattern_language(pattern), repeat(CHARACTER, 0, high)))


def test_bounds_are_dropped_when_the_pattern_can_end_within_them():
    pattern = pattern_language("[a-z]*wxyz")
    assert within_reach(bounded("[a-z]*wxyz", 16), 10) is pattern
    assert within_reach(bounded("[a-z]*wxyz", 15), 10) is not pattern
    assert within_reach(pattern, 10) is pattern


def test_bounds_on_both_sides_lose_the_far_one():
    pattern = pattern_language("[a-z]*wxyz")
    for low, high in ((2, 99), (2, 16), (30, 36)):
        both = intersection((pattern, repeat(CHARACTER, low, high)))
        assert within_reach(both, 10) is intersection((pattern, repeat(CHARACTER, low)))
    for low, high in ((2, 15), (30, 35)):
        both = intersection((pattern, repeat(CHARACTER, low, high)))
        assert within_reach(both, 10) is both


def test_patterns_that_end_with_any_text_may_be_longer():
    search = concat(repeat(CHARACTER), byte_range(0x61, 0x7A), repeat(CHARACTER))
    for pattern, expected in (
        (search, True),
        (intersection((search, concat(literal(b"a"), repeat(CHARACTER)))), True),
        (intersection((search, repeat(byte_range(0x61, 0x7A)))), False),
        (concat(search, literal(b"a")), False),
        (repeat(CHARACTER, 1), False),
    ):
        assert may_be_longer(json_string(pattern)) is expected


SEARCHED = ["[0-9]", "ab", "^a", "[0-9].*b", "a|b7", "^(?:a|.*b.*)7", "^[^a]*$", "7$", "(dd){2}"]


@pytest.mark.parametrize("bounds", each([(4, 4), (2, 5), (7, 30), (3, 3), (12, 12)], 2))
def test_bounds_on_both_sides_beside_what_is_searched_for(bounds):
    seed = random.Random(str(bounds))
    tokens, vocabulary = some_tokens(seed)
    schema: dict[str, object] = {"type": "string", "minLength": bounds[0], "maxLength": bounds[1]}
    # No text of some patterns is that short.
    with Refusals(most=0.12) as refusals:
        for pattern in SEARCHED:
            for also in ({"pattern": pattern}, {"allOf": [{"pattern": pattern}, {"pattern": "b"}]}):
                with refusals.trial(guided.UnsatisfiableError):
                    compare_masks(schema | also, seed, tokens, vocabulary)


def test_bounds_of_repetitions_are_dropped_where_no_token_reaches_them():
    letters = byte_range(0x61, 0x7A)
    assert within_reach(repeat(letters, 2, 11), 10) is repeat(letters, 2)
    assert within_reach(repeat(letters, 2, 10), 10) is repeat(letters, 2, 10)
    assert within_reach(repeat(letters, 70, 99), 10) is repeat(letters, 11)
    assert within_reach(repeat(letters, 11), 10) is repeat(letters, 11)
    both = concat(repeat(letters, 0, 40), literal(b"-"), repeat(letters, 1, 9), literal(b"-"), repeat(letters, 5, 30))
    near = concat(repeat(letters), literal(b"-"), repeat(letters, 1, 9), literal(b"-"), repeat(letters, 5))
    assert within_reach(both, 10) is near
    assert within_reach(near, 10) is near
    assert within_reach(intersection((both, repeat(CHARACTER, 0, 60))), 10) is near


FORBIDDEN = ["ab", "[^a]", "[^a]|aaa", "^b|7$", "(dd){2}|é", "[^ab]|bb", "^.{6}", "^[^]{6}", "^[^b]{4}", "a.*b|-"]


@pytest.mark.parametrize("pattern", each(FORBIDDEN, 2))
def test_masks_of_what_is_found_or_not_and_none_of_some_words(pattern):
    """Languages that end soon among them, in which a word left out may be all that there was."""
    seed = random.Random(pattern)
    tokens, vocabulary = some_tokens(seed)
    with Refusals(most=0.125) as refusals:
        for left_out in (["a", "aa"], ["", "a", "aé", "b-", "xyzdd"], ["a" * n for n in range(7)], ["b", "abab", "7b"]):
            neither = {"type": "string", "not": {"anyOf": [{"pattern": pattern}, {"enum": left_out}]}}
            found = {"type": "string", "pattern": pattern, "not": {"enum": left_out}}
            for schema in (neither, found):
                with refusals.trial(guided.UnsatisfiableError):
                    compare_masks(schema, seed, tokens, vocabulary)


def test_endless_is_what_no_words_can_exhaust():
    text = repeat(CHARACTER)
    for found, expected in (
        ("ab", True),
        ("[^a]", True),
        ("[^a]|aaa", False),
        ("^(?s:.{6})", False),
        ("^.{6}", True),
        ("^b", True),
    ):
        searched = pattern_language(f"(?:{found.removeprefix('^')})(?s:.*)")
        searched = searched if found.startswith("^") else concat(text, searched)
        assert is_endless(intersection((text, complement(searched)))) is expected, found
    assert not is_endless(literal(b"ab"))
