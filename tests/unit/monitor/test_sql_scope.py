"""PICARD's modes as languages: what each takes, and with guards every text runs on the database."""

from __future__ import annotations

import pickle
import random
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

import guided
from guided.errors import UnsatisfiableError, UnsupportedError
from guided.grammar.sql import Column, DatabaseSchema, ForeignKey, Table, reflect
from guided.monitor.sql import SqlMode, sql_scope
from guided.testing import check_constraint
from tests.amounts import some
from tests.twin.monitor_words import VOCABULARY, random_text
from tests.twin.sample import Sampler

STRICTEST_FIRST = (
    SqlMode.PARSE_WITH_GUARDS_AND_TYPE_CHECKING,
    SqlMode.PARSE_WITH_GUARDS,
    SqlMode.PARSE_WITHOUT_GUARDS,
    SqlMode.LEX,
)
SHOP = DatabaseSchema(
    (
        Table(
            "customer",
            (Column("id", "INTEGER"), Column("name", "TEXT", ("Ada",)), Column("order", "TEXT"), Column("größe")),
        ),
        Table(
            "purchase",
            (Column("id", "INTEGER"), Column("customer_id", "INTEGER"), Column("total", "REAL")),
            (),
            (ForeignKey(("customer_id",), "customer", ("id",)),),
        ),
    )
)
TEXTS = {
    # text: the strictest mode that accepts it, by its place in STRICTEST_FIRST; 4: none does
    "SELECT name FROM customer WHERE id = 3": 0,
    "SELECT T1.name FROM customer AS T1 JOIN purchase AS T2 ON T1.id = T2.customer_id WHERE T2.total > 5": 0,
    "SELECT name FROM customer WHERE id = 'x'": 0,
    "SELECT name FROM customer WHERE name = 'Eve'": 1,
    "SELECT name FROM customer WHERE total > 3": 2,
    "SELECT T2.name FROM customer AS T1": 2,
    "SELECT id FROM customer JOIN purchase ON purchase.customer_id = customer.id": 2,
    "SELECT T1.total FROM customer AS T1 JOIN purchase AS T2 ON T1.id = T2.customer_id": 2,
    "SELECT purchase.total FROM customer": 2,
    "SELECT SUM(COUNT(*)) FROM customer": 2,
    "SELECT FROM WHERE customer name 3 = (": 3,
    'SELECT "größe" , T1 "order"': 3,
    "SELECT secret FROM customer": 4,
    "SELECT name FROM customers": 4,
    "SELECTname FROM customer": 4,
    "DROP TABLE customer": 4,
    "": 4,
}


def accepts(constraint: guided.Constraint, text: str) -> bool:
    state = constraint.advance_bytes(constraint.start, text.encode())
    return state != 0 and constraint.is_accepting(state)


@pytest.mark.parametrize("place", range(4))
def test_what_each_mode_accepts(place: int) -> None:
    constraint = guided.compile(sql_scope(SHOP, STRICTEST_FIRST[place]), VOCABULARY)
    for text, strictest in TEXTS.items():
        assert accepts(constraint, text) is (strictest <= place), text


def test_lexing_alone_takes_what_parses() -> None:
    sampler = Sampler(sql_scope(SHOP, SqlMode.PARSE_WITHOUT_GUARDS), random.Random(2), depth=7)
    looser = guided.compile(sql_scope(SHOP, SqlMode.LEX), VOCABULARY)
    for _ in range(40):
        text = sampler.sentence().decode()
        assert accepts(looser, text), text


@pytest.mark.parametrize("mode", [SqlMode.LEX, SqlMode.PARSE_WITHOUT_GUARDS])
def test_contracts_of_the_modes_without_guards(mode: SqlMode) -> None:
    check_constraint(guided.compile(sql_scope(SHOP, mode), VOCABULARY), walks=3, length=15, threads=1)


def failures(path: Path, texts: list[str]) -> list[tuple[str, str]]:
    """The texts that the database refuses, with its words; a query that only takes long is interrupted and runs."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    connection.set_progress_handler(lambda: 1, 2_000_000)
    found = []
    for text in texts:
        try:
            connection.execute(text).fetchmany(3)
        except sqlite3.Error as error:
            if "interrupted" not in str(error):
                found.append((text, str(error)))
    connection.close()
    return found


def test_texts_sampled_through_masks_run(data: Path) -> None:
    rng = random.Random(3)
    path = data / "text2sql" / "spider" / "db" / "pets_1.sqlite"
    constraint = guided.compile(sql_scope(f"sqlite:///{path}"), VOCABULARY)
    texts = []
    for _ in range(some(6, 6)):
        weights = [rng.expovariate(1.0) ** 3 for _ in range(VOCABULARY.size)]
        texts.append(random_text(constraint, rng, some(160, 2), weights).decode())
    assert failures(path, texts) == []


def test_options_and_refusals(data: Path) -> None:
    with pytest.raises(UnsupportedError, match="postgresql"):
        sql_scope(replace(SHOP, dialect="postgresql"), SqlMode.LEX)
    with pytest.raises(UnsatisfiableError):
        sql_scope(DatabaseSchema(()), SqlMode.PARSE_WITHOUT_GUARDS)
    for mode in SqlMode:
        grammar = sql_scope(SHOP, mode)
        assert pickle.loads(pickle.dumps(grammar)).key == grammar.key
    assert len({sql_scope(SHOP, mode).key for mode in SqlMode}) == 4
    schema = reflect(data / "text2sql" / "spider" / "db" / "pets_1.sqlite")
    assert sql_scope(schema, SqlMode.LEX).notes == schema.notes
