"""DuckDB's tables from its own functions, since the inspector of SQLAlchemy's dialect asks for what DuckDB has not."""

from __future__ import annotations

import re
from collections.abc import Sequence

from guided.grammar.sql.catalogues.found import Found, check_schemas
from guided.grammar.sql.engines.session import ReadOnlySession
from guided.grammar.sql.schema import Column, ForeignKey, Table

__all__ = ["read_duckdb"]

_SCHEMAS = """
SELECT schema_name FROM duckdb_schemas() WHERE database_name = current_database() AND NOT internal ORDER BY schema_name
"""
_COLUMNS = """
SELECT schema_name, table_name, column_name, data_type, is_nullable, {generated} FROM duckdb_columns()
WHERE database_name = current_database() AND NOT internal ORDER BY schema_name, table_name, column_index
"""
_VIEWS = "SELECT schema_name, view_name FROM duckdb_views() WHERE database_name = current_database() AND NOT internal"
_KEYS = """
SELECT schema_name, table_name, constraint_type, constraint_column_names, referenced_table, referenced_column_names
FROM duckdb_constraints() WHERE database_name = current_database()
"""
_ENUM = re.compile(r"ENUM\((.*)\)", re.DOTALL)
_LABEL = re.compile(r"'((?:[^']|'')*)'")


def read_duckdb(session: ReadOnlySession, schemas: Sequence[str] | None) -> Found:
    """The tables of the current schema, which is ``main``, and of those that are named."""
    default, version = session.rows("SELECT current_schema(), version()")[0]
    found = Found(default, version=tuple(int(number) for number in re.findall(r"\d+", version)[:3]))
    known = [name for (name,) in session.rows(_SCHEMAS)]
    chosen = [default, *check_schemas(schemas, known, default)]
    if unread := [name for name in known if name not in chosen]:
        found.notes.append(f"schemas that were not asked for are left out: {', '.join(map(repr, unread))}")
    columns: dict[tuple[str, str], list[Column]] = {}
    # DuckDB 1 does not tell.
    told = {row[0] for row in session.rows("DESCRIBE SELECT * FROM duckdb_columns()")}
    generated_or_not = "is_generated" if "is_generated" in told else "false"
    for schema, table, name, declared, nullable, generated in session.rows(_COLUMNS.format(generated=generated_or_not)):
        enum = _ENUM.fullmatch(declared)
        labels = tuple(label.replace("''", "'") for label in _LABEL.findall(enum.group(1))) if enum else ()
        columns.setdefault((schema, table), []).append(
            Column(name, declared, nullable=bool(nullable), generated=bool(generated), labels=labels)
        )
    primary: dict[tuple[str, str], tuple[str, ...]] = {}
    foreign: dict[tuple[str, str], list[ForeignKey]] = {}
    for schema, table, kind, names, other, referred in session.rows(_KEYS):
        if kind == "PRIMARY KEY":
            primary[schema, table] = tuple(names)
        elif kind == "FOREIGN KEY":
            here = None if schema == default else schema
            foreign.setdefault((schema, table), []).append(ForeignKey(tuple(names), other, tuple(referred), here))
    views = {(schema, name) for schema, name in session.rows(_VIEWS)}
    for schema in chosen:
        written = None if schema == default else schema
        for place, listed in columns.items():
            if place[0] != schema:
                continue
            if place in views and (fault := _fault(session, *place)):
                found.leave_out(place[1], fault)
                continue
            keys = tuple(foreign.get(place, ()))
            found.tables.append(Table(place[1], tuple(listed), primary.get(place, ()), keys, written, place in views))
    return found


def _fault(session: ReadOnlySession, schema: str, view: str) -> object | None:
    """Why a view cannot be queried, as when a table of it was dropped."""
    from guided.errors import GuidedError

    try:
        session.prepare(f"SELECT * FROM {session.quoted(schema)}.{session.quoted(view)}")
    except GuidedError as error:
        return error.what
    return None
