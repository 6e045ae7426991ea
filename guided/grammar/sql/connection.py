"""Opening a database for reading only: the one place where a URL becomes a connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from guided.errors import GuidedError, UnsupportedError
from guided.grammar.sql.connection_errors import connection_error, without_password
from guided.grammar.sql.engines.session import ReadOnlySession

if TYPE_CHECKING:
    from sqlalchemy.engine import URL, Connection, Engine

__all__ = ["open_session", "require_sqlalchemy"]

_MAGIC = {"sqlite": (0, b"SQLite format 3\x00"), "duckdb": (8, b"DUCK")}
"""Where in a file a dialect's mark stands."""
_NAMES = {"sqlite": "SQLite", "duckdb": "DuckDB"}
_DRIVERS = {
    "sqlite": ("pysqlite", "sqlite3", "sql"),
    "postgresql": ("psycopg", "psycopg", "postgresql"),
    "mysql": ("pymysql", "pymysql", "mysql"),
    "mariadb": ("pymysql", "pymysql", "mysql"),
    "duckdb": ("duckdb_engine", "duckdb_engine", "duckdb"),
}
"""Of each dialect of SQLAlchemy: the driver's name there, its module, and our extra that installs it."""
_SUPPORTED = (
    "Name a database: sqlite:///x.db, postgresql://user:password@host/name, mysql://.., mariadb://.. or duckdb:///x.db."
)
CONNECT_SECONDS = 10
"""How long a server may take to answer."""


def require_sqlalchemy() -> Any:
    """The module ``sqlalchemy``, or an error that says how to install it.

    Raises `GuidedError` where it is not installed.
    """
    try:
        import sqlalchemy
    except ImportError as error:
        raise GuidedError(
            "reading a database needs SQLAlchemy, which is not installed",
            remedy="Run: pip install 'guided-decoding[sql]'",
        ) from error
    return sqlalchemy


@contextmanager
def open_session(url_or_engine: str | Any) -> Iterator[ReadOnlySession]:
    """A session through which nothing can be written; a missing file is an error, never created.

    ``url_or_engine`` is a SQLAlchemy URL (``sqlite:///x.db``, ``postgresql://user:password@host/name``), the path of a
    SQLite or DuckDB file, or an engine; a connection of an engine is switched to reading while it is used here, and
    given back as it was.
    """
    sqlalchemy = require_sqlalchemy()
    own = not isinstance(url_or_engine, sqlalchemy.engine.Engine)
    engine: Engine = _open(url_or_engine, sqlalchemy) if own else url_or_engine  # type: ignore[assignment]
    _check_dialect(engine.url)
    try:
        with _errors_named(engine, sqlalchemy), engine.connect() as connection:
            session = _session(connection)
            with session.reading():
                yield session
    finally:
        if own:
            engine.dispose()


@contextmanager
def _errors_named(engine: Engine, sqlalchemy: Any) -> Iterator[None]:
    # A driver's errors come as SQLAlchemy's where they went through it, else as they are.
    driver = engine.dialect.loaded_dbapi.Error if engine.dialect.loaded_dbapi is not None else sqlite3.Error
    try:
        yield
    except (sqlalchemy.exc.DBAPIError, driver) as error:
        raise connection_error(error, engine.url) from error
    except sqlalchemy.exc.TimeoutError as error:
        raise GuidedError(
            "the engine has no connection to give: all are in use",
            where=without_password(engine.url),
            remedy="Give back those that are open, or raise its pool_size.",
        ) from error


def _session(connection: Connection) -> ReadOnlySession:
    name = connection.dialect.name
    if name == "postgresql":
        from guided.grammar.sql.engines.postgresql import PostgresqlSession

        return PostgresqlSession(connection)
    if name in ("mysql", "mariadb"):
        from guided.grammar.sql.engines.mysql import MysqlSession

        return MysqlSession(connection)
    if name == "duckdb":
        from guided.grammar.sql.engines.duckdb import DuckdbSession

        return DuckdbSession(connection)
    from guided.grammar.sql.engines.sqlite import SqliteSession

    return SqliteSession(connection)


