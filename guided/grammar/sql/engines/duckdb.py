"""DuckDB: a file that is open for reading only, one statement of the kind SELECT, and an interrupt to stop it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from guided.errors import GuidedError
from guided.grammar.sql.engines.session import ReadOnlySession, failed, more_than_reading, taken
from guided.grammar.sql.result import QueryResult
from guided.grammar.sql.waiting import LostConnectionError, call_within

__all__ = ["DuckdbSession"]

Made = TypeVar("Made")

_PLAN_SECONDS = 5.0


class DuckdbSession(ReadOnlySession):
    """A session on DuckDB; each query is a read-only transaction of its own, on a cursor of its own.

    What an engine of the user has written and not committed is not seen.
    """

    dialect = "duckdb"

    def run(self, sql: str, *, limit_rows: int, seconds: float, limit_steps: int | None = None) -> QueryResult:
        """Fetches no more rows than wanted."""
        began = time.monotonic()
        with self._cursor() as cursor:

            def work() -> QueryResult:
                cursor.execute(_only(cursor, sql))
                columns = tuple(column[0] for column in cursor.description)
                rows = cursor.fetchmany(limit_rows + 1)
                return taken(columns, rows, limit_rows, time.monotonic() - began)

            return _within(cursor, work, seconds)

    def plan(self, sql: str) -> str:
        """The drawing of ``EXPLAIN``."""
        with self._cursor() as cursor:

            def work() -> str:
                _only(cursor, sql)
                return "\n".join(str(row[-1]).rstrip("\n") for row in cursor.execute(f"EXPLAIN {sql}").fetchall())

            return _within(cursor, work, _PLAN_SECONDS)

    def prepare(self, sql: str) -> None:
        """By ``PREPARE``."""
        with self._cursor() as cursor:

            def work() -> None:
                _only(cursor, sql)
                cursor.execute(f"PREPARE guided_query AS {sql}")

            _within(cursor, work, _PLAN_SECONDS)

    @contextmanager
    def _cursor(self) -> Iterator[Any]:
        # DuckDB calls a second connection to the same database a duplicate.
        cursor = self.driver.duplicate()
        try:
            cursor.execute("BEGIN TRANSACTION READ ONLY")
            yield cursor
        finally:
            cursor.close()


def _only(cursor: Any, sql: str) -> Any:
    """The one statement of a text."""
    import duckdb

    found = cursor.extract_statements(sql)
    if not found:
        raise GuidedError("this is not a query", remedy="Give one SELECT statement.")
    if len(found) > 1:
        raise GuidedError("this is more than one statement", remedy="Give one SELECT statement.")
    if found[0].type != duckdb.StatementType.SELECT:
        raise more_than_reading()
    return found[0]


def _within(cursor: Any, work: Callable[[], Made], seconds: float) -> Made:
    import duckdb

    try:
        return call_within(work, cursor.interrupt, seconds)
    except LostConnectionError:
        raise
    except (duckdb.Error, RuntimeError, ValueError) as error:
        raise failed(str(error).strip()) from error
