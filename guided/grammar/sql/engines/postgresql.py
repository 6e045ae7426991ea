"""PostgreSQL: a read-only transaction, and a cursor declared for the query, which takes nothing but one query."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from guided.errors import GuidedError
from guided.grammar.sql.engines.session import ReadOnlySession, failed, more_than_reading, taken
from guided.grammar.sql.result import QueryResult
from guided.grammar.sql.waiting import LostConnectionError, call_within, out_of_time

__all__ = ["PostgresqlSession"]

Made = TypeVar("Made")

_CURSOR = "guided_query"
_BACKSTOP_SECONDS = 5.0
"""By how much the server's own time-out is longer than ours: it stands in where this process is killed."""
_DATA_EXCEPTIONS = "22"
"""Class of the errors of values (a division by zero), which the planner raises for what it computes beforehand."""


class PostgresqlSession(ReadOnlySession):
    """A session on PostgreSQL, by psycopg; each query is a transaction of its own, rolled back."""

    dialect = "postgresql"

    @contextmanager
    def reading(self) -> Iterator[None]:
        """With transactions that are read-only, whatever they were before."""
        driver = self.driver
        driver.rollback()
        before = driver.autocommit, driver.read_only
        driver.autocommit, driver.read_only = False, True
        try:
            yield
        finally:
            if not driver.closed:
                driver.rollback()
                driver.autocommit, driver.read_only = before

    def run(self, sql: str, *, limit_rows: int, seconds: float, limit_steps: int | None = None) -> QueryResult:
        """Fetches no more rows than wanted."""
        began = time.monotonic()

        def work() -> QueryResult:
            with self.driver.cursor(name=_CURSOR) as cursor:
                cursor.execute(sql)
                columns = tuple(column.name for column in cursor.description)
                rows = cursor.fetchmany(limit_rows + 1)
            return taken(columns, rows, limit_rows, time.monotonic() - began)

        return self._within(work, seconds)

    def plan(self, sql: str) -> str:
        """The lines of ``EXPLAIN``."""

        def work() -> str:
            # What a cursor can be declared for is a query: it cannot go on with the words of EXPLAIN.
            with self.driver.cursor(name=_CURSOR) as cursor:
                cursor.execute(sql)
            with self.driver.cursor() as cursor:
                return "\n".join(line for (line,) in cursor.execute(f"EXPLAIN {sql}", prepare=True).fetchall())

        return self._within(work, _BACKSTOP_SECONDS)

    def prepare(self, sql: str) -> None:
        """By declaring a cursor from which nothing is fetched."""
        import psycopg

        def work() -> None:
            with self.driver.cursor(name=_CURSOR) as cursor:
                cursor.execute(sql)

        try:
            self._within(work, _BACKSTOP_SECONDS)
        except GuidedError as error:
            cause = error.__cause__
            if not (isinstance(cause, psycopg.Error) and (cause.sqlstate or "").startswith(_DATA_EXCEPTIONS)):
                raise

    def _within(self, work: Callable[[], Made], seconds: float) -> Made:
        import psycopg

        driver = self.driver

        def timed() -> Made:
            milliseconds = int(min((seconds + _BACKSTOP_SECONDS) * 1000, 2**31 - 1))
            driver.execute(f"SET LOCAL statement_timeout = {milliseconds}")
            return work()

        try:
            return call_within(timed, lambda: driver.cancel_safe(timeout=_BACKSTOP_SECONDS), seconds)
        except LostConnectionError:
            driver.close()
            raise
        except psycopg.errors.QueryCanceled as error:
            raise out_of_time(seconds) from error
        except psycopg.errors.ReadOnlySqlTransaction as error:
            raise more_than_reading() from error
        except (psycopg.Error, ValueError) as error:
            raise _refused(error) from error
        finally:
            if not driver.closed:
                driver.rollback()


def _refused(error: Any) -> GuidedError:
    """What to raise for an error of the server, told in its own words."""
    said = str(error).strip()
    position = getattr(getattr(error, "diag", None), "message_primary", None)
    return failed(position or said)
