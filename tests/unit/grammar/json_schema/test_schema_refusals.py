"""Everything that is refused or malformed says what and where; nothing is skipped, nothing crashes."""

from __future__ import annotations

import random
import time
from functools import cache
from typing import Any

import pytest

from guided.errors import GrammarError, GuidedError, LimitError, UnsatisfiableError, UnsupportedError
from guided.grammar.json_schema import json_schema
from tests.amounts import ALL, Refusals, each
from tests.twin import json_schemas


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        ({"$dynamicRef": "other#x"}, "#/$dynamicRef"),
        ({"$ref": "https://nowhere.example/schema"}, "#/$ref"),
        ({"$schema": "http://json-schema.org/draft-03/schema#"}, "#/$schema"),
        ({"pattern": r"(a+)\1"}, "#/pattern"),
        ({"patternProperties": {r"(a+)\1": True}}, r"#/patternProperties/(a+)\1"),
    ],
)
def test_refused_with_pointer(schema: Any, where: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        json_schema(schema)
    assert caught.value.where == where
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        ({"type": "any"}, "#/type"),
        ({"type": 5}, "#/type"),
        ({"type": ["string", 1]}, "#/type"),
        ({"minLength": -1}, "#/minLength"),
        ({"minLength": "1"}, "#/minLength"),
        ({"maximum": "1"}, "#/maximum"),
        ({"multipleOf": 0}, "#/multipleOf"),
        ({"enum": 1}, "#/enum"),
        ({"required": [1]}, "#/required"),
        ({"properties": []}, "#/properties"),
        ({"properties": {"a": 1}}, "#/properties/a"),
        ({"items": 3}, "#/items"),
        ({"allOf": {}}, "#/allOf"),
        ({"anyOf": []}, "#/anyOf"),
        ({"anyOf": [True, None]}, "#/anyOf/1"),
        ({"pattern": "("}, "#/pattern"),
        ({"pattern": 1}, "#/pattern"),
        ({"const": float("nan")}, "#/const"),
    ],
)
def test_malformed_with_pointer(schema: Any, where: str) -> None:
    with pytest.raises(GrammarError) as caught:
        json_schema(schema)
    assert caught.value.where == where


@pytest.mark.parametrize(
    ("schema", "where"),
    [
        (False, "#"),
        ({"type": []}, "#"),
        ({"type": "string", "const": 1}, "#"),
        ({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2}, "#"),
        ({"type": "string", "minLength": 3, "maxLength": 2}, "#"),
        ({"type": "string", "pattern": "^a$", "minLength": 2}, "#"),
        ({"type": "object", "properties": {"a": {"enum": []}}, "required": ["a"]}, "#/properties/a"),
        ({"type": "object", "additionalProperties": False, "required": ["a"]}, "#/additionalProperties"),
        ({"type": "object", "additionalProperties": False, "minProperties": 1}, "#"),
        ({"type": "array", "items": {"type": "string", "pattern": "a^"}, "minItems": 1}, "#/items"),
        ({"allOf": [{"type": "string"}, {"type": "null"}]}, "#"),
        ({"not": {}}, "#"),
        ({"oneOf": [{"type": "null"}, {"type": "null"}]}, "#"),
    ],
)
def test_unsatisfiable_with_the_pointer_of_the_cause(schema: Any, where: str) -> None:
    with pytest.raises(UnsatisfiableError) as caught:
        json_schema(schema)
    assert caught.value.where == where


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "line 1, column 1"),
        ("{\n  'a': 1}", "line 2, column 3"),
        ("[1]", "#"),
        ('"schema"', "#"),
        ("{", "line 1, column 2"),
    ],
)
def test_broken_text_says_line_and_column(text: str, where: str) -> None:
    with pytest.raises(GrammarError) as caught:
        json_schema(text)
    assert caught.value.where == where


def test_other_inputs() -> None:
    for source in (None, 5, [1], {"const": object()}, {1: {}, "type": {1}}, b"\xff"):
        with pytest.raises(GuidedError):
            json_schema(source)  # type: ignore[arg-type]


def test_irrelevant_keywords_and_annotations_assert_nothing() -> None:
    plain = json_schema({"type": "string"})
    noted = json_schema(
        {"type": "string", "title": "t", "default": 3, "uniqueItems": True, "minimum": 9, "contains": False, "x-y": 1}
    )
    assert [rule.name for rule in plain.rules] == [rule.name for rule in noted.rules]


