"""PICARD's modes as languages: each holds the stricter one, and with guards every text runs on the database."""

from __future__ import annotations

import pickle
import random
import sqlite3
from pathlib import Path

import pytest

import guided
from guided.errors import GrammarError, UnsatisfiableError
from guided.grammar.sql import Column, DatabaseSchema, ForeignKey, Table, reflect
from guided.monitor.sql import SqlMode, sql_scope
from guided.testing import check_constraint
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
        Table("customer", (Column("id", "INTEGER"), Column("name", "TEXT"), Column("order", "TEXT"), Column("größe"))),
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
    "SELECT name FROM customer WHERE id = 'x'": 1,
    "SELECT name FROM customer WHERE total > 3": 2,
    "SELECT T2.name FROM customer AS T1": 2,
    "SELECT id FROM customer JOIN purchase ON purchase.customer_id = customer.id": 2,
    "SELECT T1.total FROM customer AS T1 JOIN purchase AS T2 ON T1.id = T2.customer_id": 2,
    "SELECT purchase.total FROM customer": 2,
    "SELECT SUM(COUNT(*)) FROM customer": 2,
    "SELECT FROM WHERE customer name 3 = (": 3,
    'SELECT "größe" , "order" T1': 3,
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


@pytest.mark.parametrize("place", range(3))
def test_each_mode_holds_the_stricter_one(place: int) -> None:
    sampler = Sampler(sql_scope(SHOP, STRICTEST_FIRST[place]), random.Random(place), depth=7)
    looser = guided.compile(sql_scope(SHOP, STRICTEST_FIRST[place + 1]), VOCABULARY)
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


def databases(data: Path) -> list[Path]:
    return sorted((data / "text2sql").rglob("*.sqlite"))


def test_every_query_with_guards_runs(data: Path) -> None:
    for path in databases(data)[::5]:
        sampler = Sampler(sql_scope(f"sqlite:///{path}"), random.Random(5), depth=8)
        assert failures(path, [sampler.sentence().decode() for _ in range(25)]) == []


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("seed", "depth"), [(1, 6), (2, 8), (3, 10)])
def test_many_queries_with_guards_run(seed: int, depth: int, data: Path) -> None:
    for path in databases(data):
        sampler = Sampler(sql_scope(f"sqlite:///{path}"), random.Random(seed), depth=depth)
        assert failures(path, [sampler.sentence().decode() for _ in range(300)]) == []


def test_texts_sampled_through_masks_run(data: Path) -> None:
    rng = random.Random(3)
    path = data / "text2sql" / "spider" / "db" / "pets_1.sqlite"
    constraint = guided.compile(sql_scope(f"sqlite:///{path}", max_subquery_depth=1, max_tables=2), VOCABULARY)
    texts = []
    for _ in range(6):
        weights = [rng.expovariate(1.0) ** 3 for _ in range(VOCABULARY.size)]
        texts.append(random_text(constraint, rng, 160, weights).decode())
    assert failures(path, texts) == []


def test_options_and_refusals(data: Path) -> None:
    with pytest.raises(GrammarError, match="max_tables"):
        sql_scope(SHOP, SqlMode.LEX, max_tables=2)
    with pytest.raises(UnsatisfiableError):
        sql_scope(DatabaseSchema(()), SqlMode.PARSE_WITHOUT_GUARDS)
    for mode in SqlMode:
        grammar = sql_scope(SHOP, mode)
        assert pickle.loads(pickle.dumps(grammar)).key == grammar.key
    assert len({sql_scope(SHOP, mode).key for mode in SqlMode}) == 4
    schema = reflect(data / "text2sql" / "spider" / "db" / "pets_1.sqlite")
    assert sql_scope(schema, SqlMode.LEX).notes == schema.notes
