"""Patterns beside bounds on the length, read as pairs of parts: masks against single bytes, and texts against `re`."""

from __future__ import annotations

import itertools
import json
import random
import re

import pytest

import guided
from guided.automata.lexer.spans import Span, bounded_pattern, span_of
from guided.grammar.formats.patterns import pattern_language
from guided.grammar.regular.expr import EPSILON, complement, intersection, repeat
from guided.grammar.regular.texts import CHARACTER
from tests import vocabularies
from tests.amounts import Refusals, each
from tests.unit.automata.lexer.test_far_bounds import compare_masks

LETTERS = ["a", "b", "c", "é", "-", ".", "\u2003", "\\n", "\\u00e9", "\\u2003"]
PATTERNS = [
    r"^(?:\S+\s){0,3}\S+$", r"^[^-]+-[^-]+(-[a-c]{2,4})?$", r"^(a|ab|abc)*(c|-)$", r"^(aé|b)*-$", r"a.*b|^-", r"^(a|b)+$",
    r"^[a-c]{3}(-[a-c]{3})*$", r"^(é|aé){2,5}\.?$", r"^(ab?){2,4}(-|c*)$", r"^a*b*c*$", r"^.*(é|\s).*$", r"^a{2,9}$|^b+$",
    r"^\S+@\S+$|^a{0,3}-*$", r"^(-[^-]+){1,4}$",
    r"^(a|bc){2,4}$", r"^(?:[a-c]+-)*[a-c]+$", r"^..-[^-]{2,3}a..?$",
]  # fmt: skip
UNITS = ["a", "b", "c", "-", "ab", "bc", "aé", "-a", "é", "abc-"]
BOUNDS = [(0, None), (0, 2), (0, 7), (0, 5), (1, 4), (3, None), (2, 9), (6, 8), (0, 40), (5, 60), (12, None), (7, 7)]


def some_tokens() -> tuple[list[bytes], guided.Vocabulary]:
    draw = random.Random(11)
    texts = vocabularies.random_tokens(draw, LETTERS, 700, 6)
    texts |= {"".join(letters).encode() for n in (2, 3, 4) for letters in itertools.product("ab-é", repeat=n)}
    texts |= {(unit * n + end).encode() for unit in UNITS for n in range(1, 9) for end in ("", '"')}
    tokens = vocabularies.with_bytes(texts | vocabularies.cut_tokens(draw, texts, 60))
    return tokens, vocabularies.of_tokens(tokens)


def bounded(pattern: str, low: int, high: int | None) -> dict[str, object]:
    schema: dict[str, object] = {"type": "string", "pattern": pattern}
    return schema | ({"minLength": low} if low else {}) | ({} if high is None else {"maxLength": high})


@pytest.mark.parametrize("pattern", each(PATTERNS, 3))
def test_masks_of_bounded_patterns(pattern):
    tokens, vocabulary = some_tokens()
    texts = some_texts(pattern)
    for low, high in BOUNDS:
        if any(fits(text, pattern, low, high) for text in texts):
            compare_masks(bounded(pattern, low, high), random.Random(low), tokens, vocabulary)


def test_masks_of_several_bounded_patterns():
    tokens, vocabulary = some_tokens()
    with Refusals(most=0.45) as refusals:
        for one, other in itertools.pairwise(PATTERNS):
            ways: list[dict[str, object]] = [bounded(one, 2, 12), bounded(other, 0, 50)]
            compare_masks({"anyOf": ways}, random.Random(one), tokens, vocabulary)
            with refusals.trial(guided.UnsatisfiableError):
                compare_masks({"allOf": ways}, random.Random(other), tokens, vocabulary)


BYTES = vocabularies.of_bytes()


def some_texts(pattern: str) -> set[str]:
    draw = random.Random(pattern)
    letters = ["a", "b", "c", "é", "-", ".", "\u2003", "@"]
    texts = {"".join(draw.choices(letters, k=draw.randint(0, 9))) for _ in range(60)}
    texts |= {draw.choice("abc-é") * n for n in range(1, 14)} | {"a" * n + "-" + "abc" * n for n in range(1, 4)}
    return texts | {unit * n for unit in UNITS for n in range(1, 9)}


@pytest.mark.parametrize("pattern", each(PATTERNS, 2))
def test_texts_are_accepted_that_match_within_the_bounds(pattern):
    texts = some_texts(pattern)
    for low, high in BOUNDS:
        try:
            constraint = guided.compile(guided.json_schema(bounded(pattern, low, high)), BYTES)
        except guided.UnsatisfiableError:
            assert not any(fits(text, pattern, low, high) for text in texts)
            continue
        for text in texts:
            state = constraint.start
            for byte in json.dumps(text, ensure_ascii=False).encode():
                state = constraint.advance(state, byte)
            assert (state != 0) == fits(text, pattern, low, high), (text, low, high)


def fits(text: str, pattern: str, low: int, high: int | None) -> bool:
    return re.search(pattern.replace("$", r"\Z"), text) is not None and low <= len(text) <= (high or len(text))


def test_spans_tell_what_keeps_the_bounds():
    letters = span_of(pattern_language("[a-c]{2,5}"))
    assert letters == Span(2, 5, 2, 2)
    bounds = [span_of(repeat(CHARACTER, low, high)) for low, high in ((0, 5), (0, 1), (6, 9), (2, None), (3, 4))]
    assert [letters.keeps(each) for each in bounds] == [True, False, False, True, False]
    words = span_of(pattern_language("([a-c]+-)*xyz"))
    assert (words.least, words.most, words.soon) == (3, None, 3)


def test_spans_of_what_is_left_of_a_character_or_word():
    whole = span_of(pattern_language("(a|bcd){2}[a-c]*x"))
    begun = span_of(pattern_language("(a|bcd){2}"))
    assert span_of(pattern_language("[a-c]*x")).behind(begun) == whole
    assert span_of(EPSILON).behind(begun) == begun


def test_patterns_within_a_run_are_recognised():
    pattern, run = pattern_language("[a-c]+-"), repeat(CHARACTER, 0, 9)
    assert bounded_pattern(intersection((pattern, run))) == (pattern, run)
    least = repeat(CHARACTER, 4)
    assert bounded_pattern(intersection((pattern, least))) == (pattern, least)
    for other in (
        pattern,
        run,
        EPSILON,
        intersection((pattern, repeat(CHARACTER))),
        intersection((run, complement(pattern))),
    ):
        assert bounded_pattern(other) is None
