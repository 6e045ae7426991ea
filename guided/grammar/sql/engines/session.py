"""The one interface to a database that is only read: run a query, show its plan, have it prepared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from guided.errors import GuidedError

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from guided.grammar.sql.result import QueryResult

__all__ = ["DEFAULT_LIMIT_ROWS", "DEFAULT_SECONDS", "ReadOnlySession", "failed", "more_than_reading", "taken"]

DEFAULT_LIMIT_ROWS = 1000
DEFAULT_SECONDS = 60.0


class ReadOnlySession(ABC):
    """A connection on which nothing can be written; made by `guided.grammar.sql.connection.open_session`.

    Used by one thread at a time.  Every error is a `GuidedError`, and leaves the session as it was.
    """

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    @property
    @abstractmethod
    def dialect(self) -> str:
        """As in `DatabaseSchema.dialect`."""

    @contextmanager
    def reading(self) -> Iterator[None]:
        """While inside, the connection only reads; afterwards it is as it was."""
        yield

    @abstractmethod
    def run(self, sql: str, *, limit_rows: int, seconds: float, limit_steps: int | None = None) -> QueryResult:
        """The first ``limit_rows`` rows of one query; see `guided.grammar.sql.execute.run_query`."""

    @abstractmethod
    def plan(self, sql: str) -> str:
        """How the engine would run a query, in its own words."""

    @abstractmethod
    def prepare(self, sql: str) -> None:
        """Raise `GuidedError` for what the engine does not take as one query over what it holds; nothing runs."""

    def quoted(self, name: str) -> str:
        """A name as it stands in a query."""
        return '"' + name.replace('"', '""') + '"'

    def rows(self, sql: str) -> list[Any]:
        """The rows of a query of our own about the catalogue or a table."""
        return list(self.connection.execution_options(no_parameters=True).exec_driver_sql(sql).fetchall())

    @property
    def driver(self) -> Any:
        """The driver's own connection."""
        return self.connection.connection.driver_connection


def failed(error: object) -> GuidedError:
    """The error of a query that the engine refused, or that failed as it ran."""
    return GuidedError(f"the query failed: {error}", remedy="Check it against the database's schema.")


def more_than_reading() -> GuidedError:
    """The error of a statement that is no query."""
    return GuidedError("the statement does more than read", remedy="Give one SELECT statement.")


def taken(columns: tuple[str, ...], rows: list[Any], limit_rows: int, seconds: float) -> QueryResult:
    """The result of a query that was asked for one row more than wanted."""
    from guided.grammar.sql.result import QueryResult

    return QueryResult(columns, tuple(tuple(row) for row in rows[:limit_rows]), len(rows) > limit_rows, seconds)
