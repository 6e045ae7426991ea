"""Literals that are held to a regular expression, beside others that may be anything."""

from __future__ import annotations

import numpy as np
import pytest

import guided
from guided.constraint.attributed import AttributedConstraint
from guided.grammar.attributed.language import AttributedLanguage
from guided.grammar.attributed.lexis import Lexis
from guided.grammar.attributed.nodes import Action, Literal, LiteralForm, Star, choice, seq, words
from guided.grammar.attributed.spellings import Spellings


class Held:
    """Literals of a pattern, or any."""

    label = "a literal"

    def __init__(self, pattern: str | None, name: str, shortest: str) -> None:
        self.values = None if pattern is None else Spellings(pattern)
        self.name = name
        self.shortest = shortest

    def allowed(self, attribute: str) -> Spellings | None:
        return self.values

    def after(self, attribute: str) -> str:
        return self.name


@pytest.fixture(scope="module")
def language() -> AttributedLanguage:
    string = choice(
        Literal(LiteralForm.STRING, Held("20[0-9]{2}(-0[1-9])?|it's", "date", "'2000'")),
        Literal(LiteralForm.STRING, Held(None, "any", "''"), gives_way=True),
        Literal(LiteralForm.NUMBER, Held("[0-9]{1,3}", "short", "1")),
        Literal(LiteralForm.NUMBER, Held(r"[0-9]{4,6}(\.5)?", "long", "1000")),
    )

    def only(name: str) -> Action:
        return Action(lambda attribute: attribute if attribute == name else None)

    behind = choice(*(seq(only(name), words(name)) for name in ("date", "any", "short", "long")))
    return AttributedLanguage(Star(seq(words("SAY"), string, behind)), "", Lexis(frozenset()), lambda name: frozenset())


TAKEN = [
    "say '2020' date", "say '2020-01' date", "say '2020-' any", "say '' any", "say 'é' any", "say 'it''s' date",
    "say 'it''' any", "say 'it''sx' any", "say 12 short", "say 1234 long say 1234.5 long",
]  # fmt: skip
REFUSED = [
    "say '2020' any",
    "say '2020-1' date",
    "say 'it''s' any",
    "say 12 long",
    "say 1234.6 long",
    "say 1234567 long",
]


@pytest.mark.parametrize(("text", "taken"), [(text, True) for text in TAKEN] + [(text, False) for text in REFUSED])
def test_texts_decide_what_may_follow(text: str, taken: bool, language: AttributedLanguage) -> None:
    assert language.reads(text.encode()) is taken


def test_all_beginnings_end(language: AttributedLanguage) -> None:
    for text in TAKEN:
        state = language.start
        for position, byte in enumerate(text.encode()):
            after = language.step(state, byte)
            assert after is not None
            state = after
            assert language.reads(text.encode()[: position + 1] + language.rest(state))


def test_masks_are_the_tokens_that_can_be_read(language: AttributedLanguage) -> None:
    pieces = ["2020", "020", "'2020", "2020'", "-01'", "20' any", "20' date", "' any", "' date", "'' ", "it''s", "s' date",
              "s' any", "''s", "x' any", "x' date", "12", "34.", ".5", " 12 short", "say '", "say '20"]  # fmt: skip
    tokens = [bytes([byte]) for byte in range(256)] + [piece.encode() for piece in pieces]
    vocabulary = guided.Vocabulary.from_tokens([*tokens, None], eos_ids=[len(tokens)])
    constraint = AttributedConstraint(language, vocabulary)
    row = np.zeros(vocabulary.n_words, np.uint32)
    for text in TAKEN:
        state = constraint.start
        for byte in text.encode():
            constraint.fill_mask(state, row)
            for token in range(vocabulary.size):
                allowed = bool(row[token >> 5] >> (token & 31) & 1)
                assert allowed is (constraint.advance(state, token) != 0), (text, state, token)
            state = constraint.advance(state, byte)
            assert state
