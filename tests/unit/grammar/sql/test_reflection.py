"""What is read of databases of each dialect, and what an error says where nothing can be read."""

from __future__ import annotations

import functools
import time
from pathlib import Path

import pytest
import sqlalchemy

from guided.errors import GuidedError, UnsatisfiableError
from guided.grammar.sql import Column, DatabaseSchema, ForeignKey, NameCase, Table, reflect, run_query
from guided.grammar.sql.query.language import query_language
from tests.amounts import mostly_slow
from tests.databases import DIALECTS, Databases, Server, run

SERVERS = ("postgresql", "mariadb")


def quoted(dialect: str, name: str) -> str:
    mark = "`" if dialect == "mariadb" else '"'
    return mark + name.replace(mark, mark * 2) + mark


def table(schema: DatabaseSchema, name: str) -> Table:
    return next(each for each in schema.tables if each.name == name)


def column(schema: DatabaseSchema, name: str) -> Column:
    return next(each for here in schema.tables for each in here.columns if each.name == name)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_tables_columns_and_keys(databases: Databases, dialect: str) -> None:
    url = databases(dialect).create(
        "CREATE TABLE customer (id INTEGER PRIMARY KEY, name VARCHAR(30) NOT NULL, born DATE)",
        "CREATE TABLE item (a INTEGER, b INTEGER, price DECIMAL(10, 2), double_price DECIMAL(10, 2) GENERATED ALWAYS"
        f" AS (price * 2) {'STORED' if dialect == 'postgresql' else ''}, buyer INTEGER, PRIMARY KEY (a, b),"
        " FOREIGN KEY (buyer) REFERENCES customer (id))",
        "CREATE VIEW names AS SELECT name FROM customer",
    )
    schema = reflect(url)
    assert schema.dialect == dialect and schema.version > (1,) and schema.notes == ()
    assert {each.name: each.view for each in schema.tables} == {"customer": False, "item": False, "names": True}
    customer, item = table(schema, "customer"), table(schema, "item")
    assert [each.name for each in item.columns] == ["a", "b", "price", "double_price", "buyer"]
    assert customer.primary_key == ("id",) and item.primary_key == ("a", "b")
    assert item.foreign_keys == (ForeignKey(("buyer",), "customer", ("id",)),)
    assert [each.name for each in item.columns if each.generated] == ["double_price"]
    assert [each.nullable for each in customer.columns[1:]] == [False, True]
    assert {each.schema for each in schema.tables} == {None}
    types = {
        "sqlite": ["INTEGER", "VARCHAR(30)", "DATE"],
        "postgresql": ["integer", "character varying(30)", "date"],
        "mariadb": ["int(11)", "varchar(30)", "date"],
        "duckdb": ["INTEGER", "VARCHAR", "DATE"],
    }
    assert [each.type for each in customer.columns] == types[dialect]
    cases = {"postgresql": (NameCase.LOWERED,) * 2, "mariadb": (NameCase.EXACT, NameCase.IGNORED)}
    assert (schema.table_names, schema.column_names) == cases.get(dialect, (NameCase.IGNORED,) * 2)
    engine = sqlalchemy.create_engine(url)
    assert reflect(engine) == schema
    with engine.connect() as connection:  # the engine is as it was: it may write again
        connection.exec_driver_sql("INSERT INTO customer VALUES (1, 'Ada', NULL)")
        connection.commit()
    engine.dispose()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_odd_names(databases: Databases, dialect: str) -> None:
    longest = 63 if dialect == "postgresql" else 64  # which the servers have
    names = ["select", "a.b", 'quo"te', "back`tick", "héllo wörld", "日本", "it's", "x" * longest, "%s :name $1"]
    if dialect in ("sqlite", "duckdb"):
        names.append("y" * 300)
    statements = [
        f"CREATE TABLE {quoted(dialect, name)} ({quoted(dialect, name)} VARCHAR(9), other INTEGER)"
        if not (dialect == "mariadb" and name.endswith(" "))
        else ""
        for name in names
    ]
    statements += [f"INSERT INTO {quoted(dialect, name)} VALUES ('v', 1)" for name in names]
    url = databases(dialect).create(*statements)
    schema = reflect(url, sample_values=5)
    assert sorted(each.name for each in schema.tables) == sorted(names)
    assert all(each.columns[0].name == each.name and each.columns[0].values == ("v",) for each in schema.tables)
    language = query_language(schema)
    for name in map(functools.partial(quoted, dialect), names):
        query = f"SELECT t.{name}, {name}.other FROM {name}, {name} AS t WHERE t.{name} = 'v' ORDER BY 1"
        assert language.reads(query.encode()), query
        assert run_query(url, query).rows == (("v", 1),)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_values_are_sampled(databases: Databases, dialect: str) -> None:
    url = databases(dialect).create(
        "CREATE TABLE t (few VARCHAR(10), many VARCHAR(10), number INTEGER)",
        "INSERT INTO t VALUES ('b', '1', 1), ('B', '2', 2), ('é', '3', 3), (NULL, '4', 4), ('b', '5', 5), ('', '6', 6)",
    )
    few, many, number = reflect(url, sample_values=4).tables[0].columns
    assert few.values == ("", "B", "b", "é") and many.values == () and number.values == ()
    assert all(each.values == () for each in reflect(url).tables[0].columns)


