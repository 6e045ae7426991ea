"""Alternatives that another contains are left out of a union, and no mask is different for it."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import numpy as np
import pytest

import guided
from guided.grammar.json_schema.lowering import lower
from guided.grammar.json_schema.reading.document import DRAFT2020
from guided.grammar.json_schema.sets.contained import without_contained
from guided.grammar.json_schema.sets.shape import FALSE, TRUE, ObjectShape, typed
from tests import vocabularies
from tests.amounts import crossed

BYTES = vocabularies.of_bytes()
NAMES = "abcd"
VALUES: list[Any] = [{}, False, {"type": "integer"}, {"type": "string"}, {"enum": ["x", 1]}, {"const": 1}]


def one_of_several(rnd: random.Random) -> dict[str, Any]:
    """A part of a schema that makes several alternatives of objects."""
    first, second = rnd.sample(NAMES, 2)
    kind = rnd.randrange(6)
    if kind == 0:
        return {"dependentRequired": {first: [second]}}
    if kind == 1:
        return {"dependentSchemas": {first: some_object(rnd)}}
    if kind == 2:
        return {"if": {"required": [first]}, "then": some_object(rnd)}
    return {"anyOf": [some_object(rnd) for _ in range(rnd.choice([2, 3, 5]))]}


def some_object(rnd: random.Random) -> dict[str, Any]:
    names = [name for name in NAMES if rnd.random() < 0.5]
    found: dict[str, Any] = {"properties": {name: rnd.choice(VALUES) for name in names}}
    if rnd.random() < 0.4:
        found["required"] = rnd.sample(NAMES, rnd.choice([1, 1, 2]))
    if rnd.random() < 0.3:
        found["additionalProperties"] = rnd.choice([False, {"type": "string"}])
    if rnd.random() < 0.2:
        found[rnd.choice(["minProperties", "maxProperties"])] = rnd.choice([1, 2])
    return found


def some_members(rnd: random.Random) -> dict[str, Any]:
    names = rnd.sample(NAMES + "z", rnd.randrange(5))
    return {name: rnd.choice(["x", "", 1, 2, None]) for name in (sorted(names) if rnd.random() < 0.7 else names)}


@pytest.mark.parametrize(("order", "seed"), crossed(["schema", "any"], range(40)))
def test_masks_are_those_with_all_alternatives(seed: int, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rnd = random.Random(seed)
    parts = [one_of_several(rnd) for _ in range(rnd.choice([3, 4]))]
    schema = {"type": "object", "allOf": [some_object(rnd), *parts]}
    dropped = 0

    def counted(things: list[ObjectShape], alive: Any) -> list[ObjectShape]:
        nonlocal dropped
        left = without_contained(things, alive)
        dropped += len(things) - len(left)
        return left

    monkeypatch.setattr(lower, "without_contained", counted)
    try:
        one = guided.compile(guided.json_schema(schema, order=order), BYTES)
    except guided.UnsatisfiableError:
        is_valid = jsonschema.Draft202012Validator(schema).is_valid
        assert not any(is_valid(some_members(rnd)) for _ in range(500))
        return
    monkeypatch.setattr(lower, "without_contained", lambda things, alive: things)
    other = guided.compile(guided.json_schema({"$comment": "again", **schema}, order=order), BYTES)
    rows = np.zeros((2, BYTES.n_words), np.uint32)
    for _ in range(40 if dropped else 2):
        members = some_members(rnd)
        states = one.start, other.start
        for byte in json.dumps(members).encode():
            one.fill_mask(states[0], rows[0])
            other.fill_mask(states[1], rows[1])
            assert (rows[0] == rows[1]).all()
            states = one.advance(states[0], byte), other.advance(states[1], byte)
            if not all(states):
                break
        assert bool(states[0]) == bool(states[1])
        assert one.is_accepting(states[0]) == other.is_accepting(states[1])


def test_products_of_conditions_leave_few_alternatives(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = []

    def counted(things: list[ObjectShape], alive: Any) -> list[ObjectShape]:
        left = without_contained(things, alive)
        counts.append((len(things), len(left)))
        return left

    monkeypatch.setattr(lower, "without_contained", counted)
    schema = {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in NAMES},
        "allOf": [{"anyOf": [{"required": ["a"]}, {"required": [name]}]} for name in "bcd"],
    }
    guided.json_schema(schema)
    # The first, or all others.
    assert max(counts) == (8, 2)


def test_what_is_not_contained_stays() -> None:
    integer, string = (typed(name, DRAFT2020) for name in ("integer", "string"))
    assert integer is not None
    assert string is not None
    alive = {TRUE, integer, string}
    whole = ObjectShape({"a": integer, "b": string})
    cases = [
        (ObjectShape({"a": FALSE, "b": string}), True),
        (ObjectShape({"a": integer, "b": string}), True),
        (ObjectShape({"a": integer, "b": string}, required=frozenset("a")), True),
        (ObjectShape({"a": integer, "b": string}, high=1), True),
        (ObjectShape({"a": integer, "b": string}, low=1), True),
        (ObjectShape({"a": string, "b": string}), False),
        (ObjectShape({"b": string, "a": integer}), False),
        (ObjectShape({"a": integer}), False),
        (ObjectShape({"a": integer, "b": string, "c": integer}), False),
    ]
    things = [whole, *[thing for thing, _ in cases]]
    left = without_contained(things, alive)
    for thing, contained in cases:
        # Of two that are the same, either may go.
        alike = [other for other in (whole, cases[1][0]) if other in left]
        assert len(alike) == 1
        if thing not in (whole, cases[1][0]):
            assert (thing in left) != contained
    few = [whole, ObjectShape({"a": integer, "b": string})]
    assert without_contained(few, alive) == few
