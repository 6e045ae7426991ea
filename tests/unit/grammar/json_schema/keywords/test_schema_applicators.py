"""Keywords that need more than the automaton of one value: unevaluated members, counted items, members of any name."""

from __future__ import annotations

import json
from typing import Any

import pytest

import guided
from guided.errors import LimitError, UnsatisfiableError
from guided.grammar.json_schema import json_schema
from tests import vocabularies

VOCABULARY = vocabularies.of_bytes()


def accepted(schema: Any, values: list[Any], order: str = "any") -> list[bool]:
    constraint = guided.compile(json_schema(schema, order=order), VOCABULARY)
    found = []
    for value in values:
        state = constraint.advance_bytes(constraint.start, json.dumps(value).encode())
        found.append(state != 0 and constraint.is_accepting(state))
    return found


def check(schema: Any, valid: list[Any], invalid: list[Any]) -> None:
    assert accepted(schema, valid) == [True] * len(valid)
    for order in ("any", "schema"):
        assert accepted(schema, invalid, order) == [False] * len(invalid), order


def test_any_of_evaluates_by_all_branches_that_match() -> None:
    schema = {
        "type": "object",
        "anyOf": [
            {"properties": {"a": {"type": "integer"}, "c": True}, "required": ["a"]},
            {"properties": {"b": {"type": "integer"}, "c": True}, "required": ["b"]},
            {"properties": {"a": True, "b": True}, "required": ["c"]},
        ],
        "unevaluatedProperties": False,
    }
    check(
        schema,
        [{"a": 1}, {"b": 1}, {"a": 1, "b": 1}, {"a": 1, "c": 0}, {"a": "x", "b": 1, "c": 0}],
        [{"c": 0}, {"a": "x"}, {"a": "x", "b": 1}, {"a": 1, "d": 0}, {"a": "x", "c": 0}, {}],
    )


def test_one_of_and_else_evaluate_by_the_branch_that_holds() -> None:
    schema = {
        "type": "object",
        "oneOf": [{"properties": {"a": True}, "required": ["a"]}, {"properties": {"b": True}, "required": ["b"]}],
        "if": {"properties": {"x": {"const": 1}}, "required": ["x"]},
        "then": {"properties": {"y": True}},
        "else": {"properties": {"z": True}},
        "unevaluatedProperties": {"type": "null"},
    }
    check(
        schema,
        [{"a": 1}, {"a": 1, "x": 1, "y": 2}, {"b": 1, "z": 2}, {"b": 1, "q": None}, {"a": 1, "x": None, "z": 1}],
        [{"a": 1, "b": 1}, {"a": 1, "x": 2}, {"a": 1, "y": 2}, {"b": 1, "x": 1, "z": 2}, {"b": 1, "q": 1}],
    )


def test_negation_of_unevaluated() -> None:
    schema = {
        "type": "object",
        "not": {"anyOf": [{"properties": {"a": True}}, {"required": ["b"]}], "unevaluatedProperties": False},
    }
    check(schema, [{"b": 1}, {"a": 1, "c": 1}, {"c": 1}], [{}, {"a": 1}])


def test_unevaluated_items_after_prefixes_and_contains() -> None:
    schema = {
        "type": "array",
        "prefixItems": [{"type": "string"}],
        "anyOf": [{"prefixItems": [True, {"const": 2}]}, {"contains": {"type": "null"}}],
        "unevaluatedItems": {"type": "boolean"},
    }
    check(
        schema,
        [["a"], ["a", 2], ["a", 2, True], ["a", None, True, None], ["a", 2, None], ["a", True, None]],
        [["a", 3], ["a", 2, 3], ["a", True, 2, None], [1]],
    )


def test_several_counted_conditions() -> None:
    schema = {
        "type": "array",
        "allOf": [
            {"contains": {"type": "integer"}, "minContains": 2, "maxContains": 3},
            {"contains": {"type": "number", "minimum": 10}, "minContains": 1, "maxContains": 1},
            {"not": {"contains": {"type": "string"}, "minContains": 2}},
        ],
        "maxItems": 5,
    }
    check(
        schema,
        [[1, 10], [10, 1, 1], [1, "a", 2, 10.5], [1, 2, 10, None, None]],
        [[1, 1], [10, 11], [1, "a", "b", 10], [1, 2, 3, 10], [1, 10, 0.5, 0.5, 0.5, 0.5], [10]],
    )


def test_counts_contradict() -> None:
    base = {"type": "array", "contains": {"const": 1}}
    for more in (
        {"minContains": 3, "maxItems": 2},
        {"minContains": 2, "maxContains": 1},
        {"items": {"type": "string"}},
        {"items": {"const": 1}, "minItems": 3, "maxContains": 2},
        {"minContains": 2, "uniqueItems": True},
    ):
        with pytest.raises((UnsatisfiableError, guided.UnsupportedError)):
            guided.compile(json_schema({**base, **more}), VOCABULARY)


def test_members_of_any_name_that_meet_conditions() -> None:
    strings = {"additionalProperties": {"type": "string"}, "properties": {"a": True}}
    short = {"patternProperties": {"^x": {"maxLength": 1}}}
    schema = {
        "type": "object",
        "not": {"anyOf": [strings, short]},
        "maxProperties": 3,
        "properties": {"a": True, "b": True},
    }
    check(
        schema,
        [{"q": 1, "x": "yy"}, {"x": "yy", "a": 1, "b": 1}, {"b": 2, "x1": "yy"}],
        [{}, {"q": 1}, {"x": "yy"}, {"a": 1, "x": "yy"}, {"q": 1, "x": "yy", "a": 1, "b": 2}, {"q": 1, "x": "y"}],
    )


def test_names_of_small_classes_are_told_apart() -> None:
    few = {"type": "object", "patternProperties": {"^[ab]$": True}, "additionalProperties": False}
    check({**few, "minProperties": 2}, [{"a": 1, "b": 2}], [{"a": 1}, {}])
    with pytest.raises(UnsatisfiableError):
        json_schema({**few, "minProperties": 3})


def test_dynamic_references_take_the_outermost_anchor() -> None:
    tree = {
        "$id": "tree",
        "$dynamicAnchor": "node",
        "type": "object",
        "properties": {"data": True, "children": {"type": "array", "items": {"$dynamicRef": "#node"}}},
    }
    strict = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "http://example.com/strict",
        "$dynamicAnchor": "node",
        "$ref": "tree",
        "unevaluatedProperties": False,
        "$defs": {"tree": tree},
    }
    check(
        strict,
        [{"data": 1}, {"children": [{"data": 1}, {"children": []}]}],
        [{"daat": 1}, {"children": [{"daat": 1}]}, {"children": [{"children": [{"x": 1}]}]}],
    )
    loose = {**strict, "$dynamicAnchor": "other", "unevaluatedProperties": True}
    check(loose, [{"daat": 1}, {"children": [{"daat": 1}]}], [{"children": [1]}])


def test_too_many_conditions_end_in_a_limit() -> None:
    with pytest.raises(LimitError, match="conditions"):
        json_schema({"allOf": [{"contains": {"const": i}, "maxContains": 2} for i in range(9)]})
    with pytest.raises(LimitError, match="conditions"):
        json_schema(
            {"type": "object", "not": {"anyOf": [{"patternProperties": {f"^{i}": {"const": i}}} for i in range(9)]}}
        )
    with pytest.raises(LimitError, match="steps"):
        json_schema({"type": "array", "contains": {"const": 1}, "minContains": 10**9})
