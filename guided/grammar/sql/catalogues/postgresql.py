"""PostgreSQL's tables: names and keys by SQLAlchemy's inspector, types in the server's own words, and rights."""

from __future__ import annotations

from collections.abc import Sequence

from guided.grammar.sql.catalogues.found import ALL_SCHEMAS, NO_RIGHT, NO_USE, Found, check_schemas
from guided.grammar.sql.catalogues.inspected import inspect_schema
from guided.grammar.sql.engines.session import ReadOnlySession
from guided.grammar.sql.schema import Column, NameCase

__all__ = ["read_postgresql"]

_COLUMNS = """
SELECT n.nspname, c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attgenerated <> '',
       c.relkind IN ('v', 'm'), a.attnotnull OR (t.typtype = 'd' AND t.typnotnull),
       has_column_privilege(c.oid, a.attnum, 'SELECT')
FROM pg_catalog.pg_attribute AS a
JOIN pg_catalog.pg_class AS c ON c.oid = a.attrelid
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_type AS t ON t.oid = a.atttypid
WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm') AND a.attnum > 0 AND NOT a.attisdropped
  AND has_schema_privilege(n.oid, 'USAGE') AND n.nspname NOT IN ('pg_catalog', 'information_schema')
ORDER BY n.nspname, c.relname, a.attnum
"""
_SCHEMAS = """
SELECT nspname, has_schema_privilege(oid, 'USAGE') FROM pg_catalog.pg_namespace
WHERE nspname NOT LIKE 'pg\\_%' AND nspname <> 'information_schema'
ORDER BY nspname
"""


def read_postgresql(session: ReadOnlySession, schemas: Sequence[str] | None) -> Found:
    """The tables of the first schema of the search path, and of those that are named."""
    import sqlalchemy

    inspector = sqlalchemy.inspect(session.connection)
    default = session.rows("SELECT current_schema()")[0][0]
    number = int(session.rows("SHOW server_version_num")[0][0])
    found = Found(default, table_names=NameCase.LOWERED, column_names=NameCase.LOWERED, version=divmod(number, 10_000))
    every = session.rows(_SCHEMAS)
    known = [name for name, usable in every if usable]
    closed = [name for name, usable in every if not usable]
    asked = [name for name in schemas or () if name not in closed]
    for name in closed:
        if default is None or name in (schemas or ()) or ALL_SCHEMAS in asked:
            found.notes.append(f"schema {name!r} is left out: {NO_USE}")
    chosen = [*([None] if default is not None else []), *check_schemas(asked, known, default)]
    unread = [name for name in known if name not in chosen and name != default]
    if unread:
        found.notes.append(f"schemas that were not asked for are left out: {', '.join(map(repr, unread))}")
    rows = session.rows(_COLUMNS)
    for schema in chosen:
        inspected = inspect_schema(inspector, schema)
        labels = {
            (name, column["name"]): tuple(getattr(column["type"], "enums", None) or ())
            for name, columns in inspected.columns.items()
            for column in columns
        }
        tables: dict[str, list[Column]] = {}
        views: set[str] = set()
        denied: dict[str, list[str]] = {}
        for here, table, name, declared, generated, view, not_null, readable in rows:
            if here != (default if schema is None else schema):
                continue
            tables.setdefault(table, [])
            if view:
                views.add(table)
            if not readable:
                denied.setdefault(table, []).append(name)
                continue
            tables[table].append(
                Column(
                    name,
                    declared,
                    nullable=not not_null,
                    generated=generated,
                    labels=labels.get((table, name), ()),
                )
            )
        for table, listed in tables.items():
            if listed:
                found.tables.append(inspected.table(table, tuple(listed), schema, view=table in views))
                if table in denied:
                    columns = ", ".join(map(repr, denied[table]))
                    found.notes.append(
                        f"columns of table {table!r} are left out, this user may not read them: {columns}"
                    )
            else:
                found.leave_out(table, NO_RIGHT if table in denied else "it has no columns")
    return found
