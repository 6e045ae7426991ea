"""Objects that must not be in other branches: clauses against `jsonschema`, written out and as automata over members."""

from __future__ import annotations

import json
import random
from itertools import combinations, permutations, product
from typing import Any

import jsonschema
import pytest

import guided
from guided.errors import UnsatisfiableError
from guided.grammar.json_schema import json_schema
from guided.grammar.json_schema.satisfiability import graph
from guided.grammar.json_schema.sets import clauses
from tests import vocabularies
from tests.amounts import each

VOCABULARY = vocabularies.of_bytes()


def accepts(constraint: guided.Constraint, value: Any) -> bool:
    state = constraint.advance_bytes(constraint.start, json.dumps(value).encode())
    return state != 0 and constraint.is_accepting(state)


NAMES = ["a", "b", "kind", "n"]
VALUES = ["x", "y", 1, None, {"a": "x"}]


def optional_constants(n: int) -> dict[str, Any]:
    """Branches told apart by a constant that none of them requires, with settings that are alike."""
    return {
        "oneOf": [
            {
                "type": "object",
                "properties": {
                    "kind": {"const": f"kind{i}"},
                    "settings": {
                        "type": "object",
                        "properties": {"host": {"type": "string"}, f"key{i}": {"type": "integer"}},
                        "required": [f"key{i}"],
                    },
                },
            }
            for i in range(n)
        ]
    }


def expressions(n: int) -> dict[str, Any]:
    """A recursive language of expressions, as vega has it: each operator an object, told apart by nothing else."""
    operand = {"$ref": "#/$defs/expression"}
    branches: list[Any] = [{"type": "string"}, {"type": "number"}]
    branches += [
        {"type": "object", "required": [f"op{i}"], "properties": {f"op{i}": operand, "comment": {"type": "string"}}}
        for i in range(n)
    ]
    return {"$ref": "#/$defs/expression", "$defs": {"expression": {"oneOf": branches}}}


def shared_members(n: int) -> dict[str, Any]:
    """Branches that each require a member of their own and type others, as services in a deployment's file."""
    others = {f"option{i}": {"type": ["string", "integer"][i % 2]} for i in range(n)}
    return {
        "type": "object",
        "required": ["name"],
        "oneOf": [
            {
                "required": [f"source{i}"],
                "properties": {f"source{i}": {"type": "string"}, **dict([*others.items()][:i])},
            }
            for i in range(n)
        ],
    }


LARGE = [optional_constants(40), expressions(30), shared_members(12)]


@pytest.mark.parametrize("schema", LARGE)
def test_many_branches_are_no_product(schema: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Work is counted in objects that are intersected: at 10 to 50 us each, 40,000 take less than 2 s."""
    calls = 0
    intersect = clauses.intersect_objects

    def counted(a: Any, b: Any) -> Any:
        nonlocal calls
        calls += 1
        return intersect(a, b)

    for place in ("algebra", "clauses", "negation"):
        monkeypatch.setattr(f"guided.grammar.json_schema.sets.{place}.intersect_objects", counted)
    json_schema(schema)
    assert calls < 40_000


LARGE_CASES = [
    (0, {"kind": "kind3"}, True),
    (0, {"kind": "other"}, False),
    (0, {}, False),
    (0, {"settings": {"key7": 1}}, True),
    (0, {"settings": {"key7": 1, "key9": 2}}, False),
    (0, {"settings": {"host": "h"}}, False),
    (0, {"kind": "kind1", "settings": {"key1": 1}}, True),
    (0, {"kind": "kind1", "settings": {"key2": 1}}, False),
    (1, {"op1": 1}, True),
    (1, {"op1": {"op2": "s"}, "comment": "c"}, True),
    (1, {"op1": 1, "op2": 2}, False),
    (1, {"op1": {"op3": 1, "op4": 2}, "op4": True}, False),
    (1, {"op1": 1, "op2": True}, True),
    (2, {"name": 1, "source3": "s"}, True),
    (2, {"name": 1, "source1": "s", "source3": "s"}, False),
    (2, {"name": 1, "option0": 5, "source1": "s", "source0": "s"}, True),
    (2, {"source3": "s"}, False),
]


@pytest.mark.parametrize(("number", "value", "valid"), LARGE_CASES)
def test_many_branches_are_exact(number: int, value: Any, valid: bool) -> None:
    schema = LARGE[number]
    assert jsonschema.Draft202012Validator(schema).is_valid(value) is valid
    # Of an automaton over members own ones come first, then those that other branches name.
    orders = [{name: value[name] for name in names} for names in permutations(value)]
    constraint = guided.compile(json_schema(schema), VOCABULARY)
    assert any(accepts(constraint, one) for one in orders) is valid


def random_object(rnd: random.Random) -> dict[str, Any]:
    members = [
        {"const": "x"},
        {"enum": ["x", 1]},
        {"type": "string"},
        True,
        False,
        {"required": ["a"]},
        {"type": "null"},
    ]
    names = rnd.sample(NAMES, rnd.randint(0, 3))
    schema: dict[str, Any] = {"type": "object", "properties": {name: rnd.choice(members) for name in names}}
    if rnd.random() < 0.6:
        schema["required"] = rnd.sample(NAMES, rnd.randint(1, 2))
    if rnd.random() < 0.4:
        schema["additionalProperties"] = rnd.choice([False, {"type": "string"}, {"const": 1}])
    if rnd.random() < 0.15:
        schema[rnd.choice(["minProperties", "maxProperties"])] = rnd.randint(1, 3)
    if rnd.random() < 0.15:
        schema["patternProperties"] = {rnd.choice(["^[ab]", "n$", "^z"]): rnd.choice(members)}
    return schema


def random_schema(rnd: random.Random) -> dict[str, Any]:
    branches = [random_object(rnd) for _ in range(rnd.randint(2, 4))]
    own = random_object(rnd) if rnd.random() < 0.5 else {"type": "object"}
    how = rnd.choice(["oneOf", "oneOf", "not", "else"])
    if how == "oneOf":
        return {**own, "oneOf": branches}
    return (
        {**own, "not": {"anyOf": branches}}
        if how == "not"
        else {**own, "if": branches[0], "else": {"not": branches[1]}}
    )


INSTANCES = [
    dict(zip(names, values))
    for size in range(3)
    for names in combinations([*NAMES, "z"], size)
    for values in product(VALUES[: 5 - size], repeat=size)
]


@pytest.mark.parametrize("few", [0, 16], ids=["automata", "written out"])
@pytest.mark.parametrize("order", each(["schema", "any"], 2))
def test_random_branches_agree_with_jsonschema(few: int, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph, "FEW_WAYS", few)
    monkeypatch.setattr(graph, "MAX_ALTERNATIVES", few)
    compiled = judged = 0
    for seed in range(40):
        rnd = random.Random(1000 * few + seed)
        schema = random_schema(rnd)
        validator = jsonschema.Draft202012Validator(schema)
        instances = rnd.sample(INSTANCES, 12)
        # A tag of its own: what is remembered of a schema was made with other limits.
        schema["title"] = f"{few} {order}"
        try:
            constraint = guided.compile(json_schema(schema, order=order), VOCABULARY)
        except UnsatisfiableError:
            assert not any(map(validator.is_valid, INSTANCES)), (seed, schema)
            continue
        compiled += 1
        for instance in instances:
            valid, found = validator.is_valid(instance), accepts(constraint, instance)
            assert found is valid if order == "any" else valid or not found, (seed, schema, instance)
            judged += valid
    assert compiled > 30 and judged > 100