@pytest.mark.parametrize("dialect", mostly_slow(DIALECTS, 1))
def test_a_hundred_thousand_values(databases: Databases, dialect: str) -> None:
    made = {
        "sqlite": "WITH RECURSIVE n(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM n WHERE x < 99999)"
        " SELECT 'v' || x FROM n",
        "postgresql": "SELECT 'v' || x FROM generate_series(0, 99999) AS n (x)",
        "mariadb": "SELECT CONCAT('v', seq) FROM seq_0_to_99999",
        "duckdb": "SELECT 'v' || x FROM range(100000) AS n (x)",
    }[dialect]
    url = databases(dialect).create("CREATE TABLE t (a VARCHAR(10))", f"INSERT INTO t {made}")
    values = reflect(url, sample_values=100_000).tables[0].columns[0].values
    assert len(values) == 100_000 and values[:2] == ("v0", "v1")
    assert reflect(url, sample_values=99_999).tables[0].columns[0].values == ()
    with pytest.raises(GuidedError, match="sample_values is 100001"):
        reflect(url, sample_values=100_001)


@pytest.mark.parametrize("dialect", ["postgresql", "mariadb", "duckdb"])
def test_labels_of_enumerated_types(databases: Databases, dialect: str) -> None:
    labels = "('sad', 'it''s', 'happy')"
    statements = [f"CREATE TABLE t (a ENUM{labels})"]
    if dialect != "mariadb":
        statements = [f"CREATE TYPE mood AS ENUM {labels}", "CREATE TABLE t (a mood)"]
    url = databases(dialect).create(*statements)
    assert column(reflect(url), "a").labels == ("sad", "it's", "happy")
    assert column(reflect(url, sample_values=3), "a").values == ("sad", "it's", "happy")


@pytest.mark.parametrize("dialect", ["postgresql", "duckdb"])
def test_several_schemas(databases: Databases, dialect: str) -> None:
    url = databases(dialect).create(
        "CREATE TABLE t (a INTEGER PRIMARY KEY)", 'CREATE SCHEMA "Other"', "CREATE SCHEMA third",
        'CREATE TABLE "Other".t (b INTEGER PRIMARY KEY)',
        f'CREATE TABLE "Other".u (c INTEGER REFERENCES "Other".t (b){", d INTEGER REFERENCES t (a)" if dialect == "postgresql" else ""})',
    )  # fmt: skip
    schema = reflect(url)
    assert [each.name for each in schema.tables] == ["t"]
    assert schema.notes == ("schemas that were not asked for are left out: 'Other', 'third'",)
    both = reflect(url, schemas=["Other"])
    assert [(each.schema, each.name) for each in both.tables] == [(None, "t"), ("Other", "t"), ("Other", "u")]
    assert both.default_schema == {"postgresql": "public", "duckdb": "main"}[dialect]
    keys = {key.columns: (key.schema, key.table) for key in both.tables[2].foreign_keys}
    assert keys[("c",)] == ("Other", "t")
    if dialect == "postgresql":
        assert keys[("d",)] == (None, "t")
    assert reflect(url, schemas=["*"]).tables == both.tables
    with pytest.raises(GuidedError, match=r"no schema 'gone'.*'Other'"):
        reflect(url, schemas=["gone"])


def test_another_database_of_mariadb(databases: Databases) -> None:
    url = databases("mariadb").create("CREATE TABLE t (a INTEGER)")
    other = sqlalchemy.make_url(databases("mariadb").create("CREATE TABLE u (b INTEGER)")).database
    assert other is not None
    schema = reflect(url, schemas=[other])
    assert [(each.schema, each.name) for each in schema.tables] == [(None, "t"), (other, "u")]
    assert "STRICT_TRANS_TABLES" in schema.modes


