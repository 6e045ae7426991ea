"""Running one query against a database, read-only and within bounds."""

from __future__ import annotations

from typing import Any

from guided.errors import GuidedError
from guided.grammar.sql.connection import open_session
from guided.grammar.sql.engines.session import DEFAULT_LIMIT_ROWS, DEFAULT_SECONDS
from guided.grammar.sql.result import QueryResult

__all__ = ["explain_query", "run_query"]


def run_query(
    url_or_engine: str | Any,
    sql: str,
    *,
    limit_rows: int = DEFAULT_LIMIT_ROWS,
    seconds: float = DEFAULT_SECONDS,
    limit_steps: int | None = None,
) -> QueryResult:
    """The column names and the first ``limit_rows`` rows of one SELECT statement.

    Nothing can be written, attached or configured: SQLite and DuckDB files are opened read-only, and SQLite's
    authoriser admits reading alone; PostgreSQL, MySQL and MariaDB get a read-only transaction that is rolled back.  A
    query that takes more than ``seconds`` is stopped where it runs (`LimitError`), and so is one when Ctrl-C is
    pressed; the connection can be used again.  ``limit_steps`` bounds the work on SQLite in instructions of its virtual
    machine, which are the same ones every time.  A statement that fails, writes, or is more than one statement raises
    `GuidedError`.

    What a user may do with functions of the server (``pg_read_file``, ``LOAD_FILE``) is for the server's rights to say:
    connect as one who may read only.
    """
    if limit_rows < 0 or not seconds > 0:
        raise GuidedError(
            f"a query cannot return {limit_rows} rows in {seconds:g} s", remedy="Give at least 0 rows, and some time."
        )
    with open_session(url_or_engine) as session:
        return session.run(sql, limit_rows=limit_rows, seconds=seconds, limit_steps=limit_steps)


def explain_query(url_or_engine: str | Any, sql: str) -> str:
    """How the engine would run a query, in the words of its own EXPLAIN; nothing runs.

    Raises `GuidedError` for what is not one query.
    """
    with open_session(url_or_engine) as session:
        return session.plan(sql)
