"""A small L-attributed grammar, against a reader written out: names are used only behind their declaration."""

from __future__ import annotations

import weakref
from itertools import product

import pytest

from guided.grammar.attributed.language import AttributedLanguage
from guided.grammar.attributed.lexis import Lexis, next_utf8
from guided.grammar.attributed.nodes import (
    Action,
    Literal,
    LiteralForm,
    Name,
    Names,
    Node,
    Rule,
    Sign,
    Star,
    choice,
    listed,
    maybe,
    seq,
    words,
)
from guided.grammar.attributed.words import words_of

Declared = frozenset[str]
LEXEMES = ("let", "use", "a", "b", "{", "}", ";", "1", "'s'")


class New:
    """A name that is declared."""

    label = "a new name"
    price = 1

    def allowed(self, declared: Declared) -> Names:
        return Names(words_of(()), free=True)

    def after(self, declared: Declared, name: str) -> Declared | None:
        return None if name in declared else declared | {name}

    def suggested(self, declared: Declared) -> list[str]:
        return [name for name in "abcdefgh" if name not in declared]


class Known:
    """A name that was declared."""

    label = "a known name"
    price = 1

    def allowed(self, declared: Declared) -> Names:
        return Names(words_of(declared))

    def after(self, declared: Declared, name: str) -> Declared:
        return declared

    def suggested(self, declared: Declared) -> list[str]:
        return sorted(declared)


class One:
    """Any literal."""

    label = "a literal"

    def __init__(self, shortest: str) -> None:
        self.shortest = shortest

    def allowed(self, declared: Declared) -> None:
        return None

    def after(self, declared: Declared) -> Declared:
        return declared


def grammar() -> Node:
    """``let NAME ;``, ``use VALUE ... ;``, ``{ ... }``: what is declared in braces stays."""
    statement = Rule("statement")
    value = choice(Name(Known()), Literal(LiteralForm.NUMBER, One("1")), Literal(LiteralForm.STRING, One("''")))
    statement.body = choice(
        seq(words("LET"), Name(New()), Sign(";")),
        seq(words("USE"), value, Star(value), Sign(";")),
        seq(Sign("{"), Star(statement), Sign("}"), maybe(Sign(";"))),
    )
    return Star(statement)


@pytest.fixture(scope="module")
def language() -> AttributedLanguage:
    return AttributedLanguage(grammar(), frozenset(), Lexis(frozenset({"let", "use"})), lambda declared: declared)


def is_program(lexemes: tuple[str, ...]) -> bool:
    """The reader written out."""
    declared: set[str] = set()
    at = depth = 0
    while at < len(lexemes):
        lexeme = lexemes[at]
        if lexeme == "let":
            if at + 2 >= len(lexemes) or lexemes[at + 1] not in {"a", "b"} - declared or lexemes[at + 2] != ";":
                return False
            declared.add(lexemes[at + 1])
            at += 3
        elif lexeme == "use":
            at += 1
            begin = at
            while at < len(lexemes) and lexemes[at] in {"1", "'s'", *declared}:
                at += 1
            if at == begin or at >= len(lexemes) or lexemes[at] != ";":
                return False
            at += 1
        elif lexeme == "{":
            depth += 1
            at += 1
        elif lexeme == "}" and depth:
            depth -= 1
            at += 1
            if at < len(lexemes) and lexemes[at] == ";":
                at += 1
        else:
            return False
    return not depth


def test_texts_are_those_of_the_reader(language: AttributedLanguage) -> None:
    found = 0
    for size in range(6):
        for lexemes in product(LEXEMES, repeat=size):
            expected = is_program(lexemes)
            assert language.reads(" ".join(lexemes).encode()) is expected, lexemes
            found += expected
    assert found == 37


def test_every_state_has_an_end(language: AttributedLanguage) -> None:
    states, depth = {language.start}, 0
    seen = set(states)
    while depth < 7:
        depth += 1
        following = set()
        for at in states:
            for byte in language.following(at):
                if byte not in b"letus abc1';{}\n":
                    continue
                after = language.step(at, byte)
                assert after is not None
                following.add(after)
        states = following - seen
        seen |= states
        for at in states:
            rest = language.rest(at)
            end = at
            for position, byte in enumerate(rest):
                after = language.step(end, byte)
                assert after is not None, (at, rest, position)
                end = after
            assert language.may_end(end), (at, rest)
    assert len(seen) > 300


def test_words_end_where_letters_do(language: AttributedLanguage) -> None:
    assert language.reads(b"let ab;use ab;")
    assert language.reads(b"LET A;uSe a 1 'x' a;")
    assert not language.reads(b"leta;")
    assert not language.reads(b"let let;")
    assert language.reads(b'let "let";use "let";')
    assert not language.reads(b"let a;use a1;")
    assert not language.reads(b"let a;use 1a;")


def test_strings_are_utf_8_and_double_their_quotes(language: AttributedLanguage) -> None:
    assert language.reads("use 'it''s' 'é€😀';".encode())
    assert not language.reads(b"use '\xff';")
    assert not language.reads(b"use '\xc3';")
    assert not language.reads(b"use 'a' 'b;")


def test_an_action_forbids_what_follows() -> None:
    once = Action(lambda count: count + 1 if count < 2 else None)
    language = AttributedLanguage(
        listed(seq(once, words("A")), Sign(",")), 0, Lexis(frozenset({"a"})), lambda _: frozenset()
    )
    assert [language.reads(b",".join([b"a"] * count)) for count in range(4)] == [False, True, True, False]


@pytest.mark.parametrize("length", [1, 2])
def test_utf_8_is_read_as_python_reads_it(length: int) -> None:
    for text in map(bytes, product(range(0x60, 0x100), repeat=length)):
        state: tuple[int, int, int] | None = (0, 0, 0)
        for byte in text:
            state = None if state is None else next_utf8(state, byte)
        try:
            text.decode()
            whole = True
        except UnicodeDecodeError:
            whole = False
        assert (state == (0, 0, 0)) is whole, text


def test_what_is_known_of_threads_keeps_their_attributes() -> None:
    """It is known by where they are, which may else be another's place, once places were forgotten."""

    class Held(frozenset[str]):
        pass

    lexis = Lexis(frozenset({"let", "use"}))
    threads = AttributedLanguage(grammar(), frozenset(), lexis, lambda declared: declared).threads
    (stack, _) = threads.start.threads[0]
    held = Held()
    alive = weakref.ref(held)
    threads.lead_on([(stack, held)])
    del held
    assert alive() is not None
