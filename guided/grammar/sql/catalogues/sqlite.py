"""SQLite's tables, one by one: its catalogue is in the same process, and a broken view must spoil no other."""

from __future__ import annotations

import sqlite3
import warnings
from collections.abc import Sequence
from typing import Any

from guided.grammar.sql.catalogues.found import Found, check_schemas
from guided.grammar.sql.catalogues.inspected import foreign_keys
from guided.grammar.sql.engines.session import ReadOnlySession
from guided.grammar.sql.schema import Column, Table

__all__ = ["read_sqlite"]

_MAIN = "main"
_GENERATED = frozenset({2, 3})
"""Values of ``hidden`` in ``PRAGMA table_xinfo``: virtual and stored; 1 is a hidden column of a virtual table."""


def read_sqlite(session: ReadOnlySession, schemas: Sequence[str] | None) -> Found:
    """The tables of ``main`` and of attached databases."""
    import sqlalchemy

    inspector = sqlalchemy.inspect(session.connection)
    found = Found(_MAIN, version=sqlite3.sqlite_version_info)
    for schema in (None, *check_schemas(schemas, inspector.get_schema_names(), _MAIN)):
        views = set(inspector.get_view_names(schema))
        for name in [*inspector.get_table_names(schema), *inspector.get_view_names(schema)]:
            try:
                found.tables.append(_table(session, inspector, name, schema, view=name in views))
            except (sqlalchemy.exc.DatabaseError, sqlalchemy.exc.NoSuchTableError) as error:
                found.leave_out(name, getattr(error, "orig", None) or error)
    return found


def _table(session: ReadOnlySession, inspector: Any, name: str, schema: str | None, *, view: bool) -> Table:
    prefix = f"{session.quoted(schema)}." if schema is not None else ""
    columns = tuple(
        Column(column, declared or "", nullable=not not_null, generated=hidden in _GENERATED, hidden=hidden == 1)
        for _, column, declared, not_null, _, _, hidden in session.rows(
            f"PRAGMA {prefix}table_xinfo({session.quoted(name)})"
        )
    )
    # What can be described may still fail when it is queried, as a view of a dropped table does.
    names = ", ".join(session.quoted(column.name) for column in columns)
    session.rows(f"SELECT {names} FROM {prefix}{session.quoted(name)} LIMIT 0")
    with warnings.catch_warnings():
        # SQLAlchemy warns of type names it does not know, and takes their affinity.
        warnings.simplefilter("ignore")
        keys = foreign_keys(inspector.get_foreign_keys(name, schema), schema)
        primary = tuple(inspector.get_pk_constraint(name, schema)["constrained_columns"])
    return Table(name, columns, primary, keys, schema, view, _has_rowid(session, name, schema))


def _has_rowid(session: ReadOnlySession, name: str, schema: str | None) -> bool:
    """Is it a table with numbered rows?  Not known before SQLite 3.37."""
    if sqlite3.sqlite_version_info < (3, 37):
        return False
    prefix = f"{session.quoted(schema or _MAIN)}."
    rows = session.rows(f"PRAGMA {prefix}table_list({session.quoted(name)})")
    return any(kind == "table" and not without for _, _, kind, _, without, _ in rows)
