"""Options of a choice as one automaton: how many nodes they take; what they mean, the twins of the laws say."""

from __future__ import annotations

import numpy as np
import pytest

import guided
from guided.grammar.ir import Lexing
from tests import vocabularies

BYTES = vocabularies.of_bytes()


@pytest.mark.parametrize(
    ("rule", "most"),
    [
        ("item~0..30", 40),
        # Lark writes out 31 * 6 options, of 3,500 parts.
        ('item~0..30 "c" item~0..5', 50),
        ('("x"? item)~7 "y"', 25),
    ],
)
def test_what_options_begin_and_end_with_is_lowered_once(rule: str, most: int) -> None:
    grammar = guided.lark(f'start: {rule}\nitem: "a" | "b" item', lexing=Lexing.DYNAMIC)
    constraint = guided.Constraint(grammar, BYTES)
    constraint.fill_mask(constraint.start, np.zeros(BYTES.n_words, np.uint32))
    graph = constraint._machine.graph
    assert graph.n_nodes - graph.first < most


def test_options_that_end_where_others_go_on() -> None:
    constraint = guided.compile(guided.gbnf('root ::= "a" x | "a" x "b" | "c" | x "b" | ""\nx ::= "x"'), BYTES)
    texts = {b"ax", b"axb", b"c", b"xb", b""}
    for text in (b"", b"a", b"ax", b"axb", b"axbb", b"b", b"c", b"cb", b"x", b"xb"):
        state = constraint.advance_bytes(constraint.start, text)
        assert constraint.is_accepting(state) == (text in texts), text
        assert bool(state) == any(whole.startswith(text) for whole in texts), text