@pytest.mark.parametrize("dialect", ["sqlite", "mariadb", "duckdb"])
def test_a_broken_view_is_left_out(databases: Databases, dialect: str) -> None:
    url = databases(dialect).create(
        "CREATE TABLE t (a INTEGER)", "CREATE TABLE kept (a INTEGER)", "CREATE VIEW broken AS SELECT a FROM t",
        "CREATE VIEW whole AS SELECT a FROM kept", "DROP TABLE t",
    )  # fmt: skip
    schema = reflect(url)
    assert sorted(each.name for each in schema.tables) == ["kept", "whole"]
    assert len(schema.notes) == 1 and "table 'broken' is left out" in schema.notes[0]


def test_kinds_of_relations_and_types_of_postgresql(databases: Databases) -> None:
    url = databases("postgresql").create(
        "CREATE TABLE t (a int[], b timestamptz(3), c jsonb, d int4range, e interval year to month, f name)",
        "CREATE DOMAIN small AS int NOT NULL CHECK (VALUE < 10)",
        "CREATE TABLE p (k small, id int GENERATED ALWAYS AS IDENTITY) PARTITION BY RANGE (k)",
        "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (5)",
        "CREATE MATERIALIZED VIEW m AS SELECT a FROM t",
        "CREATE TABLE dropped (a int, b int)", "ALTER TABLE dropped DROP COLUMN a",
    )  # fmt: skip
    schema = reflect(url)
    assert [each.type for each in table(schema, "t").columns] == [
        "integer[]", "timestamp(3) with time zone", "jsonb", "int4range", "interval year to month", "name",
    ]  # fmt: skip
    assert table(schema, "m").view and not table(schema, "p").view and table(schema, "p1").columns
    key, identity = table(schema, "p").columns
    assert (key.type, key.nullable, identity.generated) == ("small", False, False)
    assert [each.name for each in table(schema, "dropped").columns] == ["b"]


def test_rights_on_postgresql(databases: Databases) -> None:
    server = databases("postgresql")
    assert isinstance(server, Server)
    url = server.create(
        "CREATE TABLE open (a int, b int)", "CREATE TABLE half (a int PRIMARY KEY, b int)", "CREATE TABLE closed (a int)",
        "DROP ROLE IF EXISTS reader", "CREATE ROLE reader LOGIN PASSWORD 'r'", "GRANT SELECT ON open TO reader",
        "GRANT SELECT (b) ON half TO reader",
    )  # fmt: skip
    name = sqlalchemy.make_url(url).database
    assert name is not None
    schema = reflect(server.url(name, "reader", "r"))
    assert {each.name: [c.name for c in each.columns] for each in schema.tables} == {"open": ["a", "b"], "half": ["b"]}
    assert table(schema, "half").primary_key == ()
    assert any("'closed' is left out: this user may not" in note for note in schema.notes)
    assert any("columns of table 'half'" in note and "'a'" in note for note in schema.notes)


def test_schemas_that_a_user_may_not_use_on_postgresql(databases: Databases) -> None:
    server = databases("postgresql")
    assert isinstance(server, Server)
    url = server.create(
        "CREATE TABLE closed (a int)", "CREATE SCHEMA other", "CREATE SCHEMA secret", "CREATE TABLE other.open (b int)",
        "DROP ROLE IF EXISTS outsider", "CREATE ROLE outsider LOGIN PASSWORD 'o'",
        "REVOKE ALL ON SCHEMA public FROM PUBLIC",
    )  # fmt: skip
    name = sqlalchemy.make_url(url).database
    assert name is not None
    own = server.url(name, "outsider", "o")
    with pytest.raises(GuidedError, match="schema 'public' is left out: this user may not use it") as caught:
        reflect(own)
    assert "GRANT USAGE ON SCHEMA" in (caught.value.remedy or "")
    run(url, ["GRANT USAGE ON SCHEMA other TO outsider", "GRANT SELECT ON other.open TO outsider"])
    schema = reflect(own, schemas=["other", "secret"])
    assert [(each.schema, each.name) for each in schema.tables] == [("other", "open")]
    assert "schema 'secret' is left out: this user may not use it" in schema.notes


def test_rights_on_mariadb(databases: Databases) -> None:
    server = databases("mariadb")
    assert isinstance(server, Server)
    url = server.create(
        "CREATE TABLE open (a int, b int)", "CREATE TABLE half (a int, b int)", "CREATE TABLE closed (a int)"
    )
    name = sqlalchemy.make_url(url).database
    assert name is not None
    admin = sqlalchemy.create_engine(server.url("mysql"))
    with admin.connect() as connection:
        for statement in ("CREATE OR REPLACE USER reader@localhost IDENTIFIED BY 'r'",
                          f"GRANT SELECT ON {name}.open TO reader@localhost",
                          f"GRANT SELECT (b) ON {name}.half TO reader@localhost"):  # fmt: skip
            connection.exec_driver_sql(statement)
    admin.dispose()
    schema = reflect(server.url(name, "reader", "r"))
    assert {each.name: [c.name for c in each.columns] for each in schema.tables} == {"half": ["b"], "open": ["a", "b"]}


