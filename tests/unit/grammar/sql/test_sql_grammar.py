"""`guided.sql`: a grammar like any other where a whole text is wanted, whose texts the database prepares."""

from __future__ import annotations

import pickle
import random
import sqlite3
from dataclasses import replace

import numpy as np
import pytest

import guided
from guided.constraint.attributed import AttributedConstraint
from guided.constraint.constraint import Constraint
from guided.errors import UnsatisfiableError, UnsupportedError
from guided.grammar.attributed.language import AttributedLanguage
from guided.grammar.ir import Grammar
from guided.grammar.sql import Column, DatabaseSchema, ForeignKey, Table, sql
from guided.grammar.sql.spelling import identifier
from guided.monitor.joint import joint
from guided.testing import check_constraint
from tests import vocabularies
from tests.amounts import each, mostly_slow, some
from tests.unit.grammar.sql.query.random_queries import begun

TYPES = ("INTEGER", "TEXT", "VARCHAR(30)", "REAL", "DATE", "BOOLEAN", "", "MY OWN TYPE", "bigint", "numeric(10, 2)")
NAMES = (
    "id", "name", "order", "Group", "first name", "a", "B", "x.y", "it's", 'say "hi"', "größe", "日本", "select", "T1",
    "count", "c1", "_x", "1st", "a-b", "true", "年 x", "where", "price", "semi;colon", "value", "--", "/*", "sum", "like",
    "x" * 64, "long " * 20, "`", "a`b", "[a]", "É", "ǅ", "😀", "null", "case", "$1", "a$b", "%s", ":x",
)  # fmt: skip


def schema(seed: int) -> DatabaseSchema:
    """A random schema with awkward names and keys."""
    rng = random.Random(seed)
    tables: list[Table] = []
    for name in rng.sample(NAMES, rng.randint(1, 5)):
        columns = tuple(Column(column, rng.choice(TYPES)) for column in rng.sample(NAMES, rng.randint(1, 6)))
        keys: tuple[ForeignKey, ...] = ()
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
    return connection


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def language(grammar: Grammar) -> AttributedLanguage:
    assert grammar.language is not None
    return grammar.language()


SHOP = DatabaseSchema(
    (
        Table(
            "customer",
            (Column("id", "INTEGER"), Column("name", "TEXT"), Column("city", "TEXT"), Column("vip", "BOOLEAN")),
            ("id",),
        ),
        Table(
            "purchase",
            (Column("id", "INTEGER"), Column("customer_id", "INTEGER"), Column("total", "REAL"), Column("day", "DATE")),
            ("id",),
            (ForeignKey(("customer_id",), "customer", ("id",)),),
        ),
    )
)


@pytest.mark.parametrize("seed", mostly_slow(range(16), 1))
def test_random_queries_over_awkward_names_are_prepared(seed: int) -> None:
    tables = schema(seed)
    chosen, connection = language(sql(tables)), database(tables)
    for number in range(some(60, 6)):
        text, at = begun(random.Random(1000 * seed + number), chosen, 4 + number)
        whole = text + chosen.rest(at).decode()
        connection.execute("EXPLAIN " + whole)
        assert chosen.reads(whole.encode()), whole


@pytest.mark.parametrize("name", each(NAMES, 3))
def test_every_name_can_be_written(name: str) -> None:
    tables = DatabaseSchema((Table(name, (Column(name),)),))
    query = f"SELECT t1.{quoted(name)} FROM {quoted(name)} AS t1"
    database(tables).execute("EXPLAIN " + query)
    assert language(sql(tables)).reads(query.encode())


