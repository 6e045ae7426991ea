"""The SQL grammar: whatever it generates runs on the database, and nothing names what the database does not have."""

from __future__ import annotations

import pickle
import random
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
import sqlglot

from guided.errors import GrammarError, UnsatisfiableError, UnsupportedError
from guided.grammar.ir import Grammar
from guided.grammar.sql import Column, DatabaseSchema, ForeignKey, Table, sql
from guided.grammar.sql.spelling import identifier
from tests import vocabularies
from tests.amounts import mostly_slow, some
from tests.twin import earley
from tests.twin.descent import Descent
from tests.twin.sample import Sampler

TYPES = ("INTEGER", "TEXT", "VARCHAR(30)", "REAL", "DATE", "BOOLEAN", "", "MY OWN TYPE", "bigint", "numeric(10, 2)")
NAMES = (
    "id", "name", "order", "Group", "first name", "a", "B", "x.y", "it's", 'say "hi"', "größe", "日本", "select", "T1", "count",
    "c1", "_x", "1st", "a-b", "true", "年 x", "where", "price", "semi;colon", "rowid", "value", "--", "/*", "sum", "like",
)  # fmt: skip


def schema(seed: int) -> DatabaseSchema:
    """A random schema with awkward names, keys, and sampled values."""
    rng = random.Random(seed)
    names = rng.sample([name for name in NAMES if name != "rowid"], rng.randint(1, 5))
    tables: list[Table] = []
    for name in names:
        columns = tuple(
            Column(column, rng.choice(TYPES), rng.choice([(), (), ("a", "it's", "é")]))
            for column in rng.sample(NAMES, rng.randint(1, 6))
        )
        keys = ()
        if tables and rng.random() < 0.7:
            other = rng.choice(tables)
            keys = (ForeignKey((columns[0].name,), other.name, (rng.choice(other.columns).name,)),)
        tables.append(Table(name, columns, (), keys))
    return DatabaseSchema(tuple(tables))


def database(schema: DatabaseSchema) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    for table in schema.tables:
        columns = ", ".join(f'{quoted(column.name)} "{column.type}"' for column in table.columns)
        connection.execute(f"CREATE TABLE {quoted(table.name)} ({columns})")
        marks = ", ".join("?" for _ in table.columns)
        for row in range(3):
            values = [row if "INT" in column.type.upper() else f"v{row}" for column in table.columns]
            connection.execute(f"INSERT INTO {quoted(table.name)} VALUES ({marks})", values)
    return connection


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


SHOP = DatabaseSchema(
    (
        Table(
            "customer",
            (Column("id", "INTEGER"), Column("name", "TEXT"), Column("city", "TEXT", ("Oslo", "Rome")), Column("vip", "BOOLEAN")),
            ("id",),
        ),
        Table(
            "purchase",
            (Column("id", "INTEGER"), Column("customer_id", "INTEGER"), Column("total", "REAL"), Column("day", "DATE")),
            ("id",),
            (ForeignKey(("customer_id",), "customer", ("id",)),),
        ),
    )
)  # fmt: skip

ACCEPTED = """
SELECT * FROM customer
SELECT name FROM customer
SELECT DISTINCT customer.name FROM customer WHERE customer.id > 3 ORDER BY customer.name DESC LIMIT 5 OFFSET 2
SELECT COUNT(*) FROM purchase WHERE total BETWEEN 1 AND 2.5 OR NOT total IS NULL
SELECT city, COUNT(DISTINCT name), AVG(id) FROM customer GROUP BY city HAVING COUNT(*) > 2 ORDER BY COUNT(*) DESC
SELECT customer.name, total FROM customer JOIN purchase ON purchase.customer_id = customer.id
SELECT customer.name FROM purchase LEFT JOIN customer ON customer.id = purchase.customer_id AND purchase.total > 5
SELECT T1.name, T2.total FROM customer AS T1 JOIN purchase AS T2 ON T1.id = T2.customer_id WHERE T2.day >= '2024-01-01'
SELECT T1.name FROM customer AS T1 JOIN customer AS T2 ON T1.id = T2.id
SELECT name FROM customer WHERE id IN (SELECT customer_id FROM purchase WHERE total > (SELECT AVG(total) FROM purchase))
SELECT name FROM customer WHERE NOT EXISTS (SELECT * FROM purchase WHERE purchase.customer_id = customer.id)
SELECT name, (SELECT SUM(total) FROM purchase WHERE purchase.customer_id = customer.id) FROM customer
SELECT id FROM customer UNION SELECT customer_id FROM purchase ORDER BY 1 DESC LIMIT 3
SELECT id, name FROM customer EXCEPT SELECT id, day FROM purchase
SELECT AVG(c1) FROM (SELECT COUNT(*) AS c1 FROM purchase GROUP BY customer_id) AS T1
SELECT name FROM customer WHERE city = 'Oslo' AND name LIKE 'A%' AND vip = TRUE
SELECT ROUND(100.0 * SUM(CASE WHEN total > 5 THEN 1 ELSE 0 END) / COUNT(*), 2) FROM purchase
SELECT CAST(STRFTIME('%Y', day) AS INTEGER), SUM(total * 2 - id) FROM purchase GROUP BY STRFTIME('%Y', day)
SELECT name FROM customer WHERE city IN ('Rome', 'Oslo') OR city LIKE '%o%' AND LOWER(name) = 'it''s'
SELECT customer.* FROM customer CROSS JOIN purchase
SELECT name || ' of ' || city FROM customer
"""

