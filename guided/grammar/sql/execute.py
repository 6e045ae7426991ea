"""Running one query against a database, read-only and within bounds."""

from __future__ import annotations

import sqlite3
from typing import Any

from guided.errors import GuidedError, LimitError
from guided.grammar.sql.connection import allow_everything, connect_read_only

__all__ = ["run_query"]

DEFAULT_LIMIT_ROWS = 1000
DEFAULT_LIMIT_STEPS = 500_000_000
"""Instructions of SQLite's virtual machine; on one core of a 2-core server it does about 100 million in a second."""
MAX_VALUE_BYTES = 16 * 2**20
"""The longest string or blob that a query may make, so that no nest of REPLACE calls fills the memory.

Python 3.10 cannot tell SQLite, whose own bound of 10^9 bytes stands there.
"""
_STEP_BLOCK = 100_000

_ALLOWED_ACTIONS = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)


def run_query(
    url_or_engine: str | Any,
    sql: str,
    *,
    limit_rows: int = DEFAULT_LIMIT_ROWS,
    limit_steps: int = DEFAULT_LIMIT_STEPS,
) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """The column names and the first ``limit_rows`` rows of one SELECT statement.

    Nothing can be written, attached or configured: the file is opened read-only and SQLite's authoriser admits
    reading alone.  ``limit_steps`` bounds the work in instructions of SQLite's virtual machine (`LimitError`), not in
    seconds.  A statement that fails, writes, or is more than one statement raises `GuidedError`.
    """
    with connect_read_only(url_or_engine) as connection:
        driver: sqlite3.Connection = connection.connection.driver_connection  # type: ignore[assignment]
        steps = 0

        def count() -> int:
            nonlocal steps
            steps += _STEP_BLOCK
            return int(steps > limit_steps)

        denied: list[int] = []

        def authorise(action: int, *_: str | None) -> int:
            if action in _ALLOWED_ACTIONS:
                return sqlite3.SQLITE_OK
            denied.append(action)
            return sqlite3.SQLITE_DENY

        # Python 3.10 has no setlimit.
        before = driver.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES) if hasattr(driver, "setlimit") else None
        driver.set_progress_handler(count, _STEP_BLOCK)
        driver.set_authorizer(authorise)
        try:
            cursor = driver.execute(sql)
            if cursor.description is None:
                raise GuidedError("this is not a query", remedy="Give one SELECT statement.")
            columns = tuple(column[0] for column in cursor.description)
            # fetchmany(0) would fetch everything.
            return columns, cursor.fetchmany(limit_rows) if limit_rows > 0 else []
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError) as error:
            if steps > limit_steps:
                raise LimitError(
                    f"the query took more than {limit_steps} steps",
                    remedy="Ask for less (a join without a condition?), or raise limit_steps.",
                ) from error
            if denied:
                raise GuidedError("the statement does more than read", remedy="Give one SELECT statement.") from error
            raise GuidedError(f"the query failed: {error}", remedy="Check it against the database's schema.") from error
        finally:
            allow_everything(driver)
            driver.set_progress_handler(None, 0)
            if before is not None:
                driver.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, before)
