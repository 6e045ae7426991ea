"""Schemas of OpenAPI documents, beside openapi-schema-validator, which reads schema objects as they stand."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import jsonschema
import pytest

import guided
from guided.errors import GrammarError, GuidedError, UnsupportedError
from guided.grammar.openapi import operation, read_openapi
from guided.grammar.openapi.schemas import Direction, Schemas
from guided.testing import check_constraint
from tests.vocabularies import of_bytes

validators = pytest.importorskip("openapi_schema_validator")
pytest.importorskip("yaml")
from referencing import Registry, Resource  # noqa: E402
from referencing.jsonschema import DRAFT202012  # noqa: E402

from tests.amounts import each, some  # noqa: E402

VOCABULARY = of_bytes()
COMMON: dict[str, Any] = {
    "Id": {"type": "integer", "minimum": 1},
    "Tag": {"type": "string", "enum": ["a", "b"]},
    "a/b~c%": {"type": "boolean"},
    "Tree": {
        "type": "object",
        "properties": {"v": {"$ref": "#/components/schemas/Id"}, "next": {"$ref": "#/components/schemas/Tree"}},
        "required": ["v"],
        "additionalProperties": False,
    },
    "Any": {"anyOf": [{"$ref": "#/components/schemas/Tag"}, {"$ref": "#/components/schemas/a~1b~0c%25"}]},
    "First": {"type": "array", "items": {"$ref": "#/components/schemas/Tree/properties/v"}, "maxItems": 2},
}
V30 = COMMON | {
    "Maybe": {"type": "string", "nullable": True, "maxLength": 2},
    "NoNull": {"type": "string", "nullable": True, "enum": ["a"]},
    "NoType": {"nullable": True, "maxLength": 1},
    "Above": {"type": "number", "minimum": 1, "exclusiveMinimum": True, "maximum": 3, "exclusiveMaximum": False},
    "User": {
        "type": "object",
        "properties": {
            "id": {"type": "integer", "readOnly": True},
            "secret": {"type": "string", "writeOnly": True},
            "tag": {"$ref": "#/components/schemas/Tag"},
        },
        "required": ["id", "secret"],
        "additionalProperties": False,
    },
    "Users": {"type": "array", "items": {"$ref": "#/components/schemas/User"}, "minItems": 1},
}
V31 = COMMON | {
    "Maybe": {"type": ["string", "null"], "maxLength": 2},
    "Above": {"type": "number", "exclusiveMinimum": 1, "maximum": 3},
    "Beside": {"$ref": "#/components/schemas/Tag", "pattern": "^a"},
    "Const": {"const": {"id": 1}},
    "Pair": {"type": "array", "prefixItems": [{"$ref": "#/components/schemas/Tag"}, True], "items": False},
    "Not": {"type": ["string", "integer"], "not": {"$ref": "#/components/schemas/Tag"}},
    "Never": {"type": "array", "items": False},
    "User": {
        "type": "object",
        "properties": {"id": {"type": "integer", "readOnly": True}},
        "required": ["id"],
        "additionalProperties": False,
    },
}
SIMPLE = [None, True, False, 0, 1, 2, 3, -1, 1.5, 3.5, "", "a", "b", "ab", "abc", [], {}, "ä", *range(4, 40)]


def values() -> list[Any]:
    rng = random.Random(3)
    made: list[Any] = [*SIMPLE, *([one] for one in SIMPLE[:18]), *([one, 2] for one in SIMPLE[:18])]
    for names in itertools.chain.from_iterable(
        itertools.combinations(("id", "secret", "tag", "v", "next"), size) for size in (1, 2, 3)
    ):
        for _ in range(5):
            made.append(
                {name: rng.choice([1, "a", None, {"v": 1}, {"v": 0}, {"v": 2, "next": {"v": 3}}]) for name in names}
            )
    return [*made, *([one] for one in made if isinstance(one, dict))]


def document(schemas: dict[str, Any], version: str) -> dict[str, Any]:
    return {"openapi": version, "components": {"schemas": schemas}}


def oracle(data: dict[str, Any], name: str, direction: Direction) -> Any:
    kinds = {Direction.REQUEST: validators.OAS30WriteValidator, Direction.RESPONSE: validators.OAS30ReadValidator}
    kind = kinds[direction] if data["openapi"] == "3.0.3" else validators.OAS31Validator
    registry = Registry().with_resource("urn:d", Resource(contents=data, specification=DRAFT202012))
    part = name.replace("~", "~0").replace("/", "~1").replace("%", "%25")
    return kind({"$ref": f"urn:d#/components/schemas/{part}"}, registry=registry)


def copied(data: dict[str, Any], name: str, direction: Direction) -> dict[str, Any]:
    schemas = Schemas(read_openapi(data), direction)
    return schemas.whole(schemas.copy(data["components"]["schemas"][name], f"#/components/schemas/{name}"))


@pytest.mark.parametrize(("version", "schemas"), [("3.0.3", V30), ("3.1.0", V31)])
def test_verdicts_are_those_of_the_openapi_validator(version: str, schemas: dict[str, Any]) -> None:
    data = document(schemas, version)
    n_accepted = n_rejected = 0
    for name, direction in itertools.product(schemas, Direction):
        judge = oracle(data, name, direction)
        schema = copied(data, name, direction)
        jsonschema.Draft202012Validator.check_schema(schema)
        ours = jsonschema.Draft202012Validator(schema)
        constraint = guided.compile(guided.json_schema(schema, order="any"), VOCABULARY)
        for value in each(values(), 2):
            verdict = judge.is_valid(value)
            n_accepted += verdict
            n_rejected += not verdict
            assert ours.is_valid(value) is verdict, (name, direction, value)
            state = constraint.advance_bytes(constraint.start, json.dumps(value, ensure_ascii=False).encode())
            assert (bool(state) and constraint.is_accepting(state)) is verdict, (name, direction, value)
    assert n_accepted >= some(200, 2)
    assert n_rejected >= some(200, 2)


def test_what_stands_beside_a_reference_is_ignored_in_30() -> None:
    # By the text of 3.0.3; the validator applies it.
    schemas = COMMON | {"Beside": {"$ref": "#/components/schemas/Tag", "maxLength": 0, "nullable": True, "x": 1}}
    schema = copied(document(schemas, "3.0.3"), "Beside", Direction.REQUEST)
    assert schema["$ref"] == "#/$defs/Tag"
    assert list(schema) == ["$schema", "$ref", "$defs"]


def test_a_discriminator_changes_nothing() -> None:
    schemas = COMMON | {"D": {"oneOf": [{"$ref": "#/components/schemas/Tree"}], "discriminator": {"propertyName": "v"}}}
    schema = copied(document(schemas, "3.0.3"), "D", Direction.REQUEST)
    assert list(schema) == ["$schema", "oneOf", "$defs"]


def test_contracts() -> None:
    schema = copied(document(V30, "3.0.3"), "Users", Direction.RESPONSE)
    check_constraint(
        guided.compile(guided.json_schema(schema), VOCABULARY), walks=2, length=15, full_states=3, threads=0
    )


@pytest.mark.parametrize(
    ("version", "schema", "where", "kind"),
    [
        ("3.0.0", {"const": 1}, "/const", GrammarError),
        ("3.0.0", {"properties": {"a/b": {"if": {}}}}, "/properties/a~1b/if", GrammarError),
        ("3.0.0", {"type": ["string", "null"]}, "/type", GrammarError),
        ("3.0.0", {"type": "null"}, "/type", GrammarError),
        ("3.0.0", {"minimum": 3, "exclusiveMinimum": 2}, "/exclusiveMinimum", GrammarError),
        ("3.0.0", {"exclusiveMaximum": True}, "/exclusiveMaximum", GrammarError),
        ("3.0.0", {"items": [{}]}, "/items", GrammarError),
        ("3.0.0", {"not": True}, "/not", GrammarError),
        ("3.0.0", {"allOf": [{"$ref": "other.yaml#/A"}]}, "/allOf/0/$ref", UnsupportedError),
        ("3.0.0", {"not": {"$ref": "#/components/schemas/B"}}, "/not/$ref", GrammarError),
        ("3.0.0", {"not": {"$ref": "#B"}}, "/not/$ref", GrammarError),
        ("3.0.0", {"$ref": 1}, "/$ref", GrammarError),
        ("3.1.0", {"$anchor": "x"}, "/$anchor", UnsupportedError),
        ("3.1.0", {"$ref": "#/components/schemas/A", "$dynamicRef": "#x"}, "/$dynamicRef", UnsupportedError),
        ("3.1.0", {"$schema": "http://json-schema.org/draft-04/schema#"}, "/$schema", UnsupportedError),
        ("3.1.0", {"anyOf": [1]}, "/anyOf/0", GrammarError),
    ],
)
def test_refusals_have_a_pointer_into_the_document(
    version: str, schema: dict[str, Any], where: str, kind: type[GuidedError]
) -> None:
    with pytest.raises(kind) as caught:
        copied(document({"A": schema}, version), "A", Direction.REQUEST)
    assert caught.value.where == f"#/components/schemas/A{where}"
    assert caught.value.remedy


def test_versions() -> None:
    for version in ("2.0", "3.2.0", "3", "3.10.0"):
        with pytest.raises(UnsupportedError) as caught:
            read_openapi({"openapi": version})
        assert caught.value.where == "#/openapi"
    for data, where in (
        ({"swagger": "2.0"}, "#/swagger"),
        ({}, "#/openapi"),
        ({"openapi": 3.1}, "#/openapi"),
        ([], "#"),
    ):
        with pytest.raises(GrammarError) as malformed:
            read_openapi(data)  # type: ignore[arg-type]
        assert malformed.value.where == where
    with pytest.raises(UnsupportedError, match="dialect"):
        read_openapi({"openapi": "3.1.0", "jsonSchemaDialect": "http://json-schema.org/draft-07/schema#"})


def test_a_reference_that_comes_back_to_itself() -> None:
    data = {"openapi": "3.1.0", "paths": {"/a": {"$ref": "#/paths/~1b"}, "/b": {"$ref": "#/paths/~1a"}}}
    with pytest.raises(GrammarError, match="comes back"):
        operation(data, "x")
