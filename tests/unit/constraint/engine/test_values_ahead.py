"""A token that ends in a name has the value made, so that the colon's mask need not ask for it as well."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import guided
from guided.constraint.engine.machine import ConstraintMachine
from guided.constraint.engine.requests import RequestBuffer
from guided.kernels.data.requests import EXPAND_NODE
from tests import vocabularies

VOCABULARY = guided.Vocabulary.from_tokens(
    [*vocabularies.SINGLE_BYTES, b'{"', b"name", b'":', b"nam", b'":{', None], eos_ids=[261]
)
OPEN, NAME, COLON, NAM = range(256, 260)


def nested(name: str) -> dict[str, object]:
    """An object that no other is like."""
    value = {"type": "string", "pattern": "^x+$"}
    return {"type": "object", "properties": {name: value}, "required": [name], "additionalProperties": False}


MANY = {f"{first}{second}": nested(f"{first}{second}") for first in "abcde" for second in "abcde"}
"""More members than a first mask makes the values of."""
SCHEMAS = [
    {"type": "object", "properties": {**MANY, "name": nested("b")}, "additionalProperties": False},
    {"type": "object", "properties": {**MANY, "name": nested("b"), "namely": {"type": "null"}}},
    {
        "anyOf": [
            {"type": "object", "properties": {**MANY, "name": value}, "required": ["name"]}
            for value in (nested("b"), {"const": 1})
        ]
    },
]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The requests that were served."""
    found: list[int] = []
    serve = RequestBuffer.serve

    def served(requests: RequestBuffer, owner: object, *arguments: Any) -> None:
        if isinstance(owner, ConstraintMachine):
            found.extend(requests.arrays.entries[: requests.arrays.count[0], 0].tolist())
        serve(requests, owner, *arguments)

    monkeypatch.setattr(RequestBuffer, "serve", served)
    return found


def masks(constraint: guided.Constraint, tokens: list[int]) -> list[bytes]:
    """The masks before each of the tokens, and behind them."""
    row, state, found = np.zeros(VOCABULARY.n_words, np.uint32), constraint.start, []
    for token in [*tokens, None]:
        constraint.fill_mask(state, row)
        found.append(row.tobytes())
        if token is not None:
            state = constraint.advance(state, token)
            assert state
    return found


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_name_asks_for_its_value_and_the_colon_does_not(schema: dict[str, object], asked: list[int]) -> None:
    constraint = guided.compile(guided.json_schema(schema), VOCABULARY)
    row = np.zeros(VOCABULARY.n_words, np.uint32)
    state = constraint.start
    for token in (OPEN, NAM):
        constraint.fill_mask(state, row)
        state = constraint.advance(state, token)
    constraint.fill_mask(state, row)
    assert state != constraint.advance(state, ord("x"))
    asked.clear()
    state = constraint.advance(state, ord("e"))
    assert asked == [EXPAND_NODE]
    assert state == constraint.advance_bytes(constraint.start, b'{"name')
    assert asked == [EXPAND_NODE]
    if "anyOf" not in schema:
        constraint.fill_mask(state, row)
        assert EXPAND_NODE not in asked[1:]


def test_a_name_asks_for_its_value_whatever_was_asked_before(asked: list[int]) -> None:
    constraint = guided.compile(guided.json_schema({**SCHEMAS[0], "title": "not asked for before"}), VOCABULARY)
    row = np.zeros(VOCABULARY.n_words, np.uint32)
    constraint.fill_mask(constraint.start, row)
    state = constraint.advance(constraint.start, OPEN)
    constraint.fill_mask(state, row)
    assert asked
    asked.clear()
    state = constraint.advance(state, NAME)
    assert asked == [EXPAND_NODE]
    constraint.fill_mask(state, row)
    assert EXPAND_NODE not in asked[1:]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_masks_are_those_of_a_text_read_byte_by_byte(schema: dict[str, object]) -> None:
    grammar = guided.json_schema(schema)
    other = guided.compile(guided.json_schema({**schema, "description": "apart"}), VOCABULARY)
    row = np.zeros(VOCABULARY.n_words, np.uint32)
    for tokens in ([OPEN, NAME, COLON, *b' {"b": "xx"}}'], [OPEN, NAM, ord("e"), COLON, *b' {"b']):
        found = masks(guided.compile(grammar, VOCABULARY), tokens)
        text = b""
        for token, mask in zip([*tokens, ord("x")], found, strict=True):
            other.fill_mask(other.advance_bytes(other.start, text), row)
            assert row.tobytes() == mask
            text += VOCABULARY.token_bytes(token) or b""
