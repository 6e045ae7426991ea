"""Records as cells: every member's text as it was written, and the columns that a schema has."""

from __future__ import annotations

import json
from decimal import Decimal
from enum import Enum
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from guided.errors import UnsupportedError
from guided.reading.records import CellKind, RecordColumn, members_of, record_columns

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(), below, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), JSON, max_size=5), st.sampled_from([None, 1]), st.booleans())
def test_members_are_what_json_reads(value, indent, ascii_only):
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    found = members_of(text)
    assert list(found) == list(value)
    assert {name: json.loads(raw) for name, raw in found.items()} == value
    assert all(raw == raw.strip() and raw in text for raw in found.values())


def test_numbers_stand_as_they_were_written():
    numbers = {"a": "1e400", "b": "9" * 5000, "c": "0.10000000000000000000001", "d": "1.0"}
    text = "{ " + " ,\n".join(f'"{name}" : {number}' for name, number in numbers.items()) + " }"
    assert members_of(text) == numbers
    assert Decimal(RecordColumn("a", CellKind.NUMBER).text("1e400")) == Decimal("1e400")


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Inner(BaseModel):
    size: int


class Thing(BaseModel, extra="forbid"):
    name: str
    age: int | None
    share: float = 0.0
    known: bool
    colour: Colour
    colours: list[Colour]
    sizes: list[int] | None = None
    inner: Inner
    inners: list[Inner]
    pair: tuple[int, str]
    either: int | str
    kind: Literal["a", "b"]
    mixed: Literal["a", 1]


def test_columns_of_a_pydantic_model():
    found = {column.name: (column.kind, column.is_list) for column in record_columns(Thing.model_json_schema())}
    assert list(found) == list(Thing.model_fields)
    assert found == {
        "name": (CellKind.TEXT, False),
        "age": (CellKind.INTEGER, False),
        "share": (CellKind.NUMBER, False),
        "known": (CellKind.BOOLEAN, False),
        "colour": (CellKind.TEXT, False),
        "colours": (CellKind.TEXT, True),
        "sizes": (CellKind.INTEGER, True),
        "inner": (CellKind.JSON, False),
        "inners": (CellKind.JSON, False),
        "pair": (CellKind.JSON, False),
        "either": (CellKind.JSON, False),
        "kind": (CellKind.TEXT, False),
        "mixed": (CellKind.JSON, False),
    }


CLOSED = {"type": "object", "properties": {"a": {}}, "additionalProperties": False}


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        {"type": "array", "items": CLOSED},
        {**CLOSED, "type": ["object", "null"]},
        {**CLOSED, "properties": {}},
        {**CLOSED, "additionalProperties": {}},
        {**CLOSED, "patternProperties": {"b": {}}},
        {name: each for name, each in CLOSED.items() if name != "additionalProperties"},
        {"$ref": "#/$defs/loop", "$defs": {"loop": {"$ref": "#/$defs/loop"}}},
        {"$ref": "#/$defs/nowhere"},
        {"$ref": "https://example.org/other"},
        {"anyOf": [CLOSED, {"type": "string"}]},
    ],
)
def test_records_with_members_that_have_no_column_are_refused(schema):
    with pytest.raises(UnsupportedError, match="into"):
        record_columns(schema)


def test_what_closes_an_object():
    assert record_columns(CLOSED) == (RecordColumn("a", CellKind.JSON),)
    assert record_columns({"$ref": "#/$defs/x~1y", "$defs": {"x/y": CLOSED}}) == record_columns(CLOSED)
    assert record_columns({"allOf": [CLOSED]}) == record_columns(CLOSED)
    with pytest.raises(UnsupportedError):
        record_columns({**CLOSED, "additionalProperties": True}, strict=True)
    opened = {"type": "object", "properties": {"a": {"enum": [1, 2.5, None]}}}
    assert record_columns(opened, strict=True) == (RecordColumn("a", CellKind.NUMBER),)


@pytest.mark.parametrize(
    ("column", "raw", "text", "value"),
    [
        (RecordColumn("a", CellKind.TEXT), '"x\\ny"', "x\ny", "x\ny"),
        (RecordColumn("a", CellKind.TEXT), '""', "", ""),
        (RecordColumn("a", CellKind.TEXT), "null", None, None),
        (RecordColumn("a", CellKind.TEXT), None, None, None),
        (RecordColumn("a", CellKind.INTEGER), "3.0", "3.0", 3),
        (RecordColumn("a", CellKind.NUMBER), "3", "3", 3.0),
        (RecordColumn("a", CellKind.BOOLEAN), "true", "true", True),
        (RecordColumn("a", CellKind.JSON), '"3"', '"3"', '"3"'),
        (RecordColumn("a", CellKind.JSON), "3", "3", "3"),
        (RecordColumn("a", CellKind.TEXT, True), '["x", null]', '["x", null]', ["x", None]),
        (RecordColumn("a", CellKind.NUMBER, True), "[1]", "[1]", [1.0]),
    ],
)
def test_cells(column, raw, text, value):
    assert column.text(raw) == text
    found = column.value(raw)
    assert found == value and type(found) is type(value)
