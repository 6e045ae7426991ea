"""Columns of records as arrays of Arrow: the schema decides the type, and what does not fit is refused."""

from __future__ import annotations

import pytest

from guided.errors import UnsupportedError
from guided.reading.arrow import arrow_array, arrow_type
from guided.reading.records import CellKind, RecordColumn

pyarrow = pytest.importorskip("pyarrow")

INTEGER, NUMBER = RecordColumn("n", CellKind.INTEGER), RecordColumn("n", CellKind.NUMBER)


@pytest.mark.parametrize("raws", [[], [None, "null"]])
@pytest.mark.parametrize("kind", CellKind)
@pytest.mark.parametrize("is_list", [False, True])
def test_the_type_does_not_depend_on_values(raws, kind, is_list):
    column = RecordColumn("a", kind, is_list and kind is not CellKind.JSON)
    found = arrow_array(column, raws)
    assert found.type == arrow_type(column) and found.to_pylist() == [None] * len(raws)


def test_values_stay():
    assert arrow_array(INTEGER, ["9223372036854775807", "-9223372036854775808", "2.0"]).to_pylist() == [
        2**63 - 1, -(2**63), 2,
    ]  # fmt: skip
    assert arrow_array(NUMBER, ["0.1", "1e308", "9007199254740993"]).to_pylist() == [0.1, 1e308, 9007199254740992.0]
    assert arrow_array(RecordColumn("t", CellKind.TEXT, True), ['["\\ud83d\\ude00", ""]']).to_pylist() == [["😀", ""]]


@pytest.mark.parametrize(
    ("column", "raw"),
    [
        (INTEGER, "9223372036854775808"),
        (INTEGER, "9" * 5000),
        (INTEGER, "1e400"),
        (NUMBER, "1e400"),
        (RecordColumn("n", CellKind.NUMBER, True), "[1, -1e400]"),
        (RecordColumn("n", CellKind.TEXT), '"\\ud83d"'),
    ],
)
def test_what_does_not_fit_is_refused(column, raw):
    with pytest.raises(UnsupportedError, match=r"does not fit .* \(at the column 'n'\)\. Bound"):
        arrow_array(column, [None, raw])