REJECTED = """
SELECT * FROM customers
SELECT nam FROM customer
SELECT total FROM customer
SELECT purchase.total FROM customer
SELECT id FROM customer JOIN purchase ON purchase.customer_id = customer.id
SELECT T2.name FROM customer AS T1 JOIN purchase AS T2 ON T1.id = T2.customer_id
SELECT name FROM customer WHERE COUNT(*) > 1
SELECT SUM(COUNT(*)) FROM customer
SELECT name FROM customer HAVING COUNT(*) > 1
SELECT name FROM customer ORDER BY COUNT(*)
SELECT name FROM customer ORDER BY 5
SELECT name FROM customer GROUP BY COUNT(*)
SELECT name FROM customer GROUP BY 1
SELECT name FROM customer WHERE id IN (SELECT id, total FROM purchase)
SELECT name FROM customer UNION SELECT id, total FROM purchase
SELECT id FROM customer UNION SELECT customer_id FROM purchase ORDER BY 2
SELECT id FROM customer UNION SELECT customer_id FROM purchase ORDER BY total
SELECT name FROM customer WHERE id = 'x'
SELECT name FROM customer WHERE name = 3
SELECT name FROM customer WHERE city = 'Paris'
SELECT name FROM customer WHERE city IN ('Oslo', 'Paris')
SELECT CASE WHEN city = 'Paris' THEN 1 END FROM customer
SELECT name FROM customer WHERE EXISTS (SELECT * FROM purchase WHERE purchase.customer_id = customer.total)
SELECT c2 FROM (SELECT name AS c1 FROM customer) AS T1
SELECT name FROM customer; DELETE FROM customer
SELECT name FROM customer;
DELETE FROM customer
select name from customer
SELECT  name FROM customer
SELECT name FROM sqlite_master
SELECT load_extension('x') FROM customer
"""


@pytest.fixture(scope="module")
def shop() -> Grammar:
    return sql(SHOP)


def lines(text: str) -> list[str]:
    return text.strip().splitlines()


def test_accepted_and_rejected(shop: Grammar) -> None:
    twin, connection = Descent(shop), database(SHOP)
    for text in lines(ACCEPTED):
        assert twin.accepts(text.encode()), (text, text[twin.farthest :])
        connection.execute(text)
    for text in lines(REJECTED):
        assert not twin.accepts(text.encode()), text


def test_the_two_twins_agree() -> None:
    small = sql(SHOP, max_subquery_depth=1, max_tables=1, aliases="names")
    descent = Descent(small)
    for text in [*lines(ACCEPTED)[:5], *lines(REJECTED)[:4]]:
        assert earley.accepts(small, text.encode()) is descent.accepts(text.encode()), text


@pytest.mark.parametrize("seed", mostly_slow(range(24), 12))
def test_random_queries_run(seed: int) -> None:
    tables = schema(seed)
    options = {"joins": ("any", "keys")[seed % 2], "aliases": ("both", "names", "numbered")[seed % 3], "max_scopes": 60}
    grammar = sql(tables, **options)  # type: ignore[arg-type]
    sampler = Sampler(grammar, random.Random(seed), depth=4 + seed % 8, more=0.25)
    twin, connection = Descent(grammar), database(tables)
    for number in range(some(60, 3)):
        text = sampler.sentence().decode()
        try:
            connection.execute(text).fetchmany(3)
        except sqlite3.Error as error:
            assert "integer overflow" in str(error), (text, error)
        if number < 5:
            assert twin.accepts(text.encode()), text


def test_random_queries_are_select_statements_to_sqlglot(shop: Grammar) -> None:
    sampler = Sampler(shop, random.Random(7), depth=9, more=0.3)
    for _ in range(100):
        tree = sqlglot.parse_one(sampler.sentence().decode(), dialect="sqlite")
        assert isinstance(tree, sqlglot.exp.Query)
        named = {table.name for table in tree.find_all(sqlglot.exp.Table)}
        assert named <= {"customer", "purchase"}