@cache
def hostile() -> list[Any]:
    deep: Any = True
    for _ in range(5000):
        deep = {"properties": {"a": deep}}
    wide = {"properties": {f"p{i}": {"type": "integer"} for i in range(10_000)}}
    branches = [{"anyOf": [{"properties": {f"a{i}{j}": {"const": j}}} for j in range(4)]} for i in range(12)]
    chain = {"$defs": {str(i): {"$ref": f"#/$defs/{i + 1}"} for i in range(500)} | {"500": True}, "$ref": "#/$defs/0"}
    return [
        deep,
        wide,
        {"allOf": branches},
        chain,
        {"type": "string", "maxLength": 10**9, "minLength": 10**9},
        {"type": "integer", "multipleOf": 10**9},
        {"type": "integer", "multipleOf": 10**9 + 7},
        {"type": "integer", "minimum": 10**400},
        {"type": "number", "minimum": 1e-300},
        {"type": "array", "minItems": 10**9},
        {"patternProperties": {f"a{i}": {"const": i} for i in range(30)}},
        {"oneOf": [{"properties": {f"n{i}": {"type": "null"}}} for i in range(30)]},
        {"not": {"anyOf": [{"required": [f"n{i}"]} for i in range(200)]}},
        {"not": {"properties": {f"n{i}": {"type": "string"} for i in range(500)}}},
        {"not": {"enum": [{"a": i, "b": [i]} for i in range(60)]}},
        {"enum": [{"a": i, "b": [i, i + 1]} for i in range(1000)]},
        {"allOf": [{"anyOf": [{"required": [f"a{i}{j}"]} for j in range(2)]} for i in range(20)]},
        {"allOf": [{"anyOf": [{"pattern": f"a{i}{j}"} for j in range(4)]} for i in range(12)]},
        {"allOf": [{"anyOf": [{"items": {"const": 10 * i + j}} for j in range(4)]} for i in range(12)]},
        {"oneOf": [{"type": "object", "properties": {"k": {"const": i}}, "required": ["k"]} for i in range(300)]},
        {"dependentRequired": {f"n{i}": [f"m{i}"] for i in range(30)}},
        {"dependentSchemas": {f"n{i}": {"required": [f"m{i}"]} for i in range(30)}},
        {"allOf": [{"if": {"required": [f"a{i}"]}, "then": {"required": [f"b{i}"]}} for i in range(30)]},
        {"anyOf": [{"properties": {f"k{i}": {"type": "null"}}} for i in range(20)], "unevaluatedProperties": False},
        {"type": "array", "contains": {"type": "string"}, "maxItems": 10**6},
        {"allOf": [{"contains": {"const": i}, "minContains": 10, "maxContains": 20} for i in range(4)]},
        {"allOf": [{"contains": {"pattern": f"a{i}"}, "maxContains": 2} for i in range(5)]},
        {"prefixItems": [{"type": "string"}] * 200, "contains": {"const": 1}, "maxContains": 100},
        {"allOf": [{"multipleOf": step} for step in (7, 11, 13, 17, 19, 23, 29)]},
        {"type": "integer", "allOf": [{"not": {"multipleOf": step}} for step in (7, 11, 13, 17, 19, 23)]},
        {"type": "string", "maxLength": 10**9, "minLength": 10**6, "pattern": "^(a|b)*$"},
        {"pattern": "^(([a-z])+.)+[A-Z]([a-z])+$", "maxLength": 10**9},
        {"patternProperties": {f"^a{i}": {"const": i} for i in range(300)}},
        {"type": "object", "minProperties": 10**5, "maxProperties": 10**6},
        {"type": "array", "uniqueItems": True, "items": {"enum": list(range(200))}, "minItems": 200},
        {"uniqueItems": True, "minItems": 2, "items": {"type": "array", "items": {"const": 1}, "maxItems": 10**9}},
        {"uniqueItems": True, "minItems": 9, "items": {"uniqueItems": True, "items": {"type": ["null", "string"]}}},
        resources(12),
    ]


def resources(size: int) -> Any:
    """Schemas that refer to each other in any order, each with a dynamic anchor: 2**size dynamic scopes."""
    names = [f"http://x/r{i}" for i in range(size)]
    own = {
        name: {
            "$id": name,
            "$defs": {"a": {"$dynamicAnchor": f"a{i}"}},
            "properties": {f"p{j}": {"$ref": other} for j, other in enumerate(names)},
            "additionalProperties": {"$dynamicRef": f"#a{i}"},
        }
        for i, name in enumerate(names)
    }
    return {"$id": "http://x/", "properties": {name: {"$ref": name} for name in names}, "$defs": own}


LIMITED = {0, 2, 6, 7, 10, 13, 14, 16, 18, *range(20, 26), 28, 29, 32, 37}
"""Which of them may come to a limit, in some order of the members."""


@pytest.mark.parametrize("index", each(range(len(hostile())), 4))
def test_hostile_schemas_end(index: int) -> None:
    schema = hostile()[index]
    started = time.process_time()
    outcomes = []
    # Of some in both orders, in which the same is refused.
    for order in ("schema", "any") if ALL or index % 3 == 0 else ("schema",):
        try:
            outcomes.append(json_schema(schema, order=order) is None)
        except LimitError as error:
            assert index in LIMITED
            # What is kept track of depends on the order, and so does what of it is too much.
            assert error.where is not None
        except (UnsupportedError, UnsatisfiableError) as error:
            assert error.where is not None
            outcomes.append(str(error))
    assert len(set(outcomes)) < 2
    # Work is limited by count; twice two seconds on a slow machine.
    assert time.process_time() - started < 8


def test_mutilated_schemas_raise_only_our_errors() -> None:
    rnd = random.Random(11)
    with Refusals(most=0.92) as refusals:
        for _ in range(400):
            schema = json_schemas.document(rnd)
            for _ in range(3):
                _damage(rnd, schema)
            with refusals.trial(GuidedError):
                json_schema(schema)


def _damage(rnd: random.Random, schema: Any) -> None:
    while isinstance(schema, dict) and schema:
        name = rnd.choice(list(schema))
        if rnd.random() < 0.4 or not isinstance(schema[name], dict | list):
            schema[name] = rnd.choice([None, 1, -1, "x", [], {}, True, [1], {"a": 1}, 1.5])
            return
        schema = schema[name] if isinstance(schema[name], dict) else rnd.choice(schema[name] or [None])
