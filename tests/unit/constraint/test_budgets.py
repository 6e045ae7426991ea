"""Masks under a token budget keep what they promise."""

from __future__ import annotations

import numpy as np

import guided
from guided.grammar.ir import Choice, Grammar, Repetition, Rule, Sequence, Terminal
from guided.grammar.regular.expr import literal


def test_a_longer_text_of_fewer_tokens_is_relied_on_and_kept() -> None:
    tokens = [bytes([byte]) for byte in range(256)] + [b"abcdef", None]
    vocabulary = guided.Vocabulary.from_tokens(tokens, eos_ids=[257])
    letter, three, six = (Terminal(literal(text)) for text in (b"x", b"qzw", b"abcdef"))
    body = Sequence((Repetition(letter), Choice((three, six))))
    constraint = guided.compile(Grammar((Rule("start", body),), 0), vocabulary)
    assert constraint.shortest_completion(constraint.start) == 3
    row = np.zeros(vocabulary.n_words, np.uint32)
    constraint.fill_budget_mask(constraint.start, row, 4)
    assert row[ord("x") >> 5] >> (ord("x") & 31) & 1
    state = constraint.advance(constraint.start, ord("x"))
    for budget, token in ((3, ord("x")), (2, 256)):
        constraint.fill_budget_mask(state, row, budget)
        assert row[token >> 5] >> (token & 31) & 1
        state = constraint.advance(state, token)
    assert constraint.is_accepting(state)
