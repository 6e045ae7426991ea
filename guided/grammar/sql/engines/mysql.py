"""MySQL and MariaDB: a read-only transaction, a statement that is looked at first, and KILL QUERY to stop it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from guided.errors import GuidedError
from guided.grammar.sql.engines.session import ReadOnlySession, failed, more_than_reading, taken
from guided.grammar.sql.result import QueryResult
from guided.grammar.sql.waiting import LostConnectionError, call_within, out_of_time

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

__all__ = ["MysqlSession", "check_query"]

Made = TypeVar("Made")

_BACKSTOP_SECONDS = 5.0
"""By how much the server's own time-out is longer than ours: it stands in where this process is killed."""
_PLAN_SECONDS = 5.0
_STOPPED = frozenset({1317, 1969, 3024})
"""Error numbers: interrupted, MariaDB's time-out, MySQL's."""
_READ_ONLY = frozenset({1792})


class MysqlSession(ReadOnlySession):
    """A session on MySQL or MariaDB, by PyMySQL; each query is a transaction of its own, rolled back."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection)
        self._maria = bool(getattr(connection.dialect, "is_mariadb", False))
        self.modes: frozenset[str] = frozenset()
        """The session's ``sql_mode``."""

    @property
    def dialect(self) -> str:
        """Which of the two it is."""
        return "mariadb" if self._maria else "mysql"

    def quoted(self, name: str) -> str:
        """In backticks, which are quotes in every mode."""
        return "`" + name.replace("`", "``") + "`"

    @contextmanager
    def reading(self) -> Iterator[None]:
        """With a session whose transactions are read-only."""
        driver = self.driver
        driver.rollback()
        autocommit = bool(driver.get_autocommit())
        # Each by itself, since their names differ between versions.
        kept = {name: self._value(name) for name in ("sql_select_limit", self._time_variable)}
        self.modes = frozenset(str(self._value("sql_mode")).split(","))
        self._set("TRANSACTION READ ONLY")
        driver.autocommit(False)
        try:
            yield
        finally:
            if driver.open:
                driver.rollback()
                self._set("TRANSACTION READ WRITE")
                for name, value in kept.items():
                    self._set(f"{name} = {value}")
                driver.autocommit(autocommit)

    @property
    def _time_variable(self) -> str:
        return "max_statement_time" if self._maria else "max_execution_time"

    def _value(self, name: str) -> Any:
        with self.driver.cursor() as cursor:
            cursor.execute(f"SELECT @@SESSION.{name}")
            return cursor.fetchone()[0]

    def _set(self, assignment: str) -> None:
        with self.driver.cursor() as cursor:
            cursor.execute(f"SET SESSION {assignment}")

    def run(self, sql: str, *, limit_rows: int, seconds: float, limit_steps: int | None = None) -> QueryResult:
        """Fetches no more rows than wanted."""
        from pymysql.cursors import SSCursor

        began = time.monotonic()
        check_query(sql, self.modes)

        def work() -> QueryResult:
            self._set(f"sql_select_limit = {limit_rows + 1}")
            cursor = self.driver.cursor(SSCursor)
            try:
                cursor.execute(sql)
                columns = tuple(column[0] for column in cursor.description)
                rows = cursor.fetchmany(limit_rows + 1)
                result = taken(columns, rows, limit_rows, time.monotonic() - began)
                if result.truncated and cursor.fetchone() is not None:
                    # Its own LIMIT is larger than ours, and all that is on its way would have to be read.
                    self._kill()
                return result
            finally:
                with suppress(self.driver.Error):
                    cursor.close()

        return self._within(work, seconds)

    def plan(self, sql: str) -> str:
        """The rows of ``EXPLAIN``, or MySQL's tree."""
        check_query(sql, self.modes)

        def work() -> str:
            with self.driver.cursor() as cursor:
                cursor.execute(f"EXPLAIN {sql}" if self._maria else f"EXPLAIN FORMAT=TREE {sql}")
                rows = cursor.fetchall()
                if len(cursor.description) == 1:
                    return "\n".join(str(row[0]) for row in rows).rstrip("\n")
                return _table([[column[0] for column in cursor.description], *rows])

        return self._within(work, _PLAN_SECONDS)

    def prepare(self, sql: str) -> None:
        """By ``PREPARE``."""
        check_query(sql, self.modes)

        def work() -> None:
            with self.driver.cursor() as cursor:
                cursor.execute("SET @guided_query = %s", (sql,))
                cursor.execute("PREPARE guided_query FROM @guided_query")
                cursor.execute("DEALLOCATE PREPARE guided_query")

        self._within(work, _PLAN_SECONDS)

    def _kill(self) -> None:
        """Stop what runs, from a connection of its own: this one is waiting."""
        with self.connection.engine.connect() as other:
            other.exec_driver_sql(f"KILL QUERY {self.driver.thread_id()}")

    def _within(self, work: Callable[[], Made], seconds: float) -> Made:
        driver = self.driver

        def timed() -> Made:
            limit = min(seconds + _BACKSTOP_SECONDS, 10.0**6)
            self._set(f"{self._time_variable} = {limit if self._maria else int(limit * 1000)}")
            return work()

        try:
            return call_within(timed, self._kill, seconds)
        except LostConnectionError:
            driver._force_close()
            raise
        except (driver.Error, ValueError) as error:
            number = error.args[0] if error.args else None
            if number in _STOPPED:
                raise out_of_time(seconds) from error
            if number in _READ_ONLY:
                raise more_than_reading() from error
            raise failed(error.args[1] if len(error.args) > 1 else error) from error
        finally:
            if driver.open:
                driver.rollback()


