"""The distinct values of text columns, where there are few enough of them to know them all."""

from __future__ import annotations

from dataclasses import replace

from guided.grammar.sql.engines.session import ReadOnlySession
from guided.grammar.sql.schema import Column, ColumnKind, Table

__all__ = ["sampled"]

MAX_VALUE_CHARACTERS = 200
"""Longer texts are documents, not values that a question names."""
SCANNED_ROWS = 20_000
ROWS_PER_VALUE = 10
"""Rows of a table that are looked at: the first number, or for many values so many for each of them."""

_TEXT_TYPES = ("char", "text", "string", "citext", "name")
"""What the declared type of a column of strings has in it, in the engines that know dates from strings."""


def sampled(session: ReadOnlySession, table: Table, limit: int, notes: list[str]) -> Table:
    """The table with the values of those text columns that have at most ``limit`` distinct ones.

    Columns that keep none because there are more are named in ``notes``.
    """
    source = ".".join(session.quoted(part) for part in (table.schema, table.name) if part is not None)
    rows = max(SCANNED_ROWS, ROWS_PER_VALUE * limit)
    chosen = [column for column in table.columns if _is_text(session, column) or column.labels]
    if not chosen:
        return table
    counted = session.rows(f"SELECT count(*) FROM (SELECT 1 AS one FROM {source} LIMIT {rows + 1}) AS counted")
    if int(counted[0][0]) > rows:
        notes.append(f"values of table {table.name!r} were not read, it has more than {rows:,} rows")
        chosen = [column for column in chosen if column.labels]
    columns = {column.name: _sampled(session, source, column, limit, notes) for column in chosen}
    return replace(table, columns=tuple(columns.get(column.name, column) for column in table.columns))


def _is_text(session: ReadOnlySession, column: Column) -> bool:
    if session.dialect == "sqlite":
        return column.kind is ColumnKind.TEXT
    declared = column.type.lower().split("(")[0].removeprefix("long").removeprefix("medium").removeprefix("tiny")
    return "[" not in column.type and any(declared.startswith(mark) for mark in (*_TEXT_TYPES, "varchar", "bpchar"))


def _sampled(session: ReadOnlySession, source: str, column: Column, limit: int, notes: list[str]) -> Column:
    if column.labels:
        return replace(column, values=column.labels) if len(column.labels) <= limit else column
    rows = session.rows(_distinct(session, source, session.quoted(column.name), limit))
    if len(rows) > limit:
        return column
    encoding = "UTF-8"
    if session.dialect == "sqlite":
        encoding = session.rows("PRAGMA encoding")[0][0] or encoding
    values = []
    for (data,) in rows:
        # Values are compared as bytes, so that text which is no UTF-8 is seen and the column left free.
        try:
            value = data if isinstance(data, str) else bytes(data or b"").decode(encoding)
        except UnicodeDecodeError:
            return column
        if len(value) > MAX_VALUE_CHARACTERS or "\0" in value:
            return column
        values.append(value)
    return replace(column, values=tuple(sorted(values)))


def _distinct(session: ReadOnlySession, source: str, name: str, limit: int) -> str:
    """One more than the wanted number of values, to see that there are too many."""
    if session.dialect == "sqlite":
        return f"SELECT DISTINCT CAST({name} AS BLOB) FROM {source} WHERE typeof({name}) = 'text' LIMIT {limit + 1}"
    if session.dialect in ("mysql", "mariadb"):
        # Collations merge strings that differ.
        same = f"CAST(CONVERT({name} USING utf8mb4) AS BINARY)"
        return f"SELECT DISTINCT {same} FROM {source} WHERE {name} IS NOT NULL LIMIT {limit + 1}"
    return f"SELECT DISTINCT CAST({name} AS VARCHAR) FROM {source} WHERE {name} IS NOT NULL LIMIT {limit + 1}"
