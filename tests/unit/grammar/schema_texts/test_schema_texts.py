"""JSON5, YAML, TOML, CSV and XML of a schema, beside what the formats' own parsers make of the texts."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import guided
from guided import tokenset
from guided.errors import GrammarError, GuidedError, UnsatisfiableError, UnsupportedError
from guided.grammar.schema_texts import schema_text
from guided.testing import check_constraint
from tests.amounts import each, some
from tests.unit.grammar.schema_texts.readings import is_instance
from tests.unit.grammar.schema_texts.writing import write
from tests.vocabularies import of_bytes

VOCABULARY = of_bytes()
TEXTS = ["", "Ada", "no", "12", "1.5", "true", "null", "it's", "a, b", "a: b", 'say "hi"', "a\tb", "one\ntwo", "one\n\n  two\n", "é ü", "<&>", "- x", "#1", "\x7f", "\u2028", "2024-01-01", "back\\slash", "x" * 30, " padded "]  # fmt: skip


def _object(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
        **more,
    }


STRING, NUMBER = {"type": "string"}, {"type": "number"}
POINT = _object({"x": NUMBER, "y": {"type": "integer", "minimum": -3, "maximum": 40}}, "x")
PERSON = _object(
    {
        "name": STRING,
        "on": {"type": "boolean"},
        "age": {"type": "integer", "minimum": 0},
        "kind": {"enum": ["a", "it's", "null", "b: c"]},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 12}, "maxItems": 3},
        "home": _object({"street": STRING, "zip": {"type": ["string", "null"]}, "at": POINT}, "street"),
        "points": {"type": "array", "items": POINT, "minItems": 1, "maxItems": 2},
        "other": {"anyOf": [NUMBER, {"type": "boolean"}, {"type": "string", "pattern": "^[a-z]+$"}]},
    },
    "name", "age",
)  # fmt: skip
SHAPES = _object(
    {"list": {"type": "array", "items": {"anyOf": [POINT, {"type": "null"}, STRING]}}, "null": {"type": "null"}}, "list"
)
ROWS = {
    "type": "array",
    "minItems": 1,
    "maxItems": 3,
    "items": _object(
        {"name": STRING, "n": {"type": ["integer", "null"]}, "kind": {"enum": ["a", "b,c", 'd"e']}, "on": {"type": "boolean"}},
        "name", "kind",
    ),
}  # fmt: skip
COLUMN = {"type": "array", "items": _object({"only": {"type": "string", "maxLength": 9}}, "only")}
NESTED = {
    "type": "array",
    "items": {"type": "array", "items": _object({"a": STRING, "b": {"type": "array", "items": NUMBER}}, "a")},
}
SCHEMAS = {
    "json5": [PERSON, SHAPES, NESTED, STRING],
    "yaml": [PERSON, SHAPES, NESTED, STRING],
    "toml": [PERSON, SHAPES, _object({"p": PERSON}, "p")],
    "csv": [ROWS, COLUMN],
    "xml": [PERSON, ROWS, _object({"p": PERSON}, "p")],
}
FORMATS = list(SCHEMAS)
TRIALS = {"toml": 1200, "csv": 3000}
"""Where many values cannot be written at all there are more."""


def accepts(constraint: guided.Constraint, text: str) -> bool:
    state = constraint.advance_bytes(constraint.start, text.encode())
    return bool(state) and constraint.is_accepting(state)


def value_of(rng: random.Random, schema: dict[str, Any], wrong: float) -> Any:
    """A value that is mostly what the schema says."""
    if rng.random() < wrong:
        return rng.choice([None, True, 5, -1.25, "x y", [], {}, ["a"], {"x": 1}, 10**20])
    if "anyOf" in schema:
        return value_of(rng, rng.choice(schema["anyOf"]), wrong)
    if "enum" in schema:
        return rng.choice([*schema["enum"], "other"] if wrong else schema["enum"])
    kind = schema["type"]
    match rng.choice(kind) if isinstance(kind, list) else kind:
        case "object":
            found = {}
            for name, of in schema["properties"].items():
                needed = name in schema.get("required", ())
                if (needed and rng.random() >= wrong / 3) or (not needed and rng.random() < 0.6):
                    found[name] = value_of(rng, of, wrong)
            if rng.random() < wrong / 3:
                found["more"] = 1
            return found
        case "array":
            return [value_of(rng, schema["items"], wrong) for _ in range(rng.randrange(1, 4))]
        case "string":
            return rng.choice([text for text in TEXTS if wrong or len(text) <= schema.get("maxLength", 99)])
        case "integer":
            return rng.randrange(0, 41)
        case "number":
            return rng.choice([0, 7, -3, 2.5, -0.125, 1e-7, 1.5e20, 1e22])
        case "boolean":
            return rng.random() < 0.5
    return None


def walks(constraint: guided.Constraint, rng: random.Random, n: int) -> Iterator[str]:
    """Random texts of a language, most characters ASCII."""
    row = np.zeros(VOCABULARY.n_words, np.uint32)
    eos = set(VOCABULARY.eos_ids)
    for _ in range(n):
        state, text, length = constraint.start, b"", rng.randrange(120)
        while True:
            constraint.fill_mask(state, row)
            ids = [token for token in tokenset.ids(row).tolist() if token not in eos]
            if len(text) >= length:
                if constraint.is_accepting(state):
                    break
                left = constraint.shortest_completion(state)
                ids = [i for i in ids if constraint.shortest_completion(constraint.advance(state, i)) < left]
            elif not ids:
                break
            ascii_ids = [token for token in ids if token < 0x7F]
            token = rng.choice(ascii_ids if ascii_ids and rng.random() < 0.9 else ids)
            state, text = constraint.advance(state, token), text + bytes([token])
        yield text.decode()


@pytest.mark.parametrize("format", FORMATS)
def test_every_text_is_read_as_an_instance(format: str) -> None:
    rng = random.Random(f"walks/{format}")
    n_texts = n_changed = 0
    for schema in SCHEMAS[format]:
        constraint = guided.compile(schema_text(schema, format), VOCABULARY)
        for text in walks(constraint, rng, some(200, 24)):
            assert is_instance(format, text, schema), text
            n_texts += 1
            # One character less, more or other: what is still in the language is still an instance.
            for _ in range(3):
                at = rng.randrange(len(text) + 1)
                other = text[:at] + rng.choice(["", *"\n :,\"'#-0a<{[]}"]) + text[at + rng.randrange(2) :]
                if accepts(constraint, other):
                    assert is_instance(format, other, schema), other
                else:
                    n_changed += 1
    assert n_texts >= 2 * some(200, 24)
    assert n_changed >= some(200, 10)


@pytest.mark.parametrize("format", FORMATS)
def test_values_are_written_just_if_they_are_instances(format: str) -> None:
    rng = random.Random(f"values/{format}")
    n_accepted = n_rejected = 0
    for schema in SCHEMAS[format]:
        constraint = guided.compile(schema_text(schema, format), VOCABULARY)
        for trial in range(some(TRIALS.get(format, 600), 2) // len(SCHEMAS[format])):
            value = value_of(rng, schema, 0.0 if trial % 5 < 2 else 0.4)
            text = write(rng, format, value, schema)
            if text is None:
                continue
            wanted = is_instance(format, text, schema)
            assert accepts(constraint, text) is wanted, (value, text)
            n_accepted += wanted
            n_rejected += not wanted
    assert n_accepted >= some(200, 3)
    assert n_rejected >= some(200, 3)


@pytest.mark.parametrize("format", each(FORMATS, 2))
def test_contracts(format: str) -> None:
    grammar = schema_text(SCHEMAS[format][0], format)
    assert pickle.loads(pickle.dumps(grammar)).key == grammar.key
    check_constraint(guided.compile(grammar, VOCABULARY), walks=1, length=12, full_states=1, threads=0)


@pytest.mark.parametrize(
    ("format", "schema", "where"),
    [
        ("yaml", {"type": "object", "properties": {"a": {"type": "object"}}}, "#/properties/a"),
        ("toml", {"type": "object", "additionalProperties": STRING}, "#"),
        ("xml", {"type": "object", "properties": {"a": True}}, "#/properties/a"),
        ("json5", {"type": "object", "minProperties": 2}, "#"),
        ("json5", {"properties": {"a": {"type": "array", "uniqueItems": True}}}, "#/properties/a"),
        (
            "yaml",
            {
                "type": "object",
                "properties": {"a": {"type": "string", "format": "regex"}},
                "$schema": "http://json-schema.org/draft-07/schema#",
            },
            "#/properties/a",
        ),
        ("yaml", _object({"k" * 130: STRING}), f"#/properties/{'k' * 130}"),
        ("csv", {"type": "array", "items": STRING}, "#/items"),
        ("csv", {"type": "array", "items": _object({"a": {"type": "array"}})}, "#/items/properties/a"),
        ("csv", {"type": "array", "items": _object({"a": STRING}, minProperties=1)}, "#/items"),
        ("csv", {"type": "array", "items": _object({})}, "#"),
        ("xml", _object({"a": {"type": "array", "items": {"type": "array"}}}), "#/properties/a/items"),
        ("xml", _object({"a b": STRING}), "#/properties/a b"),
        ("xml", _object({"a": {"type": "array"}, "b": STRING}, minProperties=1), "#"),
    ],
)
def test_what_cannot_be_exact_is_refused_by_its_place(format: str, schema: dict[str, Any], where: str) -> None:
    with pytest.raises(UnsupportedError) as caught:
        schema_text(schema, format)
    assert caught.value.where == where
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("format", "schema", "where"),
    [
        ("toml", STRING, "#"),
        ("toml", _object({"a": {"type": "null"}}, "a"), "#/properties/a"),
        ("toml", _object({"a": {"type": "integer", "minimum": 2**63}}, "a"), "#/properties/a"),
        ("csv", _object({"a": STRING}), "#"),
        ("xml", _object({"a": {"const": "\x01"}}, "a"), "#/properties/a"),
    ],
)
def test_what_a_format_cannot_say_has_no_text(format: str, schema: dict[str, Any], where: str) -> None:
    with pytest.raises(UnsatisfiableError, match="can be written in") as caught:
        schema_text(schema, format)
    assert caught.value.where == where


def test_null_is_left_out_of_toml() -> None:
    constraint = guided.compile(
        schema_text(_object({"a": {"type": ["string", "null"]}, "b": {"type": "null"}}), "toml"), VOCABULARY
    )
    assert accepts(constraint, "")
    assert accepts(constraint, 'a = "x"\n')
    assert not accepts(constraint, "b = null\n")


def test_recursion_and_conditions() -> None:
    tree = {
        "$ref": "#/$defs/t",
        "$defs": {"t": _object({"v": NUMBER, "l": {"type": "array", "items": {"$ref": "#/$defs/t"}}}, "v")},
    }
    deep: Any = {"v": 1}
    for _ in range(20):
        deep = {"v": 1, "l": [deep]}
    for format in ("json5", "yaml"):
        constraint = guided.compile(schema_text(tree, format), VOCABULARY)
        assert accepts(constraint, json.dumps(deep).replace('"', "") + "\n")
    toml = guided.compile(schema_text(tree, "toml"), VOCABULARY)
    assert accepts(toml, "v = 1\nl = [{v = 2, l = []}]\n")
    either = {
        "oneOf": [_object({"a": {"const": 1}, "b": STRING}, "a"), _object({"a": {"const": 2}, "c": NUMBER}, "a", "c")]
    }
    yaml = guided.compile(schema_text(either, "yaml"), VOCABULARY)
    assert accepts(yaml, "a: 2\nc: 3\n")
    assert not accepts(yaml, "a: 2\nb: x\n")
    contains = {"type": "array", "items": {"type": "integer"}, "contains": {"const": 3}, "minItems": 2}
    for text, wanted in (("- 1\n- 3\n", True), ("- 1\n- 2\n", False), ("- 3\n", False)):
        assert accepts(guided.compile(schema_text(contains, "yaml"), VOCABULARY), text) is wanted


def test_undeclared_names_of_json5() -> None:
    grammar = schema_text({"type": "object", "additionalProperties": NUMBER}, "json5")
    assert any("twice" in note for note in grammar.notes)
    constraint = guided.compile(grammar, VOCABULARY)
    assert accepts(constraint, "{'a b': 1, \"c\": 2.5,}")
    assert not accepts(constraint, "{'a': true}")


def test_options() -> None:
    with pytest.raises(GrammarError, match="no text format 'ini'"):
        schema_text(STRING, "ini")
    with pytest.raises(GuidedError, match="no order"):
        schema_text(STRING, "yaml", order="none")
    swapped = guided.compile(schema_text(_object({"a": STRING, "b": NUMBER}), "yaml", order="any"), VOCABULARY)
    assert accepts(swapped, "b: 1\na: x\n")
    named = guided.compile(schema_text(_object({"a": STRING}), "xml", root="r"), VOCABULARY)
    assert accepts(named, '<?xml version="1.0" encoding="UTF-8"?>\n<r>\n  <a>1 &lt; 2</a>\n</r>\n')