def test_texts_sampled_through_masks_run() -> None:
    vocabulary = vocabularies.of_bytes()
    constraint = guided.compile(sql(SHOP), vocabulary)
    connection, row = database(SHOP), np.zeros(vocabulary.n_words, np.uint32)
    for seed in range(some(8, 8)):
        rng = np.random.default_rng(seed)
        state, written = constraint.start, b""
        for left in range(120, 0, -1):
            constraint.fill_budget_mask(state, row, left)
            token = int(rng.choice(guided.tokenset.ids(row)))
            state = constraint.advance(state, token)
            if state == constraint.end:
                break
            written += vocabulary.token_bytes(token) or b""
        assert state == constraint.end
        connection.execute("EXPLAIN " + written.decode())


@pytest.mark.parametrize("dialect", each(["sqlite", "mysql", "mariadb", "postgresql", "duckdb"], 2))
def test_contracts(dialect: str) -> None:
    constraint = guided.compile(sql(replace(SHOP, dialect=dialect)), vocabularies.of_bytes())
    assert isinstance(constraint, AttributedConstraint)
    check_constraint(constraint, walks=some(3, 8), length=12, threads=2)


def test_what_is_missing_is_said() -> None:
    with pytest.raises(UnsupportedError, match="oracle"):
        sql(replace(SHOP, dialect="oracle"))
    with pytest.raises(UnsatisfiableError, match="no tables"):
        sql(DatabaseSchema(()))


def test_tables_with_names_that_no_text_holds_are_left_out() -> None:
    odd = tuple(
        Table(name, (Column(column),))
        for name, column in (("\t", "a"), ("t", "a\x00b"), ("", "a"), ("u", ""), ("v", "y" * 251))
    )
    grammar = sql(replace(SHOP, tables=(*SHOP.tables, *odd)))
    assert [note.split("'")[1] for note in grammar.notes] == [r"\t", "t", "", "u", "v"]
    assert language(grammar).reads(b"SELECT name FROM customer")
    assert not language(grammar).reads(b"SELECT a FROM t")
    with pytest.raises(UnsatisfiableError, match="no tables"):
        sql(DatabaseSchema(odd))


def test_values_that_are_not_held_are_named() -> None:
    table = Table("t", (Column("a", "text", ("x",)),))
    assert not sql(DatabaseSchema((table,))).notes
    (note,) = sql(DatabaseSchema((table,), "postgresql")).notes
    assert "not held to values" in note


def test_equal_sources_have_equal_keys_and_pickle() -> None:
    first, second = sql(SHOP), sql(DatabaseSchema(tuple(SHOP.tables)))
    assert first.key == second.key != sql(SHOP, forward=False).key
    assert pickle.loads(pickle.dumps(first)).key == first.key
    vocabulary = vocabularies.of_bytes()
    assert guided.compile(first, vocabulary) is guided.compile(second, vocabulary)
    assert "L-attributed" in repr(first)


def test_it_is_no_part_of_other_grammars() -> None:
    with pytest.raises(UnsupportedError, match="no part of another grammar"):
        guided.tags([guided.Tag("<sql>", sql(SHOP), "</sql>")])
    with pytest.raises(UnsupportedError, match=r"guided\.compile"):
        Constraint(sql(SHOP), vocabularies.of_bytes())
    with pytest.raises(UnsupportedError, match="names no parts"):
        guided.captures(sql(SHOP), "SELECT 1")


def test_it_is_joint_with_other_constraints() -> None:
    vocabulary = vocabularies.of_bytes()
    short = guided.compile(guided.regex("SELECT [ -Z_a-z]{1,60}"), vocabulary)
    both = joint([guided.compile(sql(SHOP), vocabulary), short])
    for text, wanted in (
        (b"SELECT name FROM customer", True),
        (b"SELECT nam FROM customer", False),
        (b"SELECT name\nFROM customer", False),
    ):
        state = both.advance_bytes(both.start, text)
        assert (state != 0 and both.is_accepting(state)) is wanted, text


def test_keywords_and_odd_names_are_quoted() -> None:
    assert [identifier(name) for name in ("a_1", "1a", "from", "é", "a b", 'q"q')] == [
        "a_1", '"1a"', '"from"', '"é"', '"a b"', '"q""q"',
    ]  # fmt: skip