@pytest.mark.parametrize("dialect", SERVERS)
def test_servers_that_refuse(databases: Databases, dialect: str) -> None:
    server = databases(dialect)
    assert isinstance(server, Server)
    good = sqlalchemy.make_url(server.create())
    assert good.database is not None
    for url, remedy in (
        (server.url(good.database, password="wrong/secret"), "user and the password"),
        (server.url(good.database, user="nobody_here", password="wrong/secret"), "user and the password"),
        (server.url("no_such_database"), "database's name"),
        (good.set(query={}).set(host="127.0.0.1", port=1), "host and the port"),
    ):
        with pytest.raises(GuidedError) as caught:
            reflect(url)
        assert remedy in (caught.value.remedy or ""), caught.value
        assert "wrong" not in str(caught.value) and "sesame" not in str(caught.value) and "\n" not in str(caught.value)
    with pytest.raises(UnsatisfiableError, match="no tables"):
        reflect(good)


def test_a_duckdb_file_that_is_open_elsewhere(databases: Databases, tmp_path: Path) -> None:
    import duckdb

    url = databases("duckdb").create("CREATE TABLE t (a INTEGER)")
    path = url.removeprefix("duckdb:///")
    assert reflect(path) == reflect(url) and reflect(path).dialect == "duckdb"
    with duckdb.connect(path):
        with pytest.raises(GuidedError) as caught:
            reflect(url)
        assert "open for writing" in (caught.value.remedy or "")
    (tmp_path / "broken.duckdb").write_bytes(b"\0" * 8 + b"DUCK" + b"\7" * 9000)
    with pytest.raises(GuidedError, match="cannot be read"):
        reflect(tmp_path / "broken.duckdb")
    with pytest.raises(GuidedError, match="not a DuckDB database"):
        reflect(f"duckdb:///{__file__}")
    with pytest.raises(GuidedError, match="no such database file"):
        reflect(f"duckdb:///{tmp_path}/missing.duckdb")
    assert not (tmp_path / "missing.duckdb").exists()


@pytest.mark.parametrize("dialect", mostly_slow(DIALECTS, 1))
def test_five_hundred_tables(databases: Databases, dialect: str) -> None:
    columns = ", ".join(f"c{n} VARCHAR(10)" for n in range(18))
    key = "INTEGER REFERENCES t0 (id)"
    statements = [
        f"CREATE TABLE t{n} (id INTEGER PRIMARY KEY, parent {key if n else 'INTEGER'}, {columns})" for n in range(500)
    ]
    url = databases(dialect).create(*statements)
    began = time.process_time()
    schema = reflect(url)
    seconds = time.process_time() - began
    assert len(schema.tables) == 500 and sum(len(each.columns) for each in schema.tables) == 10_000
    assert sum(len(each.foreign_keys) for each in schema.tables) == 499
    assert seconds < 10, "half a second, and ten where the machine is busy"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_database_without_tables(databases: Databases, dialect: str) -> None:
    url = databases(dialect).create("CREATE TABLE t (a INTEGER)", "DROP TABLE t")
    with pytest.raises(UnsatisfiableError, match="no tables") as caught:
        reflect(url)
    assert caught.value.remedy


@pytest.mark.parametrize("dialect", SERVERS)
def test_a_user_who_may_read_nothing(databases: Databases, dialect: str) -> None:
    server = databases(dialect)
    assert isinstance(server, Server)
    name = sqlalchemy.make_url(server.create("CREATE TABLE closed (a INTEGER)")).database
    assert name is not None
    quiet = "'stranger'@'localhost'" if dialect == "mariadb" else "stranger"
    made = "IDENTIFIED BY 's'" if dialect == "mariadb" else "PASSWORD 's'"
    kind = "USER" if dialect == "mariadb" else "ROLE"
    run(
        server.url(name),
        [f"DROP {kind} IF EXISTS {quiet}", f"CREATE {kind} {quiet} {'LOGIN ' * (kind == 'ROLE')}{made}"],
    )
    with pytest.raises(GuidedError) as caught:
        reflect(server.url(name, "stranger", "s"))
    assert "GRANT SELECT" in (caught.value.remedy or "") and "\n" not in str(caught.value)
