"""Columns of records as arrays of Arrow; the only file of this package that needs pyarrow."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from guided.errors import GuidedError, UnsupportedError
from guided.reading.records import CellKind, RecordColumn

__all__ = ["arrow_array", "arrow_type", "pyarrow_for"]


def pyarrow_for(what: str) -> Any:
    """The library; raises `GuidedError` where it is not installed, saying ``what`` needs it."""
    try:
        import pyarrow
    except ImportError as error:
        raise GuidedError(
            f"{what} needs pyarrow, which is not installed", remedy="Run: pip install 'guided-decoding[arrow]'"
        ) from error
    return pyarrow


def arrow_type(column: RecordColumn) -> Any:
    """The type of a column's array: text, 64-bit integers, doubles, booleans, or lists of these."""
    pyarrow = pyarrow_for("a column of Arrow")
    made = {
        CellKind.TEXT: pyarrow.string(),
        CellKind.INTEGER: pyarrow.int64(),
        CellKind.NUMBER: pyarrow.float64(),
        CellKind.BOOLEAN: pyarrow.bool_(),
        CellKind.JSON: pyarrow.string(),
    }[column.kind]
    return pyarrow.list_(made) if column.is_list else made


def arrow_array(column: RecordColumn, raws: Sequence[str | None]) -> Any:
    """The array of a column from its members' JSON texts.

    Raises `UnsupportedError` where a number does not fit the type, or a text has half a surrogate pair, which is no
    UTF-8.

    >>> arrow_array(RecordColumn("age", CellKind.INTEGER), ["36", None]).to_pylist()
    [36, None]
    """
    pyarrow = pyarrow_for("a column of Arrow")
    try:
        values = [column.value(raw) for raw in raws]
        for value in values:
            for each in value if column.is_list and value is not None else [value]:
                if isinstance(each, float) and not isfinite(each):
                    raise OverflowError("a number beyond doubles")
        return pyarrow.array(values, arrow_type(column))
    except (ValueError, OverflowError) as error:
        # ArrowInvalid is a ValueError, and so are UnicodeEncodeError and what Python says of too many digits.
        raise UnsupportedError(
            f"a value does not fit the column's type {arrow_type(column)}: {error}",
            where=f"the column {column.name!r}",
            remedy="Bound the numbers in the schema, write CSV, or name one column for the JSON texts (into).",
        ) from None
