"""``json_schema(separators=...)``: JSON laid out as ``json.dumps`` does, to the letter."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

import guided
from guided.errors import GrammarError
from guided.testing import check_constraint
from tests import vocabularies

VOCABULARY = vocabularies.of_bytes()
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "array"}, "b": {"type": "object"}, "c": {"enum": [1, "x, y"]}},
    "additionalProperties": True,
}
VALUES: list[Any] = [
    {},
    {"a": [], "b": {}},
    {"a": [1, 2, [3, {"z": None}]], "b": {"x": 1, "y": [True, False]}, "c": "x, y"},
    {"c": 1, "more": {"a": "b"}},
]


def accepts(constraint: guided.Constraint, text: str) -> bool:
    state = constraint.advance_bytes(constraint.start, text.encode())
    return bool(state) and constraint.is_accepting(state)


@pytest.mark.parametrize("spelling", ["plain", "any"])
def test_as_programs_write(spelling: str) -> None:
    layouts = [(", ", ": "), (",", ":"), (" ,\n", "\t: ")]
    for separators in layouts:
        constraint = guided.compile(guided.json_schema(SCHEMA, separators=separators, spelling=spelling), VOCABULARY)
        for value in VALUES:
            texts = {json.dumps(value, separators=other) for other in layouts}
            expected = json.dumps(value, separators=separators)
            for text in texts:
                assert accepts(constraint, text) is (text == expected)
            assert not accepts(constraint, f" {expected}")
            assert not accepts(constraint, expected.replace("{", "{ ", 1))


def test_keys_pickles_and_contracts() -> None:
    grammar = guided.json_schema(SCHEMA, separators=(", ", ": "))
    assert grammar.key != guided.json_schema(SCHEMA, whitespace="compact").key
    assert grammar.key != guided.json_schema(SCHEMA, separators=(",", ": ")).key
    assert pickle.loads(pickle.dumps(grammar)).key == grammar.key
    check_constraint(guided.compile(grammar, VOCABULARY), walks=2, length=12, full_states=2, threads=0)


@pytest.mark.parametrize("separators", [", ", (",",), (";", ":"), (",", "::"), (", x", ":"), (1, 2)])
def test_refused(separators: Any) -> None:
    with pytest.raises(GrammarError, match="separators"):
        guided.json_schema(SCHEMA, separators=separators)


def test_white_space_is_said_once() -> None:
    with pytest.raises(GrammarError, match="Leave out"):
        guided.json_schema(SCHEMA, separators=(", ", ": "), whitespace="any")
