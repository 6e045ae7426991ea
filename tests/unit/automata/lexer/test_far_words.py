"""Bounds on words that no token comes near: masks against a vocabulary of single bytes, and words against a count."""

from __future__ import annotations

import itertools
import random
import re

import numpy as np
import pytest

import guided
from guided.automata.lexer.words import USUAL, TokenWords, without_far_words
from guided.grammar.formats.patterns import pattern_language
from guided.grammar.json_schema.keywords.patterns import pattern_language as of_schema
from guided.grammar.regular.derivative import matches
from guided.grammar.regular.expr import Expr
from tests import vocabularies
from tests.unit.automata.lexer.test_far_bounds import compare_masks

LETTERS = [
    "a", "é", "-", " ", "  ", "\\n", "\\t", "\\u0020", "\\u00a0", "\\u00A0", "\\u0041", "\\\\", "n", "\u2003", "\u2014",
    "\u00a0", chr(34),
]  # fmt: skip
PATTERNS = [
    r"^(?:\S+\s+){%s}\S+$", r"^$|(^(?:\S+\s+){%s}\S+$)", r"^\S+(?:\s+\S+){%s}$", r"^([^ -]+ ){%s}a$", r"^(-[^-]+){%s}$",
    r"^(?:\S+\s+){%s}(?:a+-+){0,6}[a-]*$", r"^(?:[^- ]+[ -]+){%s}$", r"^(?:\S\s){%s}(?:\s\S){0,5}$",
]  # fmt: skip
MOST_WORDS = 6
"""That one of the tokens below begins; they have eleven letters at most."""


def some_tokens(*more: bytes) -> tuple[list[bytes], guided.Vocabulary]:
    """Tokens that begin up to six words each, and parts of them without a byte or two, so that they begin anywhere."""
    draw = random.Random(7)
    texts = vocabularies.random_tokens(draw, LETTERS, 900, 5)
    for parts in (["a", " "], ["a", "-"], ["-", "a"], ["é", " ", "a"], ["a", "\\u0020"], ["a", "\\n", "a", "\u2003"]):
        for start, n in itertools.product(range(len(parts)), range(1, 12)):
            alternating = [parts[(start + i) % len(parts)] for i in range(n)]
            texts |= {"".join(alternating).encode(), "".join(alternating).encode() + b'"'}
    tokens = vocabularies.with_bytes({*texts, *vocabularies.cut_tokens(draw, texts, 60), *more})
    return tokens, vocabularies.of_tokens(tokens)


def compare_with(pattern: str, most: range, tokens: list[bytes], vocabulary: guided.Vocabulary, **walks: int) -> None:
    for high in most:
        for low, length in ((0, None), (min(high, 2), None), (0, 30), (2, 30)):
            schema: dict[str, object] = {"type": "string", "pattern": pattern % f"{min(low, high)},{high}"}
            if length is not None:
                schema["maxLength"] = length
            compare_masks(schema, random.Random(high), tokens, vocabulary, **walks)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_masks_where_words_are_counted(pattern):
    tokens, vocabulary = some_tokens()
    compare_with(pattern, range(1, MOST_WORDS + 3), tokens, vocabulary)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_masks_differ_where_fewer_words_are_reckoned_with(pattern, monkeypatch):
    """So tokens come near the bounds that are compared with above."""
    monkeypatch.setattr("guided.automata.lexer.words.TokenWords.most", lambda *_: MOST_WORDS - 2)
    # Of a vocabulary that was seen before the effects are known.
    tokens, vocabulary = some_tokens(b"reckoned")
    with pytest.raises(AssertionError, match="pattern"):
        compare_with(pattern, range(MOST_WORDS - 2, MOST_WORDS + 2), tokens, vocabulary, walks=3)


def begun(text: str) -> int:
    """How many words of ``\\S+\\s+`` begin in a text that is read from the beginning of one, or from the middle."""
    return max(len(re.findall(r"(?:(?<=\s)|^)\S", text)), len(re.findall(r"(?<=\s)\S", text)))


def test_words_of_tokens_are_not_more():
    blank = frozenset(" \t\u00a0\u2003"[i].encode() for i in range(4))
    for seed in range(300):
        draw = random.Random(seed)
        text = "".join(draw.choices(["a", " ", "\t", "\u2014", "\u2003", "\u00a0", "\\"], k=draw.randint(1, 9)))
        other = "".join(draw.choices(["a", " "], k=2))
        spelled = [text.encode(), other.encode()]
        data = np.frombuffer(b"".join(spelled), np.uint8)
        offsets = np.array([0, *itertools.accumulate(map(len, spelled))], np.int64)
        runs = max(len(re.findall("[ \t\u00a0\u2003]+", each)) for each in (text, other))
        found = TokenWords(data, offsets).most(blank)
        escapes = text.count("\\t") + text.count("\\u")
        assert max(begun(text), begun(other)) <= runs + 1 <= found <= runs + escapes + 1


def test_escapes_count_one_by_one():
    """Spelling so, characters between words may be next to what only looks like one."""
    spelled = rb" \n \n\u0020\\n"
    data, offsets = np.frombuffer(spelled, np.uint8), np.array([0, 0, len(spelled)], np.int64)
    # Two blanks, each by itself, four escapes of which one is none, and a word that goes on behind the last.
    assert TokenWords(data, offsets).most(frozenset((b" ", b"\n"))) == 2 + 4 + 1


def words(between: frozenset[bytes]) -> int:
    return 4


@pytest.mark.parametrize(
    ("pattern", "same"),
    [
        (r"^(?:\S+\s+){0,9}\S+$", r"^(?:\S+\s+)*\S+$"), (r"^(?:\S+\s+){0,4}\S+$", r"^(?:\S+\s+)*\S+$"),
        (r"^(?:\s+\S+){0,4}a$", r"^(?:\s+\S+)*a$"), (r"^(?:\S+\s+){0,3}\S+$", None),
        (r"^(?:\S+\s+){2,9}\S+$", r"^(?:\S+\s+){2,}\S+$"),
        # Classes that share a character, both with many, and words that may be empty.
        (r"^(?:[a ]+\s+){0,9}$", None), (r"^(?:[^a]+[^b]+){0,9}$", None),
        (r"^(?:\S*\s+){0,9}$", None), (r"^(?:[^\"]+[\"]+){0,9}$", None), (r"^(?:(?:ab)+ ){0,9}$", None),
        (r"^(?:\S{1,2}\s+){0,9}$", None),
    ],
)  # fmt: skip
def test_bounds_that_are_left_out(pattern, same):
    language: Expr = pattern_language(pattern[1:-1])
    near = without_far_words(language, words)
    assert near is (language if same is None else pattern_language(same[1:-1]))


def test_white_space_is_what_patterns_mean_by_it() -> None:
    blank = of_schema(r"^\s$", "#")
    characters = [chr(code).encode() for code in range(0x10000) if not 0xD800 <= code < 0xE000]
    assert {character for character in characters if matches(blank, character)} == USUAL[0]


@pytest.mark.parametrize(("tokens", "most"), [([], 1), ([b""], 1), ([b" "], 2), ([b" b ", b"", b"\xe3\x80"], 3)])
def test_small_vocabularies_have_words(tokens: list[bytes], most: int) -> None:
    data = np.frombuffer(b"".join(tokens), np.uint8)
    offsets = np.cumsum([0, *map(len, tokens)]).astype(np.int64)
    assert TokenWords(data, offsets).most(USUAL[1]) == most
