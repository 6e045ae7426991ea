"""Results as JSON, CSV, Arrow and Parquet."""

from __future__ import annotations

import csv
import io
import json
from datetime import date
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pytest

from guided.errors import GuidedError
from guided.grammar.sql import QueryResult
from guided.grammar.sql.result_files import ResultFormat, as_data, csv_text, format_of, json_text, write_result

RESULT = QueryResult(
    ("a", "b", "a", "mixed"),
    ((1, 'x,"y"\nz', date(2020, 1, 2), 1), (None, "é", None, "two"), (2**53, "", date(1, 1, 1), b"\x00\xff")),
    True,
    0.25,
)


def test_values_as_data() -> None:
    values = [
        Decimal("1.50"),
        Decimal("0.12345678901234567890"),
        float("inf"),
        b"\x01",
        memoryview(b"\x02"),
        True,
        None,
    ]
    assert as_data(values) == [1.5, "0.12345678901234567890", "inf", "01", "02", True, None]
    assert as_data({"k": (date(2020, 1, 2), UUID(int=1))}) == {"k": ["2020-01-02", str(UUID(int=1))]}


def test_json_and_csv() -> None:
    found = json.loads(json_text(RESULT))
    assert found["columns"] == ["a", "b", "a", "mixed"] and found["truncated"] and found["seconds"] == 0.25
    assert found["rows"][2] == [2**53, "", "0001-01-01", "00ff"]
    lines = list(csv.reader(io.StringIO(csv_text(RESULT))))
    assert lines == [["a", "b", "a", "mixed"], ["1", 'x,"y"\nz', "2020-01-02", "1"], ["", "é", "", "two"],
                     [str(2**53), "", "0001-01-01", "00ff"]]  # fmt: skip
    assert csv_text(QueryResult(("a",), (([1, {"b": 2}],),), False, 0.0)) == 'a\n"[1, {""b"": 2}]"\n'


def test_files(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    for form in ResultFormat:
        write_result(RESULT, tmp_path / f"rows.{form.value}", form)
        assert format_of(tmp_path / f"rows.{form.value}") is form
    with pyarrow.OSFile(str(tmp_path / "rows.arrow")) as file:
        read = pyarrow.ipc.open_file(file).read_all()
    assert read.equals(parquet.read_table(tmp_path / "rows.parquet"))
    assert read.column_names == ["a", "b", "a_2", "mixed"]
    assert read.column("a").to_pylist() == [1, None, 2**53] and read.column("a_2").to_pylist()[0] == date(2020, 1, 2)
    assert read.column("mixed").to_pylist() == ["1", "two", "00ff"]
    write_result(QueryResult(("a", "b"), (), False, 0.0), tmp_path / "none.parquet", ResultFormat.PARQUET)
    assert parquet.read_table(tmp_path / "none.parquet").column_names == ["a", "b"]


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(GuidedError, match="cannot be written"):
        write_result(RESULT, tmp_path / "nowhere" / "rows.csv", ResultFormat.CSV)
    with pytest.raises(GuidedError, match="no format"):
        format_of(tmp_path / "rows.xlsx")
