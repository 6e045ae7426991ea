"""Queries on each dialect: what they return, that nothing is written, and that what runs too long is stopped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

import pytest
import sqlalchemy

from guided.errors import GuidedError, LimitError
from guided.grammar.sql import explain_query, run_query
from guided.grammar.sql.connection import open_session
from guided.grammar.sql.engines.mysql import check_query
from guided.grammar.sql.waiting import LostConnectionError, call_within
from tests.amounts import ALL, each, mostly_slow
from tests.databases import DIALECTS, Databases

ROOT = Path(__file__).resolve().parents[4]

ENDLESS = {
    "sqlite": "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT MAX(x) FROM n",
    "postgresql": "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b, t",
    "mariadb": "SELECT COUNT(*) FROM seq_1_to_100000 a, seq_1_to_100000 b, t WHERE a.seq * b.seq < 0",
    "duckdb": "SELECT count(*) FROM range(1000000) a(x), range(1000000) b(x) WHERE a.x * b.x % 7 = 8",
}
"""Minutes at least."""


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def url(databases: Databases, dialect: str) -> str:
    return databases(dialect).create(
        "CREATE TABLE t (a INTEGER, b VARCHAR(20), c DECIMAL(10, 2))",
        "INSERT INTO t VALUES (1, 'x%s:y', 1.50), (2, NULL, 2.25), (3, 'é', NULL)",
    )


def test_rows(url: str, dialect: str) -> None:
    result = run_query(url, "SELECT a, b AS \"B b\", c FROM t ORDER BY a" if dialect != "mariadb" else "SELECT a, b AS `B b`, c FROM t ORDER BY a")  # fmt: skip
    exact = (1.5, 2.25) if dialect == "sqlite" else (Decimal("1.50"), Decimal("2.25"))
    assert result.columns == ("a", "B b", "c") and not result.truncated and result.seconds < 60
    assert result.rows == ((1, "x%s:y", exact[0]), (2, None, exact[1]), (3, "é", None))
    assert run_query(url, "SELECT a FROM t WHERE b LIKE 'x%s:_' -- ; it").rows == ((1,),)
    assert run_query(url, "SELECT a FROM t ORDER BY a;").rows == ((1,), (2,), (3,))


def test_the_row_limit(url: str, dialect: str) -> None:
    for limit, truncated in ((0, True), (2, True), (3, False), (4, False)):
        result = run_query(url, "SELECT a FROM t ORDER BY a", limit_rows=limit)
        assert result.rows == ((1,), (2,), (3,))[:limit] and result.truncated is truncated
    many = "SELECT x.a FROM t x, t y, t z, t u, t v, t w, t q LIMIT 1000000"
    engine = sqlalchemy.create_engine(url, pool_size=2, max_overflow=0)
    assert run_query(engine, many, limit_rows=5).truncated
    assert len(run_query(engine, many, limit_rows=10_000).rows) == 2187
    engine.dispose()
    with pytest.raises(GuidedError, match="-1 rows"):
        run_query(url, "SELECT a FROM t", limit_rows=-1)


WRITING = [
    "DELETE FROM t",
    "INSERT INTO t (a) VALUES (9)",
    "UPDATE t SET a = 9",
    "DROP TABLE t",
    "CREATE TABLE u (a INTEGER)",
    "CREATE TEMPORARY TABLE u (a INTEGER)",
    "SELECT a FROM t; DELETE FROM t",
    "SELECT a FROM t; SELECT a FROM t",
    "COMMIT",
    "ROLLBACK",
    "BEGIN",
    "SET TRANSACTION READ WRITE",
    "COMMIT; DELETE FROM t",
    "SELECT * FROM nowhere",
    "SELECT a, FROM t WHERE",
    "SELECT nothing FROM t",
    "",
    " ",
    "-- nothing",
    ";",
    "not sql",
    "ANALYZE SELECT 1",
    "SELECT 'a\0b",
    "SELECT 'not ended",
]
OWN_WRITING = {
    "sqlite": ["PRAGMA query_only = OFF", "ATTACH ':memory:' AS other", "VACUUM"],
    "postgresql": [
        "WITH d AS (DELETE FROM t RETURNING a) SELECT a FROM d",
        "SELECT a INTO u FROM t",
        "SELECT a FROM t FOR UPDATE",
        "COPY t TO STDOUT",
        "COPY (SELECT a FROM t) TO PROGRAM 'cat'",
        "SET default_transaction_read_only = off",
        "SELECT set_config('transaction_read_only', 'off', true)",
        "DO $$ BEGIN DELETE FROM t; END $$",
        "(FORMAT JSON) SELECT 1",
        "DECLARE c CURSOR FOR SELECT 1",
        "PREPARE p AS DELETE FROM t",
        "SELECT nextval('s')",
    ],
    "mariadb": [
        "SELECT a FROM t INTO OUTFILE '/tmp/never'",
        "SELECT a INTO @x FROM t",
        "SELECT 1 /*! INTO @x */",
        "SELECT 1 /*M! INTO @x */",
        "REPLACE INTO t (a) VALUES (9)",
        "WITH x AS (SELECT 1) DELETE FROM t",
        "LOCK TABLES t WRITE",
        "CALL p()",
        "DO SLEEP(0)",
        "SET @a = 1",
        "TRUNCATE TABLE t",
    ],
    "duckdb": [
        "COPY t TO '/tmp/never.csv'",
        "SELECT * FROM read_text('/etc/hostname')",
        "INSTALL httpfs",
        "ATTACH ':memory:' AS other",
        "SET enable_external_access = true",
        "WITH x AS (INSERT INTO t VALUES (7, 'a', 1) RETURNING a) SELECT * FROM x",
        "EXPORT DATABASE '/tmp/never'",
        "CHECKPOINT",
        "PRAGMA enable_profiling",
    ],
}


def test_nothing_can_be_written(url: str, dialect: str) -> None:
    engine = sqlalchemy.create_engine(url)
    for number, statement in enumerate((*WRITING, *OWN_WRITING[dialect])):
        both = (url, engine) if ALL else ((url, engine)[number % 2],)
        for database in both if dialect != "duckdb" else (url,):
            with pytest.raises(GuidedError) as caught:
                run_query(database, statement)
            assert caught.value.remedy, statement
    # A plan is asked for in the same session; each takes a connection.
    for statement in each(WRITING, 3):
        with pytest.raises(GuidedError):
            explain_query(url, statement)
    for statement in ("DELETE FROM t", "SELECT a FROM t; DELETE FROM t", "COPY t TO '/tmp/never.csv'", "COMMIT"):
        with pytest.raises(GuidedError):
            run_query(engine, statement)
    assert run_query(engine, "SELECT COUNT(*) FROM t").rows == ((3,),)
    with engine.connect() as connection:  # the engine is as it was: it may write again
        connection.exec_driver_sql("INSERT INTO t (a) VALUES (4)")
        connection.commit()
        assert connection.exec_driver_sql("SELECT COUNT(*) FROM t").scalar() == 4
    engine.dispose()


def test_a_long_query_is_stopped_and_the_connection_given_back(url: str, dialect: str) -> None:
    engine = sqlalchemy.create_engine(url, pool_size=2, max_overflow=0)
    for database in (engine, engine, engine):
        began = time.monotonic()
        with pytest.raises(LimitError, match=r"more than 0\.1 s and was stopped"):
            run_query(database, ENDLESS[dialect], seconds=0.1)
        assert time.monotonic() - began < 20
        assert run_query(database, "SELECT COUNT(*) FROM t").rows == ((3,),)
    assert engine.pool.checkedout() == 0  # type: ignore[attr-defined]
    with open_session(engine) as session:
        with pytest.raises(LimitError):
            session.run(ENDLESS[dialect], limit_rows=1, seconds=0.1)
        assert session.run("SELECT MAX(a) FROM t", limit_rows=1, seconds=5).rows == ((3,),)
        assert _running(session.dialect, url) == 0
    engine.dispose()


def _running(dialect: str, url: str) -> int:
    """How many queries the server has under way, besides the one that asks."""
    asked = {
        "postgresql": "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid()"
        " AND backend_type = 'client backend'",
        "mariadb": "SELECT COUNT(*) FROM information_schema.processlist WHERE command = 'Query'"
        " AND id <> CONNECTION_ID()",
    }
    if dialect not in asked:
        return 0
    return int(run_query(url, asked[dialect]).rows[0][0])


# Where pytest runs in the background of a shell, SIGINT is ignored, and so it would be here.
PROGRAM = """
import signal, sys
from guided.grammar.sql import run_query
signal.signal(signal.SIGINT, signal.default_int_handler)
run_query(sys.argv[1], "SELECT COUNT(*) FROM t")  # loads what it needs: the signal is for the query
print("ready", flush=True)
try:
    run_query(sys.argv[1], sys.argv[2], seconds=300)
