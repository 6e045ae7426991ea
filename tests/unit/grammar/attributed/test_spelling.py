"""What only some dialects spell: names whose letter case matters, brackets that must not stand apart, backslashes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import guided
from guided.constraint.attributed import AttributedConstraint
from guided.grammar.attributed.language import AttributedLanguage
from guided.grammar.attributed.lexis import Lexis
from guided.grammar.attributed.nodes import Literal, LiteralForm, Name, Names, Sign, Spelled, Star, choice, seq, words
from guided.grammar.attributed.words import words_of


class Listed:
    """Some names, or any."""

    label = "a name"
    price = 8

    def __init__(self, *names: str, free: bool = False) -> None:
        self.names = Names(words_of(names), free)

    def allowed(self, attribute: None) -> Names:
        return self.names

    def after(self, attribute: str, name: str) -> str:
        return name

    def suggested(self, attribute: str) -> list[str]:
        return sorted(self.names.words.members)[:1] or ["a"]


class Any:
    """Any string."""

    label = "a string"
    shortest = "''"

    def allowed(self, attribute: str) -> None:
        return None

    def after(self, attribute: str) -> str:
        return ""


@pytest.fixture(scope="module")
def language() -> AttributedLanguage:
    value = choice(
        Name(Listed("Singer", "t1"), is_exact=True),
        Name(Listed("age", "count")),
        seq(Name(Listed("count(", "max("), Spelled.WORD), Sign(")")),
        Literal(LiteralForm.STRING, Any()),
        Name(Listed(free=True), Spelled.STRING),
    )
    new = Name(Listed(free=True), is_exact=True)
    lexis = Lexis(frozenset({"use", "new"}), quotes=("`",), text_quotes=('"',), escapes=True, keeps_case=True)
    return AttributedLanguage(
        Star(choice(seq(words("USE"), value), seq(words("NEW"), new))), "", lexis, lambda name: frozenset({name})
    )


TAKEN = [
    "use Singer", "USE `Singer`", "use AGE", "use `Age`", "use count", "use count()", "use COUNT( )", "use t1 use Max()",
    r"use 'a\'b'", r"use 'a\\'", "use 'it''s'", '''use "it's ""x"""''', 'use ""', r"use '\é'", "new Foo", "new `x\\`", r"use '\%_'",
]  # fmt: skip
REFUSED = [
    "use singer", "use SINGER", "use `singer`", "use T1", "use count ()", "use max", 'use "a', r"use 'a\'", r'use "a\b"',
    "use `Age", "new use", "new 'a'", 'new "a"', 'new ""', "new ``",
]  # fmt: skip


@pytest.mark.parametrize("text", TAKEN)
def test_what_is_taken(text: str, language: AttributedLanguage) -> None:
    assert language.reads(text.encode())


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_refused(text: str, language: AttributedLanguage) -> None:
    assert not language.reads(text.encode())


def test_every_beginning_has_an_end(language: AttributedLanguage) -> None:
    for text in TAKEN:
        at = language.start
        for byte in text.encode():
            after = language.step(at, byte)
            assert after is not None
            at = after
            rest = language.rest(at)
            assert len(rest) <= language.price(at)
            for following in rest:
                after = language.step(after, following)
                assert after is not None, (text, rest)
            assert language.may_end(after)


def pieces() -> Iterator[str]:
    yield from (
        "count(",
        "Count()",
        "(",
        "Sing",
        "sing",
        "er",
        "ger use ",
        "\\",
        "\\'",
        "a\\",
        "\\\\",
        '\\"',
        '"',
        "`",
        "'",
    )
    yield from (
        " age",
        " Age ",
        "foo(",
        "T1",
        "1",
        "new ",
        "xyz\\'",
        "xyz'",
        "xyz\\",
        'xyz"',
        "a' use ",
        "ount(",
        "ount",
    )


def test_masks_are_the_tokens_that_can_be_read(language: AttributedLanguage) -> None:
    tokens = [bytes([byte]) for byte in range(256)] + [piece.encode() for piece in pieces()]
    # Names and strings are taken from lists where there are many tokens.
    tokens += [f"{first}{second}".encode() for first in "abcdefghijk" for second in "lmnopqrstu"]
    vocabulary = guided.Vocabulary.from_tokens([*dict.fromkeys(tokens), None], eos_ids=[len(dict.fromkeys(tokens))])
    constraint = AttributedConstraint(language, vocabulary)
    row = np.zeros(vocabulary.n_words, np.uint32)
    for text in TAKEN:
        state = constraint.start
        for byte in text.encode():
            constraint.fill_mask(state, row)
            for token in range(vocabulary.size):
                allowed = bool(row[token >> 5] >> (token & 31) & 1)
                assert allowed is (constraint.advance(state, token) != 0), (text, state, vocabulary.token_bytes(token))
            state = constraint.advance(state, byte)
        assert constraint.is_accepting(state)
