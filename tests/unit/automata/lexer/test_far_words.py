"""Bounds on words that tokens come near or not: masks against a vocabulary of single bytes."""

from __future__ import annotations

import itertools
import random

import pytest

import guided
from tests import vocabularies
from tests.amounts import ALL, each
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


@pytest.mark.parametrize("pattern", each(PATTERNS, 2))
def test_masks_where_words_are_counted(pattern):
    tokens, vocabulary = some_tokens()
    compare_with(pattern, range(1, MOST_WORDS + 3, 1 if ALL else 3), tokens, vocabulary)
