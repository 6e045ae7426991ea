"""The notation that a text is read in: by name, and by its looks."""

from __future__ import annotations

import pytest

import guided
from guided.errors import GrammarError
from guided.grammar.notations import Notation, read_as, read_as_written
from tests.vocabularies import of_bytes


@pytest.mark.parametrize(
    ("text", "yes"),
    [
        ('root ::= "a" b\nb ::=\n"c"', "ac"),
        ('root ::= "\\x41\\x0a" . 1b\n1b ::= "c"{,2}', "A\nxcc"),
        ('root ::= Regex("[a-z]+")\n', "ab"),
        ('root[lazy] ::= "a"+', "a"),
        ('start: "::=" /x/', "::=x"),
        ("start: A+\nA: /a/\n%ignore / /", "a a "),
        ('start: %json {"type": "boolean"} "."', "true."),
        ('start: a\na[lazy]: /x+/', "x"),
        ('start: "a"{2,3}', "aaa"),
        ("start: A\nA: /[a-z]+/ & ~/b+/", "bc"),
        ("start: a::0\na::_: /x/ %if true", "x"),
    ],
)  # fmt: skip
def test_its_looks_tell_a_notation(text: str, yes: str) -> None:
    constraint = guided.compile(read_as_written(text), of_bytes())
    state = constraint.advance_bytes(constraint.start, yes.encode())
    assert state
    assert constraint.is_accepting(state)


def test_the_error_is_that_of_the_first_notation() -> None:
    with pytest.raises(GrammarError, match="wrong order"):
        read_as_written('root ::= "a"{2,1}')
    with pytest.raises(GrammarError, match="a str"):
        read_as_written(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("notation", Notation)
def test_notations_by_name(notation: Notation) -> None:
    looks = {"iso-ebnf": 'root = "a";', "antlr": "grammar G; s: 'a';"} | dict.fromkeys(
        ("gbnf", "ebnf", "w3c-ebnf"), 'root ::= "a"'
    )
    text = looks.get(notation.value, 'start: "a"')
    constraint = guided.compile(read_as(text, notation.value), of_bytes())
    assert constraint.is_accepting(constraint.advance_bytes(constraint.start, b"a"))
    with pytest.raises(GrammarError, match="no notation"):
        read_as(text, "yacc")


@pytest.mark.parametrize(("dialect", "yes", "no"), [("rust", "\u0663\u00e9", "a"), ("xgrammar", "3_", "\u0663\u00e9")])
def test_patterns_of_other_engines(dialect: str, yes: str, no: str) -> None:
    constraint = guided.compile(guided.regex(r"\d\w", dialect=dialect), of_bytes())
    assert constraint.is_accepting(constraint.advance_bytes(constraint.start, yes.encode()))
    assert not constraint.advance_bytes(constraint.start, no.encode())
    with pytest.raises(guided.UnsupportedError, match="flags"):
        guided.regex("a", dialect=dialect, flags=2)
