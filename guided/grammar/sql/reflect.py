"""Reading a `DatabaseSchema` from a live SQLite database, by SQLAlchemy reflection and read-only."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from guided.errors import GuidedError, UnsatisfiableError
from guided.grammar.sql.connection import connect_read_only, require_sqlalchemy
from guided.grammar.sql.schema import Column, ColumnKind, DatabaseSchema, ForeignKey, Table

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

__all__ = ["reflect"]

MAX_VALUE_CHARACTERS = 200
"""Longer texts are documents, not values that a question names."""
SCANNED_ROWS = 20_000
"""Rows of a table that are looked at for distinct values."""


def reflect(
    url_or_engine: str | Any, *, sample_values: int = 0, schemas: Sequence[str] | None = None
) -> DatabaseSchema:
    """The tables and views of a database, with columns, keys and, on request, values of text columns.

    ``sample_values``: the most distinct values a text column may have for them to be read into `Column.values`; a
    column with more keeps none, because a question may then name one that was not seen.  ``schemas``: names of
    attached databases to read as well as ``main`` (SQLite has others only on an engine that has attached them).

    A table that cannot be read (a view of a dropped table, a virtual table whose module is missing) is left out and
    named in ``notes``.  Raises `GuidedError` for a missing, broken or foreign file, `UnsatisfiableError` for one
    without tables; never creates or changes anything.
    """
    sqlalchemy = require_sqlalchemy()
    if sample_values < 0:
        raise GuidedError(f"sample_values is {sample_values}", remedy="Give 0 or more.")
    tables: list[Table] = []
    notes: list[str] = []
    with connect_read_only(url_or_engine) as connection:
        inspector = sqlalchemy.inspect(connection)
        known = inspector.get_schema_names()
        for schema in (None, *(name for name in schemas or () if name != "main")):
            if schema is not None and schema not in known:
                raise GuidedError(
                    f"there is no schema {schema!r}", remedy=f"Its schemas are: {', '.join(map(repr, known))}."
                )
            for name in [*inspector.get_table_names(schema), *inspector.get_view_names(schema)]:
                try:
                    tables.append(_table(connection, inspector, name, schema, sample_values))
                except (sqlalchemy.exc.DatabaseError, sqlalchemy.exc.NoSuchTableError) as error:
                    notes.append(f"table {name!r} is left out: {getattr(error, 'orig', None) or error}")
        where = str(connection.engine.url.database or "")
    if not tables:
        raise UnsatisfiableError(
            "; ".join(["no table of the database can be read", *notes] if notes else ["the database has no tables"]),
            where=where,
            remedy="Create some, or name another database.",
        )
    return DatabaseSchema(tuple(tables), "sqlite", tuple(notes))


def _table(connection: Connection, inspector: Any, name: str, schema: str | None, sample_values: int) -> Table:
    with warnings.catch_warnings():
        # SQLAlchemy warns of type names it does not know; their kind is decided from the declared words below.
        warnings.simplefilter("ignore")
        found = inspector.get_columns(name, schema)
        keys = inspector.get_foreign_keys(name, schema)
        primary = inspector.get_pk_constraint(name, schema)["constrained_columns"]
    source = ".".join(_quoted(part) for part in (schema, name) if part is not None)
    # The types of SQLAlchemy are affinities already; PRAGMA keeps the words of CREATE TABLE.
    prefix = f"{_quoted(schema)}." if schema is not None else ""
    rows = connection.exec_driver_sql(f"PRAGMA {prefix}table_xinfo({_quoted(name)})").fetchall()
    declared = {row[1]: row[2] or "" for row in rows}
    # What SQLAlchemy reads may still fail when it is queried, as a view of a dropped table does.
    names = ", ".join(_quoted(column["name"]) for column in found)
    connection.exec_driver_sql(f"SELECT {names} FROM {source} LIMIT 0")
    columns = tuple(Column(column["name"], declared.get(column["name"], "")) for column in found)
    if sample_values:
        columns = tuple(_sampled(connection, source, column, sample_values) for column in columns)
    foreign = tuple(
        ForeignKey(tuple(key["constrained_columns"]), key["referred_table"], tuple(key["referred_columns"]))
        for key in keys
        if key["referred_columns"]
    )
    return Table(name, columns, tuple(primary), foreign, schema)


def _sampled(connection: Connection, source: str, column: Column, limit: int) -> Column:
    if column.kind is not ColumnKind.TEXT:
        return column
    name = _quoted(column.name)
    # Values are compared as bytes, so that text which is no UTF-8 is seen and the column left free.
    rows = connection.exec_driver_sql(
        f"SELECT DISTINCT CAST(value AS BLOB), length(value) FROM "
        f"(SELECT {name} AS value, typeof({name}) AS type FROM {source} LIMIT {SCANNED_ROWS + 1}) "
        f"WHERE type = 'text' LIMIT {limit + 1}"
    ).fetchall()
    counted = f"SELECT count(*) FROM (SELECT 1 FROM {source} LIMIT {SCANNED_ROWS + 1})"
    if len(rows) > limit or (connection.exec_driver_sql(counted).scalar() or 0) > SCANNED_ROWS:
        return column
    encoding = connection.exec_driver_sql("PRAGMA encoding").scalar() or "UTF-8"
    values = []
    for data, characters in rows:
        try:
            value = bytes(data or b"").decode(encoding)
        except UnicodeDecodeError:
            return column
        if characters > MAX_VALUE_CHARACTERS or "\0" in value:
            return column
        values.append(value)
    return replace(column, values=tuple(sorted(values)))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