def _open(url: str | Any, sqlalchemy: Any) -> Engine:
    if isinstance(url, Path) or (isinstance(url, str) and "://" not in url):
        path = Path(url)
        return _file_engine("duckdb" if _begins_as(path, "duckdb") else "sqlite", path, sqlalchemy)
    try:
        parsed: URL = sqlalchemy.engine.make_url(url)
    except (sqlalchemy.exc.ArgumentError, ValueError) as error:
        raise GuidedError(f"{_hidden(str(url))!r} is not a database URL", remedy=_SUPPORTED) from error
    _check_dialect(parsed)
    name = parsed.get_backend_name()
    if name not in _MAGIC:
        return _server_engine(parsed, sqlalchemy)
    if not parsed.database or parsed.database == ":memory:" or parsed.database.startswith("file:"):
        raise GuidedError(
            "an in-memory database or a file: URI has nothing to read here",
            where=without_password(parsed),
            remedy="Give the path of a file, or pass an SQLAlchemy engine that is connected already.",
        )
    return _file_engine(name, Path(parsed.database), sqlalchemy)


def _hidden(text: str) -> str:
    """What of a URL that cannot be read may be shown: nothing before its host."""
    return text.split("@")[-1] if "@" in text else text


def _check_dialect(url: URL) -> None:
    """Raise for a dialect that is not ours, for a driver that is not installed and for one that cannot be stopped."""
    name = url.get_backend_name()
    if name not in _DRIVERS:
        raise UnsupportedError(
            f"the SQL dialect {name!r} is not supported", where=without_password(url), remedy=_SUPPORTED
        )
    driver, module, extra = _DRIVERS[name]
    if "+" in url.drivername and url.drivername.split("+")[1] != driver:
        raise UnsupportedError(
            f"the driver {url.drivername.split('+')[1]!r} is not supported",
            where=without_password(url),
            remedy=f"Write {name}://, which takes {driver}.",
        )
    try:
        import_module(module)
    except ImportError as error:
        raise GuidedError(
            f"reading {name} needs the package {module}, which is not installed",
            where=without_password(url),
            remedy=f"Run: pip install 'guided-decoding[sql,{extra}]'",
        ) from error


def _server_engine(url: URL, sqlalchemy: Any) -> Engine:
    name = url.get_backend_name()
    named = url.set(drivername=f"{name}+{_DRIVERS[name][0]}")
    if "connect_timeout" not in url.query:
        named = named.update_query_dict({"connect_timeout": str(CONNECT_SECONDS)})
    engine: Engine = sqlalchemy.create_engine(named, poolclass=sqlalchemy.pool.NullPool)
    return engine


def _file_engine(name: str, path: Path, sqlalchemy: Any) -> Engine:
    _check_file(name, path)
    if name == "duckdb":
        options = {"enable_external_access": "false", "lock_configuration": "true"}
        url = sqlalchemy.engine.URL.create("duckdb", database=str(path))
        arguments = {"read_only": True, "config": options}
        engine: Engine = sqlalchemy.create_engine(url, connect_args=arguments, poolclass=sqlalchemy.pool.NullPool)
        return engine
    target = f"file:{quote(str(path.absolute()))}?mode=ro"

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(target, uri=True, check_same_thread=False)

    engine = sqlalchemy.create_engine(f"sqlite:///{path}", creator=connect, poolclass=sqlalchemy.pool.NullPool)
    return engine


def _begins_as(path: Path, name: str) -> bool:
    offset, mark = _MAGIC[name]
    try:
        with path.open("rb") as file:
            return file.read(offset + len(mark))[offset:] == mark
    except (OSError, ValueError):
        return False


def _check_file(name: str, path: Path) -> None:
    where = str(path)
    offset, mark = _MAGIC[name]
    try:
        if not path.exists():
            raise GuidedError("there is no such database file", where=where, remedy=f"Check the path after {name}:///.")
        if not path.is_file():
            raise GuidedError("this is a folder, not a database file", where=where, remedy="Name a file in it.")
        with path.open("rb") as file:
            head = file.read(offset + len(mark))
    except (OSError, ValueError) as error:
        raise GuidedError(
            f"the database file cannot be opened: {error}", where=where, remedy="Check the path and its permissions."
        ) from error
    if head and head[offset:] != mark:
        raise GuidedError(
            f"this file is not a {_NAMES[name]} database",
            where=where,
            remedy="SQLite files start with 'SQLite format 3', those of DuckDB have 'DUCK' behind 8 bytes.",
        )
