"""References: pointers, anchors, identifiers, registries, recursion, and what drafts make of neighbours."""

from __future__ import annotations

from typing import Any

import pytest
import referencing
import referencing.jsonschema

from guided.errors import GrammarError, UnsatisfiableError, UnsupportedError
from guided.grammar.json_schema import json_schema
from tests.twin.earley import accepts

DRAFT7 = "http://json-schema.org/draft-07/schema#"
DRAFT4 = "http://json-schema.org/draft-04/schema#"


def verdicts(schema: Any, *texts: str, **options: Any) -> list[bool]:
    grammar = json_schema(schema, spelling="any", **options)
    return [accepts(grammar, text.encode()) for text in texts]


def test_recursive_trees() -> None:
    tree = {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": {
                "type": "object",
                "properties": {"value": {"type": "integer"}, "children": {"items": {"$ref": "#/$defs/node"}}},
                "required": ["value"],
            }
        },
    }
    good = '{"value": 1, "children": [{"value": 2, "children": []}, {"value": 3}]}'
    assert verdicts(tree, good, good.replace("2", '"2"')) == [True, False]


def test_recursion_without_end_is_unsatisfiable() -> None:
    endless = {"type": "object", "properties": {"next": {"$ref": "#"}}, "required": ["next"]}
    with pytest.raises(UnsatisfiableError) as caught:
        json_schema(endless)
    assert caught.value.where == "#"
    assert verdicts({"anyOf": [endless, {"type": "null"}]}, "null") == [True]


@pytest.mark.parametrize(
    "schema",
    [{"$ref": "#"}, {"allOf": [{"$ref": "#"}]}, {"anyOf": [{"type": "null"}, {"$ref": "#"}]}, {"not": {"$ref": "#"}}],
)
def test_a_schema_that_applies_itself_to_the_same_value_is_refused(schema: Any) -> None:
    with pytest.raises((UnsupportedError, GrammarError)) as caught:
        json_schema(schema)
    assert caught.value.where.startswith("#")


def test_anchors_and_identifiers() -> None:
    schema = {
        "$id": "https://example.com/root",
        "properties": {
            "a": {"$ref": "#there"},
            "b": {"$ref": "item"},
            "c": {"$ref": "item#inner"},
            "d": {"$ref": "https://example.com/item#/$defs/x"},
        },
        "$defs": {
            "t": {"$anchor": "there", "type": "null"},
            "i": {
                "$id": "item",
                "type": "array",
                "$defs": {"x": {"$anchor": "inner", "type": "boolean"}},
                "items": {"$ref": "#/$defs/x"},
            },
        },
    }
    good = '{"a": null, "b": [true], "c": true, "d": false}'
    assert verdicts(schema, good, '{"a": 1}', '{"b": [1]}', '{"c": null}', '{"d": null}') == [True] + [False] * 4


def test_pointers_with_escapes_and_percent() -> None:
    schema = {"$ref": "#/$defs/a~1b%25~0", "$defs": {"a/b%~": {"const": 1}}}
    assert verdicts(schema, "1", "2") == [True, False]


def test_neighbours_of_a_reference_count_from_2019_on() -> None:
    schema = {"$ref": "#/definitions/i", "maximum": 5, "definitions": {"i": {"type": "integer"}}}
    assert verdicts(schema, "4", "6", "4.5") == [True, False, False]
    assert verdicts({"$schema": DRAFT7, **schema}, "4", "6", "4.5") == [True, True, False]


def test_a_registry_answers_for_other_documents() -> None:
    other = referencing.Resource.from_contents(
        {"$defs": {"n": {"type": "null"}}, "items": {"$ref": "#/$defs/n"}, "type": "array"},
        default_specification=referencing.jsonschema.DRAFT202012,
    )
    registry = referencing.Registry().with_resource("https://example.com/other", other)
    schema = {"$ref": "https://example.com/other"}
    assert verdicts(schema, "[null]", "[1]", registry=registry) == [True, False]
    with pytest.raises(UnsupportedError, match="registry") as caught:
        json_schema(schema)
    assert caught.value.where == "#/$ref"


def test_references_to_nothing() -> None:
    for reference in ("#/$defs/x", "#x", "#/properties/a/b", 5):
        with pytest.raises(GrammarError) as caught:
            json_schema({"properties": {"a": {"$ref": reference}}})
        assert caught.value.where == "#/properties/a/$ref"


def test_drafts_read_their_own_words() -> None:
    tuples = {"items": [{"type": "null"}], "additionalItems": False}
    assert verdicts({"$schema": DRAFT7, **tuples}, "[null]", "[null, 1]", "[1]") == [True, False, False]
    exclusive = {"$schema": DRAFT4, "type": "number", "minimum": 1, "exclusiveMinimum": True}
    assert verdicts(exclusive, "1", "1.5") == [False, True]
    assert verdicts({"$schema": DRAFT4, "type": "integer"}, "1", "1.0") == [True, False]
    assert verdicts({"$schema": DRAFT7, "type": "integer"}, "1", "1.0") == [True, True]
    assert verdicts({"$schema": DRAFT4, "const": 1}, "1", "2") == [True, True]
    assert verdicts(
        {"$schema": DRAFT4, "id": "http://x/y", "$ref": "#/definitions/a", "definitions": {"a": {"type": "null"}}},
        "null",
    ) == [True]
    with pytest.raises(GrammarError, match="prefixItems"):
        json_schema({"$schema": "https://json-schema.org/draft/2020-12/schema", **tuples})
    with pytest.raises(UnsupportedError, match="draft"):
        json_schema({"$schema": "http://json-schema.org/draft-03/schema#"})
    assert json_schema({"$schema": "urn:mine", "type": "null"}).notes
