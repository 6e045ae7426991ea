"""Names of which finitely many may come: masks against steps, which ask for every token by itself."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import guided
from guided.constraint.constraint import Constraint
from guided.constraint.distinct.machine import DistinctMachine
from guided.constraint.distinct.marked_rules import has_open_names
from tests import vocabularies
from tests.amounts import each, some

FEW = {"pattern": "^[ab,]{1,2}$"}
VALUE = {"enum": ["", ",", "a", 1, [], {}]}
SCHEMAS: dict[str, Any] = {
    "listed": {"type": "object", "propertyNames": FEW, "additionalProperties": VALUE},
    "patterns": {
        "type": "object",
        "properties": {"ab": VALUE, "k": True},
        "patternProperties": {"^a[0-9]?$": VALUE},
        "additionalProperties": False,
    },
    "short": {"type": "object", "properties": {"ab": VALUE}, "propertyNames": {"maxLength": 2}},
    "at least": {
        "type": "object",
        "propertyNames": {"pattern": "^[a-f,]{1,4}$"},
        "additionalProperties": VALUE,
        "minProperties": 4,
    },
    "nested": {
        "type": "object",
        "propertyNames": FEW,
        "additionalProperties": {
            "anyOf": [
                VALUE,
                {"type": "object", "propertyNames": {"pattern": "^ab?$"}, "additionalProperties": VALUE},
                {"type": "array", "items": {"type": "object", "propertyNames": FEW, "additionalProperties": VALUE}},
            ]
        },
    },
    "items": {
        "type": "object",
        "propertyNames": FEW,
        "additionalProperties": {
            "type": "array",
            "uniqueItems": True,
            "items": {"anyOf": [VALUE, {"type": "object", "propertyNames": FEW, "additionalProperties": VALUE}]},
        },
    },
}
PIECES = (
    b'":"","', b'":"",', b'":1,"', b'","', b'",', b'"},"', b'"}', b'"a":', b'"a":1,"', b'"a":1,"a', b'"a":1,"a":', b',"',
    b', "', b',"a', b'{"', b'{"a', b'{"a":"', b'":["', b'":{"', b'"],"', b'"]', b'[{"', b'},{"', b'"},{"', b"bc", b'bc":1',
    b'\\u0061', b'\\u00', b'61', b'b"', b'ab":1,', b'":[],"', b'":[1],"', b'":{},"', b'}},"', b'"}},"', b'\\",', b':"","b',
    b',"a":1},"',
)  # fmt: skip


def walk(name: str, seed: int, steps: int) -> int:
    rnd = random.Random(f"{name} {seed}")
    tokens = [*vocabularies.SINGLE_BYTES, *PIECES]
    vocabulary = vocabularies.of_tokens(tokens)
    constraint = Constraint(guided.json_schema(SCHEMAS[name], order="any", whitespace="compact"), vocabulary)
    assert not has_open_names(constraint.grammar)
    machine = constraint._machine
    assert isinstance(machine, DistinctMachine)
    row = np.zeros(vocabulary.n_words, np.uint32)
    state, done, refused = constraint.start, b"", 0
    for _ in range(steps):
        constraint.fill_mask(state, row)
        own = machine.split(state)[0]
        allowed = []
        for token, piece in enumerate(tokens):
            expected = constraint.advance(state, token) != 0
            where = f"{piece!r} after {done!r} of {name}, seed {seed}"
            assert bool(int(row[token >> 5]) >> (token & 31) & 1) == expected, f"mask {where}: should be {expected}"
            refused += not expected and machine.inner.advance_token(own, token) != 0
            if expected:
                allowed.append(token)
        longer = [token for token in allowed if token >= 256]
        likely = [token for token in allowed if tokens[token] in (b'"', b"a", b"b", b",", b":", b"1")]
        ways = [some for some in (longer, longer, likely, allowed) if some]
        if not ways:
            break
        token = rnd.choice(rnd.choice(ways))
        state, done = constraint.advance(state, token), done + tokens[token]
    return refused


@pytest.mark.parametrize("name", each(SCHEMAS, 2))
def test_masks_of_closed_names(name: str) -> None:
    assert sum(walk(name, seed, 24) for seed in range(some(12, 6))) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", SCHEMAS)
def test_many_masks_of_closed_names(name: str) -> None:
    for seed in range(100, 160):
        walk(name, seed, 30)


def test_patterns_that_end_in_a_long_tag_are_open() -> None:
    """Several names, each with a tag of a language behind it, which has some hundred and more states."""
    tag = "(([A-Za-z]{2,3}(-([A-Za-z]{3}(-[A-Za-z]{3}){0,2}))?)|[A-Za-z]{4})(-[A-Za-z0-9]{1,8})*"
    patterns = {f"^({name}_({tag}))": {"type": "string"} for name in ("title", "description", "rationale")}
    assert has_open_names(guided.json_schema({"type": "object", "patternProperties": patterns}))
    assert not has_open_names(guided.json_schema({"type": "object", "propertyNames": {"maxLength": 40}}))
