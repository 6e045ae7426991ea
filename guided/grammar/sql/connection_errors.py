"""What a driver says when a database cannot be reached or read, as what, where and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from guided.errors import GuidedError

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

__all__ = ["connection_error", "without_password"]

_WRONG_PASSWORD = "Check the user and the password in the URL; what is no letter or digit must be percent-encoded."
_NO_SUCH_DATABASE = "Check the database's name in the URL."
_UNREACHABLE = "Check the host and the port in the URL, and that the server runs."
_NO_RIGHTS = "Name a user that may read it, or have it granted: GRANT SELECT ON .. TO .."
_IN_USE = "Close it where it is open for writing, or pass an SQLAlchemy engine that is connected already."

_REMEDIES: dict[str, tuple[tuple[str, str], ...]] = {
    "postgresql": (
        ("password authentication failed", _WRONG_PASSWORD),
        ("no password supplied", _WRONG_PASSWORD),
        ("permission denied", _NO_RIGHTS),
        ('database "', _NO_SUCH_DATABASE),
        ('role "', _WRONG_PASSWORD),
        ("", _UNREACHABLE),
    ),
    "duckdb": (
        ("lock", _IN_USE),
        ("different configuration", _IN_USE),
        ("", "Check that it is a whole DuckDB database, and of a version that this DuckDB reads."),
    ),
    "sqlite": (("", "Check that it is a whole SQLite database and that you may read it."),),
}
"""The first row whose words stand in the message has the remedy."""
_MYSQL: dict[int, str] = {
    1044: _NO_RIGHTS,
    1045: _WRONG_PASSWORD,
    1698: _WRONG_PASSWORD,
    1049: _NO_SUCH_DATABASE,
    1142: _NO_RIGHTS,
    1143: _NO_RIGHTS,
}
"""By error number; the others are those of a server that is not there."""


def without_password(url: URL) -> str:
    """A URL as it may be shown; the path alone for a file."""
    if url.get_backend_name() in ("sqlite", "duckdb") and url.database:
        return url.database
    return url.render_as_string(hide_password=True)


def connection_error(error: Exception, url: URL) -> GuidedError:
    """What to raise for a driver's error, or SQLAlchemy's about one."""
    original: Any = getattr(error, "orig", None) or error
    name = url.get_backend_name()
    said = str(original).strip()
    if name in ("mysql", "mariadb"):
        number = original.args[0] if original.args else None
        said = str(original.args[1]) if len(original.args) > 1 else said
        remedy = _MYSQL.get(number, _UNREACHABLE) if isinstance(number, int) else _UNREACHABLE
    else:
        remedy = next(words for mark, words in _REMEDIES[name] if mark in said)
    # One line: a server that was tried at several addresses says so in several.
    said = " ".join(said.split())
    return GuidedError(f"the database cannot be read: {said}", where=without_password(url), remedy=remedy)
