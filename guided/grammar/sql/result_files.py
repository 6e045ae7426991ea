"""Results written down: JSON data, CSV, and files of Arrow and Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from math import isfinite
from pathlib import Path
from typing import Any

from guided.errors import GuidedError
from guided.grammar.sql.result import QueryResult

__all__ = ["ResultFormat", "as_data", "csv_text", "format_of", "json_text", "write_result"]


class ResultFormat(str, Enum):
    """How a result is written; the values are also files' suffixes."""

    JSON = "json"
    CSV = "csv"
    ARROW = "arrow"
    PARQUET = "parquet"


def format_of(path: Path) -> ResultFormat:
    """The format that a file's suffix names; raises `GuidedError` for another suffix."""
    try:
        return ResultFormat(path.suffix.lower().removeprefix("."))
    except ValueError:
        raise GuidedError(
            f"no format is named by {path.suffix!r}",
            where=str(path),
            remedy="Name a file that ends with .json, .csv, .arrow or .parquet, or say the format.",
        ) from None


def as_data(value: Any) -> Any:
    """A value as JSON data: bytes in hexadecimal, dates in ISO 8601; a number that is no double exactly is a string."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, Decimal):
        return float(value) if value.is_finite() and Decimal(repr(float(value))) == value else str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if isinstance(value, (list, tuple)):
        return [as_data(each) for each in value]
    if isinstance(value, dict):
        return {str(key): as_data(each) for key, each in value.items()}
    iso: Callable[[], str] | None = getattr(value, "isoformat", None)
    return iso() if iso is not None else str(value)


def json_text(result: QueryResult) -> str:
    """One object with ``columns``, ``rows``, ``truncated`` and ``seconds``."""
    record = {
        "columns": list(result.columns),
        "rows": [as_data(row) for row in result.rows],
        "truncated": result.truncated,
        "seconds": round(result.seconds, 6),
    }
    return json.dumps(record, ensure_ascii=False)


def csv_text(result: QueryResult) -> str:
    """A line of columns' names and a line for each row; NULL is empty, lists and objects are JSON."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(result.columns)
    for row in result.rows:
        data = [as_data(value) for value in row]
        cells = ["" if value is None else value for value in data]
        writer.writerow(
            [json.dumps(cell, ensure_ascii=False) if isinstance(cell, (list, dict)) else cell for cell in cells]
        )
    return out.getvalue()


def write_result(result: QueryResult, path: Path, form: ResultFormat) -> None:
    """Write a result to a file; raises `GuidedError` where that cannot be done."""
    try:
        if form is ResultFormat.JSON:
            path.write_text(json_text(result) + "\n", "utf-8")
        elif form is ResultFormat.CSV:
            path.write_text(csv_text(result), "utf-8", newline="")
        else:
            _write_arrow(result, path, form)
    except OSError as error:
        raise GuidedError(
            f"the result cannot be written: {error.strerror or error}", where=str(path), remedy="Name another file."
        ) from error


def _write_arrow(result: QueryResult, path: Path, form: ResultFormat) -> None:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise GuidedError(
            f"writing {form.value} needs pyarrow, which is not installed",
            remedy="Run: pip install 'guided-decoding[arrow]'",
        ) from error
    columns = list(zip(*result.rows, strict=True)) if result.rows else [()] * len(result.columns)
    table = pyarrow.Table.from_arrays([_array(pyarrow, column) for column in columns], _distinct(result.columns))
    if form is ResultFormat.PARQUET:
        parquet.write_table(table, path)
        return
    with pyarrow.OSFile(str(path), "wb") as file, pyarrow.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def _array(pyarrow: Any, values: tuple[Any, ...]) -> Any:
    """A column of the type that its values have; of strings where they have several, as SQLite allows."""
    try:
        return pyarrow.array(values)
    except (pyarrow.ArrowException, TypeError, ValueError, OverflowError):
        texts = [as_data(value) for value in values]
        return pyarrow.array([None if text is None else str(text) for text in texts])


def _distinct(names: tuple[str, ...]) -> list[str]:
    """The columns' names, numbered where one comes again: readers of Parquet want them distinct."""
    found: list[str] = []
    for name in names:
        other, number = name, 2
        while other in found:
            other, number = f"{name}_{number}", number + 1
        found.append(other)
    return found
