"""Strings that are compared with a column whose values are known."""

from __future__ import annotations

import random
import sqlite3
from dataclasses import replace

import numpy as np
import pytest

import guided
from guided.grammar.attributed.language import AttributedLanguage
from guided.grammar.sql import Column, DatabaseSchema, Table, sql
from guided.grammar.sql.query.language import query_language
from guided.testing import brute_force_mask
from tests.amounts import some
from tests.unit.grammar.sql.query.random_queries import begun

SHOP = DatabaseSchema(
    (
        Table(
            "customer", (Column("id"), Column("city", "TEXT", ("Oslo", "Rome", "it's", 'a "b" c', "É")), Column("name"))
        ),
        Table("shop", (Column("place", "TEXT", ("Oslo", "")), Column("owner", "TEXT", ("Ada", "x" * 119)))),
    )
)

TAKEN = """
SELECT id FROM customer WHERE city = 'Oslo'
SELECT id FROM customer WHERE city != 'it''s' AND name = 'Paris'
SELECT id FROM customer WHERE city = "Oslo" OR city <> "a ""b"" c"
SELECT id FROM customer c WHERE c.city == 'Rome'
SELECT id FROM customer WHERE CITY IN ('Rome', "Oslo", 'É')
SELECT id FROM customer WHERE city NOT IN ('Rome') AND 'Paris' = name
SELECT id FROM customer WHERE city IS NOT 'Rome'
SELECT id FROM customer WHERE city = ('Rome') OR city = name || 'x' OR name || city = 'Paris'
SELECT id FROM customer WHERE lower(city) = 'paris' OR city LIKE 'P%' OR city > 'P' OR city BETWEEN 'A' AND 'P'
SELECT id FROM customer WHERE city = lower('PARIS') OR city = CASE WHEN name = 'Paris' THEN 'a' ELSE 'b' END
SELECT id FROM customer WHERE city = NULL AND 'Paris' < name OR city COLLATE nocase = 'oslo'
SELECT id FROM customer WHERE city = (SELECT place FROM shop WHERE place = '') OR 'Paris' = city
SELECT id FROM customer WHERE EXISTS (SELECT 1 FROM shop WHERE city = 'Rome' AND place = 'Oslo')
SELECT id FROM customer JOIN shop ON place = 'Oslo' AND owner = 'anyone, since one of its values is long'
SELECT CASE WHEN city = 'Paris' THEN 1 END FROM customer
""".strip().splitlines()

REFUSED = """
SELECT id FROM customer WHERE city = 'Paris'
SELECT id FROM customer WHERE city = 'oslo'
SELECT id FROM customer WHERE city = "Paris"
SELECT id FROM customer WHERE city IN ('Rome', 'Paris')
SELECT id FROM customer c WHERE c.city <> 'Paris'
SELECT id FROM customer WHERE city IS 'Paris'
SELECT id FROM customer WHERE EXISTS (SELECT 1 FROM shop WHERE city = 'Paris')
SELECT id FROM customer JOIN shop ON place = 'Rome'
SELECT id FROM customer GROUP BY name HAVING city = 'Paris'
""".strip().splitlines()


@pytest.fixture(scope="module")
def language() -> AttributedLanguage:
    return query_language(SHOP)


@pytest.mark.parametrize("text", TAKEN)
def test_what_a_column_holds_is_taken(text: str, language: AttributedLanguage) -> None:
    assert language.reads(text.encode())


@pytest.mark.parametrize("text", REFUSED)
def test_what_a_column_does_not_hold_is_refused(text: str, language: AttributedLanguage) -> None:
    assert not language.reads(text.encode())
    free = (replace(table, columns=tuple(replace(one, values=()) for one in table.columns)) for table in SHOP.tables)
    assert query_language(replace(SHOP, tables=tuple(free))).reads(text.encode())


def test_random_texts_are_prepared(language: AttributedLanguage) -> None:
    connection = sqlite3.connect(":memory:")
    for table in SHOP.tables:
        connection.execute(f"CREATE TABLE {table.name} ({', '.join(column.name for column in table.columns)})")
    for seed in range(some(400, 16)):
        text, at = begun(random.Random(seed), language, 30)
        rest = language.rest(at)
        assert len(rest) <= language.price(at), text
        connection.execute("EXPLAIN " + text + rest.decode())


def test_mysql_has_values_too() -> None:
    language = query_language(replace(SHOP, dialect="mariadb"))
    free = (replace(table, columns=tuple(replace(one, values=()) for one in table.columns)) for table in SHOP.tables)
    anything = query_language(replace(SHOP, tables=tuple(free), dialect="mariadb"))
    for text in TAKEN:
        if "COLLATE" not in text and "==" not in text and "IS NOT 'Rome'" not in text and "||" not in text:
            assert anything.reads(text.encode()), text
            assert language.reads(text.encode()), text
    refused = [text for text in REFUSED if " IS " not in text and "GROUP BY" not in text]
    for text in refused:
        assert anything.reads(text.encode()), text
        assert not language.reads(text.encode()), text
    for seed in range(some(200, 40)):
        text, at = begun(random.Random(seed), language, 30)
        rest = language.rest(at)
        assert anything.reads((text + rest.decode()).encode()), text + rest.decode()


def test_masks_are_the_tokens_that_can_be_read() -> None:
    pieces = ("Oslo", "'Oslo'", "Os", " = 'Os", "it''s", '= "Oslo', "('Rome', '", "'R", "', ", '" ', "x", 'a ""b')
    tokens = [*(bytes([byte]) for byte in range(256)), *(piece.encode() for piece in pieces), None]
    vocabulary = guided.Vocabulary.from_tokens(tokens, eos_ids=[len(tokens) - 1])
    constraint = guided.compile(sql(SHOP), vocabulary)
    row = np.zeros(vocabulary.n_words, np.uint32)
    for text in TAKEN[2:5]:
        state = constraint.start
        for byte in text.encode():
            constraint.fill_mask(state, row)
            assert (row == brute_force_mask(constraint, state)).all()
            state = constraint.advance(state, byte)


def test_many_values() -> None:
    many = tuple(f"value {number}" for number in range(100_000))
    language = query_language(DatabaseSchema((Table("t", (Column("a", "TEXT", many),)),)))
    assert language.reads(b"SELECT a FROM t WHERE a = 'value 99999'")
    assert not language.reads(b"SELECT a FROM t WHERE a = 'value 100000'")
