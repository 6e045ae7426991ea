"""Reading a `DatabaseSchema` from a live database, read-only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from guided.errors import GuidedError, UnsatisfiableError
from guided.grammar.sql.catalogues.found import NO_RIGHT, NO_USE, Found
from guided.grammar.sql.connection import open_session, require_sqlalchemy
from guided.grammar.sql.connection_errors import without_password
from guided.grammar.sql.engines.session import ReadOnlySession
from guided.grammar.sql.sampling import sampled
from guided.grammar.sql.schema import DatabaseSchema

__all__ = ["MAX_SAMPLE_VALUES", "reflect"]

MAX_SAMPLE_VALUES = 100_000


def reflect(
    url_or_engine: str | Any, *, sample_values: int = 0, schemas: Sequence[str] | None = None
) -> DatabaseSchema:
    """The tables and views of a database, with columns, keys and, on request, values of text columns.

    ``url_or_engine``: a URL of SQLite, PostgreSQL, MySQL, MariaDB or DuckDB, the path of a SQLite or DuckDB file, or
    an SQLAlchemy engine.  ``sample_values``: the most distinct values a text column may have for them to be read into
    `Column.values` (at most 100,000); a column with more keeps none, because a question may then name one that was not
    seen.  ``schemas``: names of schemas to read as well as the default one, "*" for all (SQLite has others only on an
    engine that has attached them).

    A table that cannot be read (a view of a dropped table, a virtual table whose module is missing, no right to) is
    left out and named in ``notes``.  Raises `GuidedError` for a database that is missing, broken, foreign, out of reach
    or closed to this user, `UnsatisfiableError` for one without tables; never creates or changes anything.
    """
    require_sqlalchemy()
    if not 0 <= sample_values <= MAX_SAMPLE_VALUES:
        raise GuidedError(f"sample_values is {sample_values}", remedy=f"Give 0 to {MAX_SAMPLE_VALUES:,}.")
    with open_session(url_or_engine) as session:
        found = _read(session, schemas)
        tables = found.tables
        if sample_values:
            tables = [sampled(session, table, sample_values, found.notes) for table in tables]
        where = without_password(session.connection.engine.url)
        dialect = session.dialect
    notes = found.notes
    if not tables:
        raise UnsatisfiableError(
            "; ".join(["no table of the database can be read", *notes] if notes else ["the database has no tables"]),
            where=where,
            remedy=_remedy(notes),
        )
    return DatabaseSchema(
        tuple(tables),
        dialect,
        tuple(notes),
        found.default_schema,
        found.table_names,
        found.column_names,
        found.version,
        found.modes,
    )


def _remedy(notes: Sequence[str]) -> str:
    """What to do where no table can be read."""
    if any(note.endswith(NO_USE) for note in notes):
        return "Have it granted: GRANT USAGE ON SCHEMA .. TO .. and GRANT SELECT ON .. TO .."
    if any(note.endswith(NO_RIGHT) for note in notes):
        return "Have it granted: GRANT SELECT ON .. TO .."
    return "Create some, or name another database or schema."


def _read(session: ReadOnlySession, schemas: Sequence[str] | None) -> Found:
    if session.dialect == "postgresql":
        from guided.grammar.sql.catalogues.postgresql import read_postgresql

        return read_postgresql(session, schemas)
    if session.dialect in ("mysql", "mariadb"):
        from guided.grammar.sql.catalogues.mysql import read_mysql

        return read_mysql(session, schemas)
    if session.dialect == "duckdb":
        from guided.grammar.sql.catalogues.duckdb import read_duckdb

        return read_duckdb(session, schemas)
    from guided.grammar.sql.catalogues.sqlite import read_sqlite

    return read_sqlite(session, schemas)
