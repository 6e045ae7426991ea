"""The tables of MySQL and MariaDB from ``information_schema``, which shows a user what the user may read.

SQLAlchemy's inspector asks for the text of the definition of each table, and some rights do not reach so far.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from guided.grammar.sql.catalogues.found import NO_RIGHT, Found, check_schemas
from guided.grammar.sql.engines.session import ReadOnlySession
from guided.grammar.sql.schema import Column, ForeignKey, NameCase, Table

__all__ = ["read_mysql"]

_OWN = ("information_schema", "mysql", "performance_schema", "sys")
_TABLES = """
SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = {schema}
ORDER BY table_type <> 'BASE TABLE', table_name
"""
_COLUMNS = """
SELECT table_name, column_name, column_type, is_nullable = 'YES', extra, privileges FROM information_schema.columns
WHERE table_schema = {schema} ORDER BY table_name, ordinal_position
"""
_KEYS = """
SELECT table_name, constraint_name, column_name, referenced_table_schema, referenced_table_name, referenced_column_name
FROM information_schema.key_column_usage WHERE table_schema = {schema}
ORDER BY table_name, constraint_name, ordinal_position
"""
_SCHEMAS = "SELECT schema_name FROM information_schema.schemata ORDER BY schema_name"
_LABEL = re.compile(r"'((?:[^']|'')*)'")


def read_mysql(session: ReadOnlySession, schemas: Sequence[str] | None) -> Found:
    """The tables of the URL's database, which is the default schema, and of others that are named."""
    default, version, modes, lowered = session.rows(
        "SELECT DATABASE(), VERSION(), @@SESSION.sql_mode, @@lower_case_table_names"
    )[0]
    found = Found(
        default,
        table_names=NameCase.EXACT if lowered == 0 else NameCase.IGNORED,
        version=tuple(int(number) for number in re.findall(r"\d+", version)[:3]),
        modes=tuple(sorted(name for name in modes.split(",") if name)),
    )
    known = [name for (name,) in session.rows(_SCHEMAS) if name not in _OWN]
    for schema in [*([None] if default is not None else []), *check_schemas(schemas, known, default)]:
        _read(session, schema, default if schema is None else schema, found)
    return found


def _read(session: ReadOnlySession, schema: str | None, name: str, found: Found) -> None:
    literal = "_utf8mb4 0x" + name.encode().hex() if name else "''"
    primary, foreign = _keys(session, literal, found.default_schema)
    columns: dict[str, list[Column]] = {}
    denied: dict[str, list[str]] = {}
    for table, column, declared, nullable, extra, privileges in session.rows(_COLUMNS.format(schema=literal)):
        if "select" not in privileges.lower():
            denied.setdefault(table, []).append(column)
            continue
        words = declared if isinstance(declared, str) else declared.decode()
        columns.setdefault(table, []).append(
            Column(
                column,
                words,
                nullable=bool(nullable),
                generated="GENERATED" in extra.upper().replace("DEFAULT_GENERATED", ""),
                hidden="INVISIBLE" in extra.upper(),
                labels=tuple(text.replace("''", "'") for text in _LABEL.findall(words) if words.startswith("enum(")),
            )
        )
    for table, kind in session.rows(_TABLES.format(schema=literal)):
        view = kind.upper().endswith("VIEW")
        if not columns.get(table):
            found.leave_out(table, NO_RIGHT if table in denied else "its columns cannot be read")
            continue
        if view and (fault := _fault(session, schema, table)):
            found.leave_out(table, fault)
            continue
        here = {column.name for column in columns[table]}
        own = tuple(primary.get(table, ()))
        keys = tuple(key for key in foreign.get(table, ()) if here.issuperset(key.columns))
        found.tables.append(
            Table(table, tuple(columns[table]), own if here.issuperset(own) else (), keys, schema, view)
        )
        if table in denied:
            names = ", ".join(map(repr, denied[table]))
            found.notes.append(f"columns of table {table!r} are left out, this user may not read them: {names}")


def _keys(
    session: ReadOnlySession, literal: str, default: str | None
) -> tuple[dict[str, list[str]], dict[str, list[ForeignKey]]]:
    """Primary and foreign keys by table."""
    primary: dict[str, list[str]] = {}
    pairs: dict[tuple[str, str, str, str], list[tuple[str, str]]] = {}
    for table, key, column, schema, other, referred in session.rows(_KEYS.format(schema=literal)):
        if other is not None:
            pairs.setdefault((table, key, schema, other), []).append((column, referred))
        elif key == "PRIMARY":
            primary.setdefault(table, []).append(column)
    foreign: dict[str, list[ForeignKey]] = {}
    for (table, _, schema, other), columns in pairs.items():
        own, theirs = zip(*columns, strict=True)
        foreign.setdefault(table, []).append(ForeignKey(own, other, theirs, None if schema == default else schema))
    return primary, foreign


def _fault(session: ReadOnlySession, schema: str | None, view: str) -> object | None:
    """Why a view cannot be queried, as when a table of it was dropped."""
    import sqlalchemy

    source = ".".join(session.quoted(part) for part in (schema, view) if part is not None)
    try:
        session.rows(f"SELECT 1 FROM {source} LIMIT 0")
    except sqlalchemy.exc.DBAPIError as error:
        return error.orig.args[-1] if error.orig is not None and error.orig.args else error
    return None
