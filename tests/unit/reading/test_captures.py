"""Named parts of finished texts."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import guided
from guided.errors import GrammarError, TextError, UnsupportedError
from guided.grammar import library
from guided.grammar.ir import Lexing
from tests.amounts import each

GRAMMAR = r"""
start: statement+
statement: NAME "=" sum ";" -> assign
         | "print" sum ";" -> output
?sum: NUMBER | NAME | "(" sum ")" | sum "+" term
term: NUMBER nothing
nothing:
_hidden: NAME
NAME: /[a-z]+/
NUMBER: /[0-9]+/
%ignore " "
"""


@pytest.mark.parametrize("lexing", [None, Lexing.DYNAMIC])
def test_lark_rules_aliases_and_terminals(lexing: Lexing | None) -> None:
    text = "x = (1+2); print é;".replace("é", "y")
    found = guided.captures(guided.lark(GRAMMAR, lexing=lexing), text)
    assert found["assign"] == [("x = (1+2);", 0, 10)]
    assert found["output"] == [("print y;", 11, 19)]
    assert found["sum"] == [("1+2", 5, 8)]
    assert found["NAME"] == [("x", 0, 1), ("y", 17, 18)]
    assert [part.text for part in found["NUMBER"]] == ["1", "2"]
    assert found["nothing"] == [("", 8, 8)]
    assert found["start"] == [(text, 0, 19)]
    assert set(found) == {"start", "assign", "output", "sum", "term", "nothing", "NAME", "NUMBER"}
    for parts in found.values():
        assert all(text[part.start : part.end] == part.text for part in parts)


def test_names_that_are_wanted() -> None:
    grammar = guided.lark(GRAMMAR)
    assert guided.captures(grammar, "x = 1;", names=["NUMBER"]) == {"NUMBER": [("1", 4, 5)]}
    with pytest.raises(GrammarError, match="no name 'nonsense'"):
        guided.captures(grammar, "x = 1;", names=["nonsense"])


@pytest.mark.parametrize(("text", "offset"), [("x = ;", 4), ("x = 1", 5), ("", 0), ("x = 1; ?", 7)])
@pytest.mark.parametrize("lexing", [None, Lexing.DYNAMIC])
def test_lark_refuses(lexing: Lexing | None, text: str, offset: int) -> None:
    with pytest.raises(TextError) as caught:
        guided.captures(guided.lark(GRAMMAR, lexing=lexing), text)
    assert caught.value.where == f"offset {offset}"


@given(st.from_regex(r"[ab]{0,9}", fullmatch=True))
def test_patterns_mean_what_re_says(text: str) -> None:
    pattern = r"(?P<lazy>a*?)(?P<greedy>[ab]*)(?P<last>b)?|(?P<never>x)"
    found = guided.captures(guided.regex(pattern), text)
    match = re.fullmatch(pattern, text)
    assert match is not None
    for name, value in match.groupdict().items():
        assert [part.text for part in found[name]] == ([] if value is None else [value])
        assert [(part.start, part.end) for part in found[name]] == ([] if value is None else [match.span(name)])


def test_flags_and_repeated_groups() -> None:
    grammar = guided.regex(r"(?:(?P<word>[a-z]+) ?)+", flags=re.IGNORECASE)
    assert guided.captures(grammar, "One two") == {"word": [("two", 4, 7)]}


def test_json_by_pointer() -> None:
    grammar = guided.json_schema({"type": "object"})
    text = ' {"a": [1, {"b/c": "x\\n"}], "d": 2.5 } '
    found = guided.captures(grammar, text)
    assert list(found) == ["", "/a", "/a/0", "/a/1", "/a/1/b~1c", "/d"]
    assert found["/a/1/b~1c"] == [('"x\\n"', 19, 24)] and found["/d"] == [("2.5", 33, 36)]
    assert guided.captures(grammar, text, names=["/a/0", "/z"]) == {"/a/0": [("1", 8, 9)], "/z": []}
    with pytest.raises(TextError, match="must go on"):
        guided.captures(grammar, '{"a": 1')


@pytest.mark.parametrize(
    ("grammar", "error"),
    [
        (guided.choice(["a"]), UnsupportedError),
        (guided.gbnf('root ::= "a"'), UnsupportedError),
        (guided.regex("(?<x>a)", dialect="ecma"), UnsupportedError),
        (guided.regex(r"\p{L}"), UnsupportedError),
        (guided.regex("b"), TextError),
        (guided.lark('start: <t>? "a"', special_tokens=True), UnsupportedError),
    ],
)
def test_refused(grammar: guided.Grammar, error: type[Exception]) -> None:
    with pytest.raises(error):
        guided.captures(grammar, "a")


def test_the_text_is_text() -> None:
    with pytest.raises(TextError, match="bytes"):
        guided.captures(guided.regex("a"), b"a")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", each([name for name in library.names() if library.source(name).suffix == ".lark"], 2))
def test_ready_grammars(name: str) -> None:
    grammar = guided.grammar(name)
    for text in library.examples(name)[0][:5]:
        found = guided.captures(grammar, text)
        assert any(found.values())
        assert all(text[part.start : part.end] == part.text for parts in found.values() for part in parts)
