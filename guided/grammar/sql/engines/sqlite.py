"""SQLite: the authoriser admits reading alone, and a handler that is called as the query runs stops it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from guided.errors import GuidedError, LimitError
from guided.grammar.sql.engines.session import ReadOnlySession, failed, more_than_reading, taken
from guided.grammar.sql.result import QueryResult
from guided.grammar.sql.waiting import out_of_time

__all__ = ["SqliteSession"]

DEFAULT_LIMIT_STEPS = 500_000_000
"""Instructions of SQLite's virtual machine; on one core of a 2-core server it does about 100 million in a second."""
MAX_VALUE_BYTES = 16 * 2**20
"""The longest string or blob that a query may make, so that no nest of REPLACE calls fills the memory.

Python 3.10 cannot tell SQLite, whose own bound of 10^9 bytes stands there.
"""
_STEP_BLOCK = 100_000
"""Steps between two looks at the clock: a millisecond."""

_READING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})
_ERRORS = (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError)


class _Watch:
    """What is seen of a query while it runs: its steps, its time, Ctrl-C, and what it was denied."""

    def __init__(self, limit_steps: int, seconds: float) -> None:
        self.limit_steps, self.seconds = limit_steps, seconds
        self.steps = 0
        self.began = time.monotonic()
        self.denied = False
        self.stopped: BaseException | None = None

    def count(self) -> int:
        """Called every so many steps; anything but 0 stops the query."""
        # SQLite calls this from C, where an exception would be printed and lost.
        try:
            self.steps += _STEP_BLOCK
            if self.steps > self.limit_steps:
                self.stopped = LimitError(
                    f"the query took more than {self.limit_steps} steps",
                    remedy="Ask for less (a join without a condition?), or raise limit_steps.",
                )
            elif time.monotonic() - self.began > self.seconds:
                self.stopped = out_of_time(self.seconds)
        except KeyboardInterrupt as error:
            self.stopped = error
        return int(self.stopped is not None)

    def authorise(self, action: int, table: str | None, name: str | None, *_: str | None) -> int:
        """Whether the statement may do this."""
        # So SQLite says that it looks up ``json_each``; a statement itself cannot write there.
        declares = action == sqlite3.SQLITE_UPDATE and table == "sqlite_master"
        if declares or (action in _READING and not (action == sqlite3.SQLITE_FUNCTION and name == "load_extension")):
            return sqlite3.SQLITE_OK
        self.denied = True
        return sqlite3.SQLITE_DENY

    def error(self, error: BaseException) -> BaseException:
        """What to raise for an error of the driver."""
        if self.stopped is not None:
            return self.stopped
        if self.denied:
            return more_than_reading()
        if str(error) == "interrupted":  # Ctrl-C as `count` was being entered: it never ran
            return KeyboardInterrupt()
        return failed(error)


class SqliteSession(ReadOnlySession):
    """A session on SQLite, which runs queries in the thread that asks."""

    dialect = "sqlite"

    @contextmanager
    def reading(self) -> Iterator[None]:
        """With ``PRAGMA query_only``."""
        before = self.connection.exec_driver_sql("PRAGMA query_only").scalar()
        self.connection.exec_driver_sql("PRAGMA query_only = ON")
        try:
            yield
        finally:
            self.connection.exec_driver_sql(f"PRAGMA query_only = {int(bool(before))}")

    def run(self, sql: str, *, limit_rows: int, seconds: float, limit_steps: int | None = None) -> QueryResult:
        """Bounded by ``limit_steps``, too: instructions of SQLite's virtual machine, the same ones every time."""
        with self._watched(DEFAULT_LIMIT_STEPS if limit_steps is None else limit_steps, seconds) as watch:
            cursor = self.driver.execute(sql)
            if cursor.description is None:
                raise GuidedError("this is not a query", remedy="Give one SELECT statement.")
            columns = tuple(column[0] for column in cursor.description)
            rows = cursor.fetchmany(limit_rows + 1)
            cursor.close()
            return taken(columns, rows, limit_rows, time.monotonic() - watch.began)

    def plan(self, sql: str) -> str:
        """The lines of ``EXPLAIN QUERY PLAN``, indented."""
        depths = {0: 0}
        lines = []
        for identity, parent, _, words in self._explained(sql):
            depths[identity] = depths.get(parent, 0) + 1
            lines.append("  " * depths.get(parent, 0) + str(words))
        return "\n".join(lines)

    def prepare(self, sql: str) -> None:
        """By ``EXPLAIN QUERY PLAN``."""
        self._explained(sql)

    def _explained(self, sql: str) -> list[Any]:
        with self._watched(DEFAULT_LIMIT_STEPS, float("inf")):
            # Behind these words comes exactly a statement; behind EXPLAIN alone, "QUERY PLAN SELECT 1" would be one.
            return list(self.driver.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall())

    @contextmanager
    def _watched(self, limit_steps: int, seconds: float) -> Iterator[_Watch]:
        driver = self.driver
        watch = _Watch(limit_steps, seconds)
        # Python 3.10 has no setlimit.
        before = driver.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES) if hasattr(driver, "setlimit") else None
        driver.set_progress_handler(watch.count, _STEP_BLOCK)
        driver.set_authorizer(watch.authorise)
        try:
            yield watch
        except _ERRORS as error:
            raise watch.error(error) from error
        finally:
            # ``set_authorizer(None)`` takes it away from Python 3.11 on; in 3.10 it denies all.
            driver.set_authorizer(lambda *_: sqlite3.SQLITE_OK)
            driver.set_progress_handler(None, 0)
            if before is not None:
                driver.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, before)
