"""The states after all tokens at once, against tokens one by one."""

from __future__ import annotations

import random

import numpy as np
import pytest

import guided
from guided import tokenset
from tests.amounts import Refusals, some
from tests.twin.random_grammars import random_grammar
from tests.vocabularies import of_tokens, random_tokens

LEXED = """
start: (NAME | NUMBER) ("," (NAME | NUMBER))*
NAME: /[ab]+/
NUMBER: /c+/
%ignore " "
"""


def check(constraint: guided.Constraint, rnd: random.Random, steps: int = 6) -> None:
    """From some states along random texts, and from the end and the dead state."""
    size = constraint.vocabulary.size
    states = {0, constraint.end, constraint.start}
    state = constraint.start
    row = np.empty(constraint.vocabulary.n_words, np.uint32)
    for _ in range(steps):
        constraint.fill_mask(state, row)
        state = constraint.advance(state, rnd.choice(tokenset.ids(row).tolist()))
        states.add(state)
    for state in states:
        found = constraint.advance_all(state)
        assert found is not None
        behind = dict(zip(*(column.tolist() for column in found), strict=True))
        after = {token: constraint.advance(state, token) for token in range(size)}
        assert behind == {token: then for token, then in after.items() if then}
        assert len(behind) == len(found[0])


@pytest.mark.parametrize("complete", [True, False])
def test_random_grammars(complete: bool) -> None:
    rnd = random.Random(complete)
    texts = random_tokens(rnd, ["a", "b", "c", ","], 40, 4)
    vocabulary = of_tokens(
        sorted({*texts, b"a", b"b", b"c", b","} | ({bytes([i]) for i in range(256)} if complete else set()))
    )
    with Refusals(most=0.5) as refusals:
        for _ in range(some(60)):
            with refusals.trial(guided.UnsatisfiableError, guided.VocabularyError):
                check(guided.compile(random_grammar(rnd), vocabulary), rnd)


def test_lexers() -> None:
    rnd = random.Random(3)
    vocabulary = of_tokens(sorted({*random_tokens(rnd, ["a", "b", "c", ",", " "], 60, 4), b"a", b"c", b",", b" "}))
    check(guided.compile(guided.lark(LEXED), vocabulary), rnd, 10)


def test_strings_and_escapes() -> None:
    rnd = random.Random(4)
    tokens = random_tokens(rnd, ["a", '"', "\\", "u00", "é", "\n", "{", ":", "1"], 200, 4)
    vocabulary = of_tokens(sorted({*tokens, *(bytes([i]) for i in range(256))}))
    schema = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 3}}, "additionalProperties": False}
    check(guided.compile(guided.json_schema(schema), vocabulary), rnd, 12)


def test_checkers_read_tokens_one_by_one() -> None:
    vocabulary = of_tokens([bytes([i]) for i in range(256)])
    constraint = guided.compile(guided.json_schema({"type": "object"}), vocabulary)
    assert constraint.advance_all(constraint.start) is None
