"""Probes are what they are said to be, checked by jsonschema alone, and keywords are found where they are written."""

from __future__ import annotations

import copy

import jsonschema
import pytest

from guided.eval.occurrences import Occurrence, at, negated, occurrences, pointer_of, reached, routes, without
from guided.eval.probes import FALSE_SCHEMA, find_probes, relaxed, written

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "not a keyword that asserts",
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2, "pattern": "^[a-z]+$", "default": {"type": "no schema"}},
        "definitions": {"type": "integer", "maximum": 9},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "uniqueItems": True, "maxItems": 3},
        "kind": {"anyOf": [{"type": "integer", "minimum": 5}, {"enum": ["a", "b"]}]},
        "never": False,
    },
    "required": ["name"],
    "additionalProperties": False,
    "if": {"required": ["kind"]},
    "then": {"required": ["tags"]},
    "not": {"required": ["definitions", "tags"]},
    "$defs": {
        "tag": {"type": "string", "enum": ["red", "green", "blue"]},
        "unused": {"type": "string", "minLength": 7},
    },
}

SCHEMAS = {
    "objects": SCHEMA,
    "numbers": {"type": "number", "exclusiveMinimum": 0, "maximum": 10, "multipleOf": 0.5},
    "tuples": {"prefixItems": [{"const": 1}, {"type": "string", "maxLength": 3}], "items": False, "minItems": 2, "type": "array"},
    "oneOf": {"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 2}]},
    "trees": {
        "$defs": {"node": {"type": "object", "properties": {"v": {"type": "integer", "minimum": 0}, "next": {"$ref": "#/$defs/node"}}, "required": ["v"], "additionalProperties": False}},
        "$ref": "#/$defs/node",
    },
    "draft 4": {"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer", "minimum": 3, "exclusiveMinimum": True},
    "names": {"type": "object", "patternProperties": {"^n_": {"type": "integer"}}, "propertyNames": {"maxLength": 4}, "minProperties": 1},
    "unevaluated": {"type": "object", "allOf": [{"properties": {"a": {"type": "null"}}}], "unevaluatedProperties": False},
    "formats": {"type": "string", "format": "ipv4"},
    "dependent": {"type": "object", "dependentRequired": {"a": ["b"]}, "dependentSchemas": {"b": {"maxProperties": 2}}},
}  # fmt: skip


def validator(schema):
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    return kind(schema, format_checker=kind.FORMAT_CHECKER)


@pytest.fixture(scope="module", params=sorted(SCHEMAS))
def probed(request):
    schema = SCHEMAS[request.param]
    before = copy.deepcopy(schema)
    found = find_probes(schema)
    assert schema == before, "the schema is not changed"
    return request.param, schema, found


def test_probes_do_what_they_say(probed):
    _, schema, found = probed
    assert found.valid
    for value in found.valid:
        assert validator(schema).is_valid(value)
    assert found.mutants
    for one, values in found.mutants.items():
        assert values
        for value in values:
            assert not validator(schema).is_valid(value)
            assert validator(relaxed(schema, [one])).is_valid(value), (one.pointer, value)


EXPECTED = {
    "objects": {
        "#/required", "#/additionalProperties", "#/then/required", "#/not",
        "#/properties/name/type", "#/properties/name/minLength", "#/properties/name/pattern",
        "#/properties/definitions/type", "#/properties/definitions/maximum",
        "#/properties/tags/type", "#/properties/tags/uniqueItems",
        "#/properties/kind/anyOf", "#/properties/kind/anyOf/0/minimum", "#/properties/never/false", "#/$defs/tag/enum",
    },
    "numbers": {"#/type", "#/exclusiveMinimum", "#/maximum", "#/multipleOf"},
    "tuples": {"#/type", "#/prefixItems/0/const", "#/prefixItems/1/type", "#/prefixItems/1/maxLength", "#/items", "#/minItems"},
    "oneOf": {"#/oneOf"},
    "trees": {"#/$defs/node/type", "#/$defs/node/required", "#/$defs/node/additionalProperties", "#/$defs/node/properties/v/type", "#/$defs/node/properties/v/minimum"},
    "draft 4": {"#/type", "#/minimum", "#/exclusiveMinimum"},
    "names": {"#/type", "#/patternProperties/^n_/type", "#/propertyNames/maxLength", "#/minProperties"},
    "unevaluated": {"#/type", "#/allOf/0/properties/a/type", "#/unevaluatedProperties"},
    "formats": {"#/type", "#/format"},
    "dependent": {"#/dependentRequired", "#/dependentSchemas/b/maxProperties"},
}  # fmt: skip


def test_every_keyword_that_can_be_broken_alone_is_probed(probed):
    name, _, found = probed
    pointers = {one.pointer.replace("~1", "/") for one in found.mutants}
    assert EXPECTED[name] <= pointers, EXPECTED[name] - pointers
    assert not {one.pointer for one in found.unprobed} & pointers


def test_the_same_seed_gives_the_same_probes():
    first, second = (find_probes(SCHEMAS["tuples"], seed=3) for _ in range(2))
    assert (first.valid, first.mutants) == (second.valid, second.mutants)


def test_occurrences_are_keywords_and_nothing_else():
    pointers = {one.pointer for one in occurrences(SCHEMA)}
    assert {
        "#/properties/name/minLength",
        "#/$defs/tag/enum",
        "#/if/required",
        "#/properties/definitions/maximum",
    } <= pointers
    assert not any(text in pointer for pointer in pointers for text in ("title", "default", "$schema", "never"))
    assert "#/$defs" not in pointers
    assert "#/properties/kind/anyOf/1/enum" in pointers


def test_taking_keywords_out():
    gone = without(SCHEMA, [Occurrence(("properties", "name"), "pattern"), Occurrence((), "if")])
    assert "pattern" not in gone["properties"]["name"]
    assert "if" not in gone
    assert "pattern" in SCHEMA["properties"]["name"]
    # An outer keyword takes an inner one with it.
    both = [Occurrence(("properties", "kind"), "anyOf"), Occurrence(("properties", "kind", "anyOf", 0), "minimum")]
    assert without(SCHEMA, both)["properties"]["kind"] == {}
    opened = relaxed(SCHEMA, [Occurrence(("properties", "never"), FALSE_SCHEMA)])
    assert opened["properties"]["never"] is True
    assert relaxed(False, [Occurrence((), FALSE_SCHEMA)]) is True


def test_routes_follow_references():
    ways = routes(SCHEMA)
    assert ways[("$defs", "tag")] == (("properties", "tags", "items"),)
    assert ("$defs", "unused") not in ways
    assert ways[("properties", "definitions")] == ()
    tree = routes(SCHEMAS["trees"])
    assert tree[("$defs", "node", "properties", "v")] == ((),)


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_forced_schemas_are_inside_the_schema(name):
    """What is drawn where a place is forced is valid, and what breaks a keyword there is not valid there."""
    schema = SCHEMAS[name]
    ways = routes(schema)
    for one in occurrences(schema):
        if one.path not in ways:
            continue
        there = reached(schema, one.path, ways[one.path])
        broken = negated(schema, one, ways[one.path])
        for changed in (there, broken):
            assert changed is None or validator(changed).META_SCHEMA is not None
        if broken is not None:
            assert broken != there
    assert at(schema, ()) is schema


def test_pointers_are_escaped():
    assert pointer_of(("properties", "a/b~c", 0)) == "#/properties/a~1b~0c/0"


def test_instances_are_written_compactly():
    assert written({"a": [1, "é"]}) == '{"a":[1,"é"]}'