@pytest.mark.parametrize("seed", range(6))
def test_any_white_space_and_case(seed: int) -> None:
    tables = schema(seed)
    grammar = sql(tables, whitespace="any", ignore_case=True, max_scopes=30)
    sampler, connection = Sampler(grammar, random.Random(seed), depth=7), database(tables)
    for _ in range(some(40, 2)):
        connection.execute(sampler.sentence().decode()).fetchmany(3)
    twin = Descent(sql(SHOP, whitespace="any", ignore_case=True))
    assert twin.accepts(b"select\n count( * )  from CUSTOMER where id>=-5 And Name  like 'x'")
    assert not twin.accepts(b"selectcount(*) from customer")


def test_keywords_and_odd_names_are_quoted() -> None:
    assert [identifier(name) for name in ("a_1", "1a", "from", "é", "a b", 'q"q')] == [
        "a_1", '"1a"', '"from"', '"é"', '"a b"', '"q""q"',
    ]  # fmt: skip


def test_sub_query_depth() -> None:
    query = "SELECT name FROM customer WHERE id IN (SELECT id FROM customer WHERE id IN (SELECT id FROM customer))"
    assert [Descent(sql(SHOP, max_subquery_depth=depth)).accepts(query.encode()) for depth in (0, 1, 2)] == [
        False,
        False,
        True,
    ]


def test_joins_on_keys_only() -> None:
    twin = Descent(sql(SHOP, joins="keys"))
    assert twin.accepts(b"SELECT total FROM customer JOIN purchase ON customer.id = purchase.customer_id")
    assert not twin.accepts(b"SELECT total FROM customer JOIN purchase ON customer.id = purchase.total")
    assert Descent(sql(SHOP)).accepts(b"SELECT total FROM customer JOIN purchase ON customer.id = purchase.total")


def test_what_does_not_fit_is_said() -> None:
    column = (Column("id", "INTEGER"), Column("other", "INTEGER"))
    many = DatabaseSchema(tuple(Table(f"t{n}", (*column, Column(f"c{n}"))) for n in range(40)))
    grammar = sql(many, max_scopes=100)
    assert any("max_scopes=100" in note for note in grammar.notes)
    assert len(grammar.rules) < 20_000
    assert Descent(grammar).accepts(b"SELECT c7 FROM t7 WHERE id = 3")
    assert not sql(SHOP).notes


def test_options_and_errors() -> None:
    for wrong in (
        {"whitespace": "tabs"},
        {"aliases": "x"},
        {"joins": "x"},
        {"max_tables": 0},
        {"max_scopes": 0},
        {"max_subquery_depth": -1},
    ):
        with pytest.raises(GrammarError):
            sql(SHOP, **wrong)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="postgresql"):
        sql(SHOP, dialect="postgresql")
    with pytest.raises(UnsupportedError, match="mysql"):
        sql(replace(SHOP, dialect="mysql"))
    with pytest.raises(UnsatisfiableError, match="no tables"):
        sql(DatabaseSchema(()))
    with pytest.raises(UnsatisfiableError, match="'empty'"):
        sql(DatabaseSchema((Table("empty", ()),)))


def test_equal_sources_have_equal_keys_and_pickle() -> None:
    first, second = sql(SHOP), sql(DatabaseSchema(tuple(SHOP.tables)))
    assert first.key == second.key != sql(SHOP, joins="keys").key
    assert pickle.loads(pickle.dumps(first)).key == first.key


def test_the_engine_agrees(shop: Grammar) -> None:
    from guided.constraint.compile import compile

    vocabulary = vocabularies.of_bytes()
    constraint = compile(sql(SHOP, max_subquery_depth=1), vocabulary)
    for texts, wanted in ((lines(ACCEPTED), True), (lines(REJECTED), False)):
        for text in texts:
            if text.count("(SELECT") < 2:
                state = constraint.advance_bytes(constraint.start, text.encode())
                assert (state != 0 and constraint.is_accepting(state)) is wanted, text


def test_shipped_databases(data: Path) -> None:
    from guided.grammar.sql import reflect

    for name in ("concert_singer", "voter_1"):
        path = data / "text2sql" / "spider" / "db" / f"{name}.sqlite"
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        sampler = Sampler(sql(reflect(f"sqlite:///{path}")), random.Random(3), depth=8)
        for _ in range(some(80, 2)):
            connection.execute(sampler.sentence().decode()).fetchmany(3)
