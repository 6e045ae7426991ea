"""Live databases: what reflection reads, what it refuses, and that nothing can be written."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy

from guided.errors import GuidedError, LimitError, UnsatisfiableError, UnsupportedError
from guided.grammar.ir import Grammar
from guided.grammar.sql import ColumnKind, reflect, run_query, sql
from tests.conftest import ROOT


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "shop one.db"
    connection = sqlite3.connect(file)
    connection.executescript(
        """
        CREATE TABLE customer (id INTEGER PRIMARY KEY, name VARCHAR(30), city TEXT, odd "SOME THING", none);
        CREATE TABLE "order" (id INTEGER, customer REFERENCES customer, day DATE, gone REFERENCES nowhere(x));
        CREATE VIEW spent AS SELECT customer, count(*) AS n FROM "order" GROUP BY customer;
        CREATE TABLE lost (a); CREATE VIEW broken AS SELECT a FROM lost; DROP TABLE lost;
        INSERT INTO customer (name, city) VALUES ('Ada', 'Oslo'), ('Bob', 'Rome'), ('Cy', 'Oslo'), (NULL, 'it''s');
        """
    )
    connection.close()
    return file


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def takes(grammar: Grammar, text: str) -> bool:
    assert grammar.language is not None
    return grammar.language().reads(text.encode())


def test_reflection(path: Path) -> None:
    schema = reflect(f"sqlite:///{path}")
    tables = {table.name: table for table in schema.tables}
    assert set(tables) == {"customer", "order", "spent"}
    assert [(c.name, c.type, c.kind.value) for c in tables["customer"].columns] == [
        ("id", "INTEGER", "number"), ("name", "VARCHAR(30)", "text"), ("city", "TEXT", "text"),
        ("odd", "SOME THING", "any"), ("none", "", "any"),
    ]  # fmt: skip
    assert tables["customer"].primary_key == ("id",)
    keys = {(key.columns, key.table, key.referred) for key in tables["order"].foreign_keys}
    assert (("customer",), "customer", ("id",)) in keys
    assert [column.name for column in tables["spent"].columns] == ["customer", "n"]
    assert len(schema.notes) == 1 and "broken" in schema.notes[0]
    assert reflect(str(path)) == schema == reflect(sqlalchemy.create_engine(f"sqlite:///{path}"))
    text = 'SELECT "order".day FROM customer JOIN "order" ON customer.id = "order".customer'
    assert takes(sql(f"sqlite:///{path}"), text)


def test_sampled_values(path: Path) -> None:
    columns = {column.name: column for column in reflect(str(path), sample_values=3).tables[0].columns}
    assert columns["city"].values == ("Oslo", "Rome", "it's") and columns["name"].values == ("Ada", "Bob", "Cy")
    assert columns["city"].kind is ColumnKind.TEXT and columns["id"].values == ()
    columns = {column.name: column for column in reflect(str(path), sample_values=2).tables[0].columns}
    assert columns["city"].values == (), "a column with more values than asked for stays free"
    grammar = sql(str(path), sample_values=3)
    assert takes(grammar, "SELECT id FROM customer WHERE city = 'it''s' AND name != 'Ada'")
    assert not takes(grammar, "SELECT id FROM customer WHERE city = 'Paris'")


def test_values_that_no_text_can_hold_leave_the_column_free(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "x.db")
    connection.execute("PRAGMA encoding = 'UTF-16'")
    connection.execute("CREATE TABLE t (a TEXT, b TEXT, c TEXT)")
    connection.execute("INSERT INTO t VALUES ('é日', 'x' || char(0) || 'y', ?)", ("long" * 100,))
    connection.commit()
    columns = reflect(str(tmp_path / "x.db"), sample_values=5).tables[0].columns
    assert [column.values for column in columns] == [("é日",), (), ()]


def test_bad_databases(tmp_path: Path) -> None:
    missing = tmp_path / "missing.db"
    with pytest.raises(GuidedError, match="no such database file"):
        reflect(f"sqlite:///{missing}")
    assert not missing.exists(), "opening must not create the file"
    (tmp_path / "text.db").write_text("this is not a database, only some text")
    with pytest.raises(GuidedError, match="not a SQLite database"):
        reflect(str(tmp_path / "text.db"))
    (tmp_path / "broken.db").write_bytes(b"SQLite format 3\0" + b"\x07" * 5000)
    with pytest.raises(GuidedError, match="cannot be read"):
        reflect(str(tmp_path / "broken.db"))
    (tmp_path / "empty.db").touch()
    with pytest.raises(UnsatisfiableError, match="no tables"):
        reflect(str(tmp_path / "empty.db"))
    for url, kind in (
        (str(tmp_path), GuidedError),
        ("sqlite://", GuidedError),
        ("sqlite:///:memory:", GuidedError),
        ("nonsense://", GuidedError),
        ("://", GuidedError),
        ("", GuidedError),
        ("oracle://user:secret@host/db", UnsupportedError),
        ("\0", GuidedError),
    ):
        with pytest.raises(kind) as caught:
            reflect(url)
        assert caught.value.remedy and "secret" not in str(caught.value)
    with pytest.raises(GuidedError, match="sample_values"):
        reflect(str(tmp_path / "empty.db"), sample_values=-1)


def test_an_unreadable_file(path: Path) -> None:
    path.chmod(0)
    try:
        if os.access(path, os.R_OK):
            pytest.skip("this user may read everything")
        with pytest.raises(GuidedError, match="cannot be opened"):
            reflect(str(path))
    finally:
        path.chmod(0o600)


def test_an_unknown_schema(path: Path) -> None:
    with pytest.raises(GuidedError, match=r"'extra'.*'main'"):
        reflect(str(path), schemas=["extra"])


def test_attached_schemas(path: Path, tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE customer (id INTEGER, extra TEXT)")
    other.commit()
    engine = sqlalchemy.create_engine(f"sqlite:///{path}", poolclass=sqlalchemy.pool.StaticPool)
    with engine.connect() as connection:
        connection.exec_driver_sql(f"ATTACH '{tmp_path / 'other.db'}' AS more")
        connection.commit()
        schema = reflect(engine, schemas=["more"])
        assert [(table.schema, table.name) for table in schema.tables][-1] == ("more", "customer")
        result = run_query(engine, "SELECT T1.extra FROM more.customer AS T1")
        assert result.columns == ("extra",) and result.rows == ()


def test_run_query(path: Path) -> None:
    result = run_query(f"sqlite:///{path}", "SELECT name, COUNT(*) FROM customer GROUP BY name ORDER BY name")
    assert result.columns == ("name", "COUNT(*)") and result.rows == ((None, 1), ("Ada", 1), ("Bob", 1), ("Cy", 1))
    assert not result.truncated and 0 <= result.seconds < 60
    result = run_query(str(path), "SELECT id FROM customer", limit_rows=2)
    assert result.rows == ((1,), (2,)) and result.truncated
    result = run_query(str(path), "SELECT id FROM customer", limit_rows=0)
    assert result.rows == () and result.truncated
    assert not run_query(str(path), "SELECT id FROM customer", limit_rows=4).truncated


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM customer",
        "INSERT INTO customer (name) VALUES ('x')",
        "UPDATE customer SET name = 'x' RETURNING name",
        "DROP TABLE customer",
        "CREATE TABLE t (a)",
        "CREATE TEMP TABLE t AS SELECT 1",
        "PRAGMA user_version = 3",
        "PRAGMA query_only = OFF",
        "ATTACH ':memory:' AS other",
        "VACUUM",
        "BEGIN",
        "SELECT 1; DELETE FROM customer",
        "SELECT load_extension('x')",
        "SELECT * FROM nowhere",
        "SELECT 'a\0b'",
        "",
        "-- nothing",
        "not sql",
        pytest.param(
            "SELECT zeroblob(100000000)",
            marks=pytest.mark.skipif(sys.version_info < (3, 11), reason="setlimit came with Python 3.11"),
        ),
    ],
)
def test_nothing_can_be_written(path: Path, statement: str) -> None:
    before = digest(path)
    with pytest.raises(GuidedError) as caught:
        run_query(str(path), statement)
    assert caught.value.remedy
    engine = sqlalchemy.create_engine(f"sqlite:///{path}")
    with pytest.raises(GuidedError):
        run_query(engine, statement)
    assert digest(path) == before
    with engine.connect() as connection:  # the engine is as it was: it may write again
        connection.exec_driver_sql("CREATE TABLE after_all (a)")


def test_work_is_bounded(path: Path) -> None:
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT MAX(x) FROM n"
    with pytest.raises(LimitError, match="2000000 steps"):
        run_query(str(path), endless, limit_steps=2_000_000)


def test_importing_needs_no_sqlalchemy(path: Path) -> None:
    program = f"""
import sys
sys.modules["sqlalchemy"] = None
import guided.grammar.sql as sql
assert sql.sql(sql.DatabaseSchema((sql.Table("t", (sql.Column("a"),)),))).language
try:
    sql.reflect({str(path)!r})
except Exception as error:
    print(error)
"""
    root = ROOT
    done = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    assert "pip install 'guided-decoding[sql]'" in done.stdout
