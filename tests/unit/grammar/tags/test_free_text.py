"""Texts without words, and texts up to the first: against their definitions, on every short text."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guided.grammar.regular.derivative import matches
from guided.grammar.tags.free_text import TEXT, text_up_to, text_without
from tests.amounts import each

SETS = (["ab"], ["aab"], ["aba", "bb"], ["ab", "c"], ["<tool", "</t"], ["é<", "<<"], ["aaa"], ["abcab", "cc"])


def first_end(text: str, words: list[str]) -> int | None:
    """Where the first word to be read in full ends."""
    ends = [end for end in range(len(text) + 1) if any(text[:end].endswith(word) for word in words)]
    return min(ends) if ends else None


@pytest.mark.parametrize("words", each(SETS, 2), ids=str)
def test_every_short_text(words: list[str]) -> None:
    letters = [*sorted({*"".join(words)})[:3], "z"]
    for length in range(7):
        for letters_of_text in itertools.product(letters, repeat=length):
            text = "".join(letters_of_text)
            end = first_end(text, words)
            assert matches(text_without(words), text.encode()) == (end is None)
            for word in words:
                expected = end == len(text) and text.endswith(word)
                assert matches(text_up_to(word, words), text.encode()) == expected


@given(st.text(alphabet="ab<é\U0001f600", max_size=12), st.sampled_from(SETS))
def test_longer_texts(text: str, words: list[str]) -> None:
    assert matches(text_without(words), text.encode()) == (first_end(text, words) is None)


def test_texts_end_between_characters() -> None:
    for language in (TEXT, text_without(["é"]), text_without([])):
        assert not matches(language, "é".encode()[:1])
        assert matches(language, "日\U0001f600".encode())
    # The first byte of the word's first letter also begins other letters.
    assert matches(text_without(["é"]), "è".encode()) and not matches(text_without(["é"]), "é".encode())


def test_equal_words_share_their_automaton() -> None:
    assert text_without(["a", "b"]) is text_without(["b", "a", "b"])
