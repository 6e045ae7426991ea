"""Opening a database for reading only: the one place where a URL becomes a connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from guided.errors import GuidedError, UnsupportedError

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection, Engine

__all__ = ["allow_everything", "connect_read_only", "require_sqlalchemy"]

_MAGIC = b"SQLite format 3\x00"


def require_sqlalchemy() -> Any:
    """The module ``sqlalchemy``, or an error that says how to install it."""
    try:
        import sqlalchemy
    except ImportError as error:
        raise GuidedError(
            "reading a database needs SQLAlchemy, which is not installed", remedy="Run: pip install 'guided[sql]'"
        ) from error
    return sqlalchemy


def allow_everything(driver: sqlite3.Connection) -> None:
    """Take the authoriser away.  ``set_authorizer(None)`` does that from Python 3.11 on; in 3.10 it denies all."""
    driver.set_authorizer(lambda *_: sqlite3.SQLITE_OK)


@contextmanager
def connect_read_only(url_or_engine: str | Any) -> Iterator[Connection]:
    """A connection through which nothing can be written; a missing file is an error, never created.

    ``url_or_engine`` is a SQLAlchemy URL (``sqlite:///x.db``), the path of a SQLite file, or an engine; an engine's
    connection is switched to ``PRAGMA query_only`` while it is used here.
    """
    sqlalchemy = require_sqlalchemy()
    own = not isinstance(url_or_engine, sqlalchemy.engine.Engine)
    engine: Engine = _open(url_or_engine, sqlalchemy) if own else url_or_engine  # type: ignore[assignment]
    if engine.dialect.name != "sqlite":
        raise UnsupportedError(
            f"the SQL dialect {engine.dialect.name!r} is not supported", remedy="Name a SQLite database: sqlite:///x.db"
        )
    try:
        with engine.connect() as connection:
            before = connection.exec_driver_sql("PRAGMA query_only").scalar()
            connection.exec_driver_sql("PRAGMA query_only = ON")
            try:
                yield connection
            finally:
                connection.exec_driver_sql(f"PRAGMA query_only = {int(bool(before))}")
    except (sqlalchemy.exc.DatabaseError, sqlite3.Error) as error:
        raise GuidedError(
            f"the database cannot be read: {getattr(error, 'orig', None) or error}",
            where=str(engine.url.database or engine.url),
            remedy="Check that it is a whole SQLite database and that you may read it.",
        ) from error
    finally:
        if own:
            engine.dispose()


def _open(url: str | Any, sqlalchemy: Any) -> Engine:
    text = str(url)
    if isinstance(url, Path) or (isinstance(url, str) and "://" not in url):
        path = Path(url)
    else:
        try:
            parsed = sqlalchemy.engine.make_url(url)
        except (sqlalchemy.exc.ArgumentError, ValueError) as error:
            raise GuidedError(
                f"{text!r} is not a database URL", remedy="Write sqlite:///relative.db or sqlite:////absolute.db."
            ) from error
        if parsed.get_backend_name() != "sqlite":
            raise UnsupportedError(
                f"the SQL dialect {parsed.get_backend_name()!r} is not supported",
                where=parsed.render_as_string(hide_password=True),
                remedy="Name a SQLite database: sqlite:///x.db",
            )
        if not parsed.database or parsed.database == ":memory:" or parsed.database.startswith("file:"):
            raise GuidedError(
                "an in-memory database or a file: URI has nothing to read here",
                where=text,
                remedy="Give the path of a file, or pass an SQLAlchemy engine that is connected already.",
            )
        path = Path(parsed.database)
    _check_file(path)
    target = f"file:{quote(str(path.absolute()))}?mode=ro"

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(target, uri=True, check_same_thread=False)

    engine: Engine = sqlalchemy.create_engine(f"sqlite:///{path}", creator=connect, poolclass=sqlalchemy.pool.NullPool)
    return engine


def _check_file(path: Path) -> None:
    where = str(path)
    try:
        if not path.exists():
            raise GuidedError("there is no such database file", where=where, remedy="Check the path after sqlite:///.")
        if not path.is_file():
            raise GuidedError("this is a folder, not a database file", where=where, remedy="Name a file in it.")
        with path.open("rb") as file:
            head = file.read(len(_MAGIC))
    except (OSError, ValueError) as error:
        raise GuidedError(
            f"the database file cannot be opened: {error}", where=where, remedy="Check the path and its permissions."
        ) from error
    if head and head != _MAGIC:
        raise GuidedError(
            "this file is not a SQLite database", where=where, remedy="SQLite files start with 'SQLite format 3'."
        )
