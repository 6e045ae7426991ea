"""`strict`: objects are closed and their members required, where their authors do not say otherwise."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Annotated, Any, Literal, Optional, Union

import pydantic
import pytest
import typing_extensions

import guided
from guided.errors import GrammarError
from guided.grammar.json_schema import json_schema
from tests.twin.earley import accepts

ADDRESS = {"type": "object", "properties": {"city": {"type": "string"}}}


def verdicts(schema: Any, *texts: str, **options: Any) -> list[bool]:
    grammar = json_schema(schema, order="any", **options)
    found = [accepts(grammar, text.encode()) for text in texts]
    again = pickle.loads(pickle.dumps(grammar))
    assert [accepts(again, text.encode()) for text in texts] == found
    return found


def test_declared_members_are_all_and_no_others() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "null"}, "b": ADDRESS}, "required": ["a"]}
    texts = [
        '{"a": null}',
        '{"a": null, "b": {}}',
        '{"a": null, "b": {"city": ""}}',
        '{"a": null, "b": {"city": ""}, "c": 1}',
    ]
    assert verdicts(schema, *texts) == [True] * 4
    assert verdicts(schema, *texts, strict=True) == [False, False, True, False]
    assert verdicts(schema, '{"a": null, "b": {"city": "", "zip": 1}}', strict=True) == [False]


def test_what_schemas_say_themselves_holds() -> None:
    open_map = {"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": {"type": "integer"}}
    assert verdicts(open_map, '{"a": null, "b": 1}', '{"b": 1}', strict=True) == [True, False]
    # Nothing is said of members: any object, any map.
    for schema in ({"type": "object"}, {"type": "object", "additionalProperties": {"type": "integer"}}, True):
        assert verdicts(schema, '{"a": 1}', strict=True) == [True]
    assert verdicts({"patternProperties": {"^a": {}}}, '{"ab": 1}', '{"b": 1}', strict=True) == [True, False]
    assert verdicts({"properties": {"a": False, "b": {}}}, '{"b": 1}', "{}", strict=True) == [True, False]
    assert verdicts(
        {"properties": {"a": {}, "b": {}}, "maxProperties": 2, "required": ["a"]}, '{"a": 1, "b": 1}', strict=True
    ) == [True]


@pytest.mark.parametrize(
    "draft", ["http://json-schema.org/draft-04/schema#", "http://json-schema.org/draft-07/schema#", None]
)
def test_parts_of_a_schema_declare_together(draft: str | None) -> None:
    said = {} if draft is None else {"$schema": draft}
    base = {"type": "object", "properties": {"a": {"type": "null"}}}
    both = {
        **said,
        "definitions": {"base": base},
        "allOf": [{"$ref": "#/definitions/base"}, {"properties": {"b": {"type": "null"}}}],
    }
    texts = ['{"a": null, "b": null}', '{"a": null}', '{"a": null, "b": null, "c": null}']
    assert verdicts(both, *texts, strict=True) == [True, False, False]
    # The same definition stands for a whole value elsewhere.
    both["properties"] = {"inner": {"$ref": "#/definitions/base"}}
    texts = ['{"a": null, "b": null, "inner": {"a": null}}', '{"a": null, "b": null, "inner": {"a": null, "b": null}}']
    assert verdicts(both, *texts, strict=True) == [True, False]


def test_alternatives_are_closed_each() -> None:
    cat = {"type": "object", "properties": {"kind": {"const": "cat"}, "lives": {"type": "integer"}}}
    dog = {"type": "object", "properties": {"kind": {"const": "dog"}}}
    texts = ['{"kind": "cat", "lives": 9}', '{"kind": "dog"}', '{"kind": "dog", "lives": 9}', '{"kind": "cat"}', "null"]
    for keyword in ("anyOf", "oneOf"):
        schema = {keyword: [cat, dog, {"type": "null"}]}
        assert verdicts(schema, *texts, strict=True) == [True, True, False, False, True]
    # No text is taken that is not valid as the schema stands: what both allow by the letter is not.
    both = [{"type": "object", "properties": {"a": {}}}, {"type": "object", "properties": {"a": {}, "b": {"const": 1}}}]
    assert verdicts({"oneOf": both}, '{"a": 1}', '{"a": 1, "b": 2}', '{"a": 1, "b": 1}') == [False, True, False]
    with pytest.raises(guided.UnsatisfiableError):
        json_schema({"oneOf": both}, strict=True)


def test_conditions_are_read_to_the_letter() -> None:
    schema = {
        "type": "object",
        "properties": {"country": {"enum": ["US", "NL"]}, "zip": {"type": "string"}},
        "if": {"properties": {"country": {"const": "US"}}},
        "then": {"properties": {"zip": {"pattern": "^[0-9]{5}$"}}},
    }
    texts = [
        '{"country": "US", "zip": "12345"}',
        '{"country": "NL", "zip": "1234 AB"}',
        '{"country": "US", "zip": "1"}',
        '{"country": "NL"}',
    ]
    assert verdicts(schema, *texts, strict=True) == [True, True, False, False]
    others = {"type": "object", "properties": {"a": {}}, "not": {"properties": {"a": {"const": 1}}, "required": ["a"]}}
    assert verdicts(others, '{"a": 2}', '{"a": 1}', '{"a": 2, "b": 1}', "{}", strict=True) == [
        True,
        False,
        False,
        False,
    ]


def test_strict_is_part_of_the_schema_at_every_depth() -> None:
    tree = {
        "$defs": {"t": {"type": "object", "properties": {"l": {"anyOf": [{"$ref": "#/$defs/t"}, {"type": "null"}]}}}},
        "$ref": "#/$defs/t",
    }
    assert verdicts(tree, '{"l": {"l": null}}', '{"l": {}}', '{"l": {"l": null, "x": 1}}', strict=True) == [
        True,
        False,
        False,
    ]
    items = {
        "type": "array",
        "items": ADDRESS,
        "contains": {"properties": {"city": {"const": "a"}}, "required": ["city"]},
    }
    assert verdicts(items, '[{"city": "a"}, {"city": "b"}]', '[{"city": "b"}]', '[{"city": "a"}, {}]', strict=True) == [
        True,
        False,
        False,
    ]


class Person(pydantic.BaseModel):
    name: str
    age: int = 3


class Open(pydantic.BaseModel, extra="allow"):
    name: str


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]


class Home(pydantic.BaseModel):
    pet: Annotated[Union[Cat, Dog], pydantic.Field(discriminator="kind")]  # noqa: UP007
    owner: Optional[Person] = None  # noqa: UP045
    notes: dict[str, int] = {}


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Row(typing_extensions.TypedDict, total=False):
    a: int


def test_types_hold_no_invented_members() -> None:
    for source, good, bad in [
        (Person, ['{"name": "a"}', '{"name": "a", "age": 1}'], ['{"name": "a", "x": 1}', "{}"]),
        (Open, ['{"name": "a"}', '{"name": "a", "x": 1}'], ["{}"]),
        (Point, ['{"x": 1}', '{"x": 1, "y": 2}'], ['{"x": 1, "z": 2}']),
        (Row, ["{}", '{"a": 1}'], ['{"b": 1}']),
        (list[Person], ['[{"name": "a"}]'], ['[{"name": "a", "x": 1}]']),
        (dict[str, int], ['{"anything": 1}'], ['{"a": ""}']),
        (
            Home,
            ['{"pet": {"kind": "dog"}, "owner": null, "notes": {"a": 1}}', '{"pet": {"kind": "cat", "lives": 9}}'],
            ['{"pet": {"kind": "dog", "lives": 9}}', '{"pet": {"kind": "dog"}, "owner": {"name": "a", "x": 1}}'],
        ),
    ]:  # fmt: skip
        assert verdicts(source, *good, *bad) == [True] * len(good) + [False] * len(bad)
    assert verdicts(Person, '{"name": "a"}', '{"name": "a", "age": 1}', strict=True) == [False, True]
    assert verdicts(Person, '{"name": "a", "x": 1}', strict=False) == [True]


def test_functions_hold_no_invented_arguments() -> None:
    def book(city: str, days: int = 1) -> None: ...

    def log(text: str, **more: int) -> None: ...

    assert verdicts(book, '{"city": "Rome"}', '{"city": "Rome", "days": 2}', '{"city": "Rome", "x": 2}') == [
        True,
        True,
        False,
    ]
    assert verdicts(book, '{"city": "Rome"}', '{"city": "Rome", "days": 2}', strict=True) == [False, True]
    assert verdicts(log, '{"text": "", "level": 1}') == [True]


def test_readings_are_different_grammars() -> None:
    schema = {"type": "object", "properties": {"a": {}}}
    assert len({json_schema(schema, strict=strict).key for strict in (None, False, True)}) == 2
    with pytest.raises(GrammarError, match="strict"):
        json_schema(schema, strict="yes")  # type: ignore[arg-type]