except KeyboardInterrupt:
    print(run_query(sys.argv[1], "SELECT COUNT(*) FROM t").rows, flush=True)
    sys.exit(130)
"""


@pytest.mark.parametrize("dialect", mostly_slow(DIALECTS, 2), indirect=True)
def test_control_c_stops_what_runs(url: str, dialect: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, url, ENDLESS[dialect]], stdout=subprocess.PIPE, text=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        assert process.stdout.read() == "((3,),)\n"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert _running(dialect, url) == 0


def test_plans_and_preparing(url: str, dialect: str) -> None:
    plan = explain_query(url, "SELECT b, a FROM t ORDER BY a")
    marks = {"sqlite": "SCAN t", "postgresql": "Seq Scan on t", "mariadb": "filesort", "duckdb": "~3 rows"}
    assert marks[dialect] in plan.replace("Rows", "rows") and not plan.endswith("\n")
    with open_session(url) as session:
        session.prepare("SELECT COUNT(*) FROM t")
        session.prepare("SELECT a FROM t WHERE b LIKE '%s'")
        session.prepare("SELECT 1 / 0")
        session.prepare(ENDLESS[dialect])
        for statement in ("SELECT gone FROM t", "SELECT a FROM t GROUP", "DELETE FROM t", "SELECT 1; SELECT 2", ""):
            with pytest.raises(GuidedError):
                session.prepare(statement)


def test_what_the_lexer_of_mysql_lets_through() -> None:
    plain: frozenset[str] = frozenset()
    for good in (
        "SELECT 'it''s; INTO', \"a\\\"; INTO\", `x``;INTO` FROM t # ; INTO",
        "  (SELECT 1) UNION (SELECT 2);  -- end",
        "/* a */ WITH x AS (SELECT 1) SELECT * FROM x",
        "VALUES (1), (2)",
        "SELECT 5--1",
        "select a.`into` from t",
        "SELECT été, $x, intoo FROM t",
    ):
        check_query(good, plain)
    for bad in (
        "SELECT 1 into @x", "SELECT 1; SELECT 2", "SELECT 'a' 'b", "SELECT 1 /* no end", "(DELETE FROM t)", "((", "1",
        "SELECT 'a\\'; DROP TABLE t; -- '",
    ):  # fmt: skip
        with pytest.raises(GuidedError):
            check_query(bad, plain if "\\" not in bad else frozenset({"NO_BACKSLASH_ESCAPES"}))
    check_query("SELECT 'a\\'; DROP TABLE t; -- '", plain)


def test_work_that_does_not_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("guided.grammar.sql.waiting.GRACE_SECONDS", 0.05)
    with pytest.raises(LostConnectionError, match="goes on"):
        call_within(lambda: time.sleep(1), lambda: None, 0.05)

    def fail() -> None:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        call_within(fail, lambda: None, 5)
    assert call_within(lambda: 3, lambda: None, 5) == 3


def test_table_valued_functions_of_sqlite_only_read(databases) -> None:
    url = databases("sqlite").create("CREATE TABLE t (a)")
    assert run_query(url, "SELECT value FROM json_each('[1, 2]')").rows == ((1,), (2,))
    for text in ("UPDATE sqlite_master SET name = 'u'", "WITH x AS (SELECT 1) UPDATE sqlite_master SET name = 'u'"):
        with pytest.raises(GuidedError):
            run_query(url, text)
    assert run_query(url, "SELECT name FROM sqlite_master").rows == (("t",),)