def _table(rows: list[Any]) -> str:
    """Rows as lines of columns of equal width."""
    texts = [["NULL" if value is None else str(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    lines = ("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in texts)
    return "\n".join(line.rstrip() for line in lines)


_WORD = r"[A-Za-z_$\x80-\U0010ffff][A-Za-z0-9_$\x80-\U0010ffff]*"
_PIECES = re.compile(
    r"""(?P<space>\s+|--(?=[\s\x00-\x1f]|\Z)[^\n]*|\#[^\n]*|/\*(?!M?!)(?:[^*]|\*(?!/))*\*/)
    |(?P<string>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    |(?P<name>`(?:[^`]|``)*`)
    |(?P<word>"""
    + _WORD
    + r""")
    |(?P<end>;)
    |(?P<other>/\*|.)""",
    re.VERBOSE | re.DOTALL,
)
_PLAIN_STRING = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*\"""")
_FIRST = frozenset({"SELECT", "WITH", "VALUES", "TABLE"})


def check_query(sql: str, modes: frozenset[str]) -> None:
    """Raise `GuidedError` for what is not one query that only reads, as far as words tell; the rest the server refuses.

    A read-only transaction stops neither COMMIT nor SET nor ``SELECT ... INTO OUTFILE``.  INTO is a reserved word:
    where it stands outside of quotes, it begins that clause.  What the server runs though it looks like a comment is
    refused.

    >>> check_query("(SELECT 'a;INTO' FROM `into`) -- it", frozenset())
    >>> check_query("SELECT 1 INTO OUTFILE 'x'", frozenset())
    Traceback (most recent call last):
    guided.errors.GuidedError: the statement does more than read. Give one SELECT statement.
    """
    position, first, ended = 0, "", False
    while position < len(sql):
        piece = _PIECES.match(sql, position)
        assert piece is not None
        kind, text = piece.lastgroup, piece.group()
        quoted = "NO_BACKSLASH_ESCAPES" in modes or ("ANSI_QUOTES" in modes and sql[position] == '"')
        if sql[position] in "'\"" and quoted:
            plain = _PLAIN_STRING.match(sql, position)
            kind, text = ("string", plain.group()) if plain else ("other", text)
        position += len(text)
        if kind == "space":
            continue
        if ended:
            raise GuidedError("this is more than one statement", remedy="Give one SELECT statement.")
        if kind == "other" and (text[0] in "'\"`" or text.startswith("/*")):
            raise failed("a quote or a comment does not end, or the server would run what stands in a comment")
        if kind == "end":
            ended = True
        elif kind == "word" and not first:
            first = text.upper()
            if first not in _FIRST:
                raise more_than_reading()
        elif not first and text != "(":
            raise GuidedError("this is not a query", remedy="Give one SELECT statement.")
        elif kind == "word" and text.upper() == "INTO":
            raise more_than_reading()
    if not first:
        raise GuidedError("this is not a query", remedy="Give one SELECT statement.")
