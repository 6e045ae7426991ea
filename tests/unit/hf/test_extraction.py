"""`guided.extract`: values, lists and frames; what cannot be done is an error of its row."""

from __future__ import annotations

import dataclasses
import json

import jsonschema
import pytest

import guided
from guided.errors import GuidedError, UnsupportedError
from guided.hf import load

SCHEMA = {
    "type": "object",
    "properties": {"customer": {"type": "string"}, "quantity": {"type": "integer"}, "paid": {"type": "boolean"}},
    "required": ["customer", "quantity", "paid"],
    "additionalProperties": False,
}
TEXTS = ["Omar Haddad ordered 12 pieces and has paid.", "Ida Dahl ordered 3 pieces."]


@dataclasses.dataclass
class Order:
    customer: str
    quantity: int
    paid: bool


@pytest.fixture(scope="module")
def nano():
    return load("nano")


@pytest.fixture(scope="module")
def orders(nano):
    return guided.extract(nano, TEXTS, SCHEMA)


def test_values(nano, orders):
    for order in orders:
        jsonschema.validate(order, SCHEMA)
    assert orders[0] == {"customer": "Omar Haddad", "quantity": 12, "paid": True}
    assert guided.extract(nano, TEXTS[1], SCHEMA) == orders[1]
    assert guided.extract(nano, TEXTS[0], Order) == Order(**orders[0])
    assert guided.extract(nano, (), Order) == []


def frame_of(library):
    pytest.importorskip("pyarrow")
    module = pytest.importorskip(library)
    cells = {"n": [1, 2, 3, 4], "letter": [TEXTS[0], " ", None, TEXTS[1]]}
    return module.table(cells) if library == "pyarrow" else module.DataFrame(cells)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames(nano, orders, library):
    data = frame_of(library)
    found = guided.extract(nano, data, Order, column="letter", batch_size=3)
    assert type(found) is type(data)
    columns = {
        name: [None if value != value else value for value in _cells(found, name)]
        for name in ("n", *SCHEMA["properties"])
    }
    assert columns["n"] == [1, 2, 3, 4]
    for name in SCHEMA["properties"]:
        assert columns[name] == [orders[0][name], None, None, orders[1][name]]
    assert [isinstance(each, str) and "empty" in each for each in _cells(found, "error")] == [False, True, True, False]


def _cells(frame, name):
    import pyarrow

    cells = frame[name]
    return pyarrow.array(cells).to_pylist() if not hasattr(cells, "to_pylist") else cells.to_pylist()


def test_one_column_of_json(nano, orders):
    data = frame_of("pyarrow")
    found = guided.extract(nano, data, SCHEMA, column="letter", into="order")
    assert found.column_names == ["n", "letter", "order", "order_error"]
    assert [text and json.loads(text) for text in found["order"].to_pylist()] == [orders[0], None, None, orders[1]]


def test_a_text_that_has_no_room_is_its_rows_error(nano):
    data = frame_of("pyarrow").set_column(1, "text", [[TEXTS[0], "word " * 5000, TEXTS[1], "x"]])
    errors = guided.extract(nano, data, SCHEMA, batch_size=2)["error"].to_pylist()
    assert [error is None for error in errors] == [True, False, True, True] and "room" in errors[1]
    with pytest.raises(GuidedError, match="room"):
        guided.extract(nano, data["text"].to_pylist(), SCHEMA)


def test_what_is_refused(nano):
    data = frame_of("pyarrow")
    with pytest.raises(UnsupportedError, match="has a column 'n' already"):
        guided.extract(nano, data, {**SCHEMA, "properties": {"n": True}, "required": []}, column="letter")
    with pytest.raises(UnsupportedError, match="members that it does not declare"):
        guided.extract(nano, data, {**SCHEMA, "additionalProperties": True}, column="letter")
    with pytest.raises(GuidedError, match="no column 'text'"):
        guided.extract(nano, data, SCHEMA)
    with pytest.raises(UnsupportedError, match="several texts for a prompt"):
        guided.extract(nano, TEXTS, SCHEMA, sampler=guided.infer.smc)
    with pytest.raises(UnsupportedError, match="only a data frame has columns"):
        guided.extract(nano, TEXTS, SCHEMA, into="x")
    with pytest.raises(GuidedError, match="empty"):
        guided.extract(nano, [TEXTS[0], ""], SCHEMA)
    with pytest.raises(TypeError, match="neither a text"):
        guided.extract(nano, [1], SCHEMA)
