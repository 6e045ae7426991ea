"""Names that each name the next one twice: 2^30 characters in thirty lines, compiled or refused at once."""

from __future__ import annotations

import pytest

import guided
from guided.errors import LimitError
from guided.grammar.antlr import antlr
from tests.vocabularies import of_bytes

N = 30
LARK = "\n".join(["start: A0", *(f"A{i}: A{i + 1} A{i + 1}" for i in range(N)), f'A{N}: "a"'])
ANTLR = "\n".join(
    [
        "grammar G; s: A0; A0: A1 A1;",
        *(f"fragment A{i}: A{i + 1} A{i + 1};" for i in range(1, N)),
        f"fragment A{N}: 'a';",
    ]
)
GBNF = "\n".join(["root ::= a0", *(f"a{i} ::= a{i + 1} a{i + 1}" for i in range(N)), f'a{N} ::= "a"'])


@pytest.mark.parametrize(
    "read",
    [
        lambda: guided.lark(LARK),
        lambda: guided.lark(LARK.replace(" A1\n", "\n%extend A0: A1 A1\n", 1)),
        lambda: guided.lark(LARK, dialect="llguidance"),
        lambda: guided.lark(LARK, dialect="xgrammar"),
        lambda: antlr(ANTLR),
    ],
    ids=["lark", "extended", "llguidance", "xgrammar", "antlr"],
)
def test_terminals_are_refused(read):
    with pytest.raises(LimitError, match="written out"):
        read()


def test_rules_are_compiled():
    constraint = guided.compile(guided.gbnf(GBNF), of_bytes())
    assert constraint.advance_bytes(constraint.start, b"a" * 1000)


def test_fragments_that_nest_are_refused_as_too_deep():
    chain = [f"fragment A{i}: 'x' A{i + 1};" for i in range(1, 3000)]
    with pytest.raises(LimitError, match="too deeply"):
        antlr("\n".join(["grammar G; s: A0; A0: A1;", *chain, "fragment A3000: 'a';"]))
    with pytest.raises(guided.GrammarError, match="in a set"):
        antlr("grammar G; s: X; X: " + "~" * 3000 + "'x';")
