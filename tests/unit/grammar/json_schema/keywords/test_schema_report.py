"""The report names every keyword that can apply, with the enforcement that the compiled grammar has."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import referencing

from guided.grammar.json_schema import Enforcement, Line, json_schema, schema_report
from tests.twin.earley import accepts

DRAFT7 = "http://json-schema.org/draft-07/schema#"
DRAFT2020 = "https://json-schema.org/draft/2020-12/schema"


def kinds(schema: Any, **options: Any) -> dict[str, str]:
    return {line.pointer: line.enforcement.value for line in json_schema(schema, **options).report()}


def test_masked_checked_and_annotations() -> None:
    schema = {
        "title": "t",
        "type": "object",
        "properties": {
            "a/b": {"type": "array", "uniqueItems": True, "items": {"$ref": "#/$defs/p"}},
            "c": {"uniqueItems": False, "contentMediaType": "text/html", "x-own": 1, "minContains": 2, "then": False},
        },
        "$defs": {"p": {"format": "date"}, "unused": {"type": "null"}},
    }
    assert kinds(schema) == {
        "#/title": "annotation",
        "#/type": "masked",
        "#/properties": "masked",
        "#/properties/a~1b/type": "masked",
        "#/properties/a~1b/uniqueItems": "checked",
        "#/properties/a~1b/items": "masked",
        "#/properties/a~1b/items/$ref": "masked",
        "#/$defs/p/format": "masked",
        "#/properties/c/uniqueItems": "annotation",
        "#/properties/c/contentMediaType": "annotation",
        "#/properties/c/x-own": "annotation",
        "#/properties/c/minContains": "annotation",
        "#/properties/c/then": "annotation",
    }


def test_meaning_depends_on_the_draft() -> None:
    schema = {"properties": {"a": {"$ref": "#", "minLength": 1}}, "prefixItems": [{}], "unevaluatedItems": False}
    assert kinds({"$schema": DRAFT7, **schema}) == {
        "#/properties": "masked",
        "#/properties/a/$ref": "masked",
        "#/properties/a/minLength": "annotation",
        "#/prefixItems": "annotation",
        "#/unevaluatedItems": "annotation",
    }
    assert set(kinds({"$schema": DRAFT2020, **schema}).values()) == {"masked"}


@pytest.mark.parametrize(
    ("schema", "options", "wanted"),
    [
        ({"format": "date"}, {}, "masked"),
        ({"format": "date"}, {"formats": "annotate"}, "annotation"),
        ({"format": "byte"}, {}, "annotation"),
        ({"format": "byte"}, {"formats": "assert"}, "masked"),
        ({"format": "regex"}, {"formats": "assert"}, "checked"),
        ({"format": "idn-hostname"}, {"formats": "assert"}, "checked"),
        ({"format": "int32"}, {}, "masked"),
        ({"format": "no such format"}, {}, "annotation"),
        ({"format": 7}, {}, "annotation"),
        ({"$schema": DRAFT2020, "format": "date"}, {}, "annotation"),
        ({"$schema": DRAFT2020, "format": "date", "type": "string"}, {}, "masked"),
    ],
)
def test_formats(schema: Any, options: Any, wanted: str) -> None:
    assert kinds(schema, **options)["#/format"] == wanted


def test_refused_is_said_with_the_rest() -> None:
    report = schema_report({"properties": {"a": {"pattern": r"(a+)\1"}, "b": {"type": "null"}}})
    assert report[-1].pointer == "#/properties/a/pattern"
    assert report[-1].enforcement is Enforcement.REFUSED
    assert "backreference" in report[-1].why
    assert Line("#/properties/b/type", Enforcement.MASKED) in report
    assert schema_report("{")[-1].enforcement is Enforcement.REFUSED
    assert schema_report(False)[-1].why.startswith("no value satisfies")


def test_reports_follow_the_registry_and_survive_pickling() -> None:
    known: referencing.Registry[Any] = referencing.Registry().with_resource(
        "http://example.com/s", referencing.Resource.from_contents({"$schema": DRAFT2020, "minimum": 3})
    )
    report = json_schema({"$ref": "http://example.com/s"}, registry=known).report()
    assert [line.pointer for line in report] == ["#/$ref", "http://example.com/s#/minimum"]
    grammar = json_schema({"type": "null"})
    assert pickle.loads(pickle.dumps(grammar)).report() == grammar.report()


def test_a_boolean_required_is_no_assertion_and_said_so() -> None:
    for schema in (
        {"properties": {"a": {"type": "string", "required": True}}},
        {"$schema": DRAFT7, "properties": {"a": {"type": "object", "required": True}}},
    ):
        grammar = json_schema(schema)
        (line,) = [line for line in grammar.report() if line.pointer == "#/properties/a/required"]
        assert line.enforcement is Enforcement.ANNOTATION and "draft 3" in line.why
        assert any("required is dropped, at #/properties/a/required" in note for note in grammar.notes)
    assert json_schema({"properties": {"a": {"type": "string", "required": False}}}).notes == ()


@pytest.mark.parametrize(
    ("schema", "note"),
    [
        (
            {"properties": {"a": {"type": "string", "nullable": True}}},
            "nullable is dropped, at #/properties/a/nullable:",
        ),
        (
            {"properties": {name: {"type": "string", "nullable": True} for name in "abc"}},
            "nullable is dropped, at #/properties/a/nullable and 2 more:",
        ),
        ({"type": "integer", "divisibleBy": 2}, "divisibleBy is dropped, at #/divisibleBy:"),
        ({"$schema": DRAFT2020, "dependencies": {"a": ["b"]}}, "dependencies is dropped, at #/dependencies:"),
        (
            {"$schema": DRAFT7, "dependentRequired": {"a": ["b"]}},
            "dependentRequired is dropped, at #/dependentRequired:",
        ),
    ],
)
def test_what_is_enforced_elsewhere_is_dropped_with_a_note(schema: Any, note: str) -> None:
    notes = json_schema(schema).notes
    assert any(each.startswith(note) for each in notes), notes


def test_names_of_members_are_no_keywords() -> None:
    assert json_schema({"properties": {"nullable": {}, "extends": {"type": "string"}, "if": {}}}).notes == ()
    assert json_schema({"type": ["string", "null"], "nullable": False}).notes == ()


@pytest.mark.parametrize("said", [{}, {"$schema": "urn:mine"}, {"$schema": 7}])
def test_forms_of_old_are_enforced_where_no_known_draft_is_declared(said: dict[str, Any]) -> None:
    for schema, good, bad in [
        ({"dependencies": {"a": ["b"]}}, '{"a": 1, "b": 1}', '{"a": 1}'),
        ({"dependencies": {"a": {"required": ["b"]}}}, '{"b": 1}', '{"a": 1}'),
        ({"items": [{"type": "null"}], "additionalItems": False}, "[null]", "[null, 1]"),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, "2", "1"),
    ]:
        grammar = json_schema({**said, **schema})
        assert not any("dropped" in note for note in grammar.notes)
        assert accepts(grammar, good.encode())
        assert not accepts(grammar, bad.encode())
        assert set(kinds({**said, **schema}).values()) == {"masked"}
