"""Walks along literals that are held to a regular expression, against the tokens read byte by byte."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import guided
from guided import tokenset
from guided.constraint.attributed import spelled
from guided.constraint.attributed.spelled import SpelledRun
from guided.constraint.attributed.walks import Walks
from guided.grammar.attributed.lexis import Lexis
from guided.grammar.attributed.spellings import Spellings

LEXIS = Lexis(frozenset())
COUNTED = "([a-c]{2,9}[0-9'])" + "{0,30}"
QUOTE = ord("'")


def _texts(alphabet: str, most: int) -> list[bytes]:
    return ["".join(some).encode() for size in range(1, most + 1) for some in itertools.product(alphabet, repeat=size)]


def _in_quotes(spellings: Spellings, before: bytes, token: bytes) -> tuple[bool, bytes | None, int]:
    """May a token come within quotes, and what was read where they close in it, if it goes on, and where that is?"""
    text, at = before, 0
    while at < len(token):
        if token[at] != QUOTE:
            text += token[at : at + 1]
        elif at + 1 < len(token) and token[at + 1] == QUOTE and spellings.begins(text + b"'"):
            text += b"'"
            at += 1
        elif at + 1 == len(token):
            closes = text.decode() in spellings or spellings.begins(text + b"'")
            return closes, None, 0
        else:
            return False, text if text.decode() in spellings else None, at + 1
        if not spellings.begins(text):
            return False, None, 0
        at += 1
    return True, None, 0


@pytest.mark.parametrize("most", [1 << 14, 8])
def test_in_quotes(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spelled, "_MOST_STATES", most)
    tokens = [*_texts("ab1'", 4), b"ab1" * 30, b"ab1" * 31, b"ab1" * 30 + b"',", b"abc", b"x", b"ab0',", b"ab''',"]
    vocabulary = guided.Vocabulary.from_tokens([*tokens, None], eos_ids=[len(tokens)])
    walks, spellings = Walks.of(vocabulary), Spellings(COUNTED)
    run = SpelledRun(spellings, QUOTE, b"'")
    for before in (b"", b"a", b"ab1", b"ab'", b"ab1" * 29 + b"ab", b"ab1" * 30):
        state = run.state(before)
        assert state is not None
        found = walks.spelled(walks.starts([0]), run, state, frozenset(range(256)))
        expected = [_in_quotes(spellings, before, token) for token in tokens]
        assert tokenset.ids(found.row).tolist() == [place for place, one in enumerate(expected) if one[0]], before
        ends = {(before + one.text, walks.last_bytes(one.node, len(one.text) + 1)[-1:]) for one in found.crossings}
        assert ends == {(text, b"'") for _, text, _ in expected if text is not None}, before


@pytest.mark.parametrize("pattern", ["[0-9]{1,3}", r"[0-9]{0,20}\.[0-9]{1,9}([eE][+-]?[0-9]{1,2})?", None])
def test_numbers(pattern: str | None) -> None:
    tokens = [*_texts("01.e-", 4), b"1" * 15, b"1" * 16, b"1.5)", b"2,"]
    vocabulary = guided.Vocabulary.from_tokens([*tokens, None], eos_ids=[len(tokens)])
    walks, spellings = Walks.of(vocabulary), None if pattern is None else Spellings(pattern)
    run = SpelledRun(spellings, None, b"")

    def begins(text: bytes) -> bool:
        return LEXIS.number_may_go_on(text) and (spellings is None or spellings.begins(text))

    for before in (b"", b"1", b"12", b"1.", b".", b"0.5", b"1e", b"1.5e-"):
        state = run.state(before)
        assert (state is not None) is (not before or begins(before))
        if state is None:
            continue
        row = walks.spelled(walks.starts([0]), run, state, frozenset(range(256))).row
        # A number that begins with a point has it before the walk.
        allowed = [begins(before + token) and (before != b"" or token[:1] != b".") for token in tokens]
        assert tokenset.ids(row).tolist() == np.flatnonzero(allowed).tolist(), before
