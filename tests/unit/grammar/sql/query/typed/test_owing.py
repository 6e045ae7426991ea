"""What typed queries owe to their ends: prices are enough, are not far above, and forbid no query that fits."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import numpy as np
import pytest

import guided
from guided import tokenset
from guided.constraint.attributed import AttributedConstraint
from guided.grammar.attributed.language import AttributedLanguage
from guided.grammar.sql import Column, DatabaseSchema, Table, reflect
from guided.grammar.sql.query.language import query_language
from tests.amounts import each, some
from tests.databases import Databases
from tests.unit.grammar.sql.query import random_queries
from tests.unit.grammar.sql.query.test_queries import refusal
from tests.unit.grammar.sql.query.typed import test_analytics

DIALECTS = ("postgresql", "duckdb")
_KINDS = ("integer", "text", "date", "numeric(20,12)", "boolean", "timestamp")
SCHEMAS = (
    (
        Table("singer", (Column("id", "integer"), Column("name", "text"), Column("born", "date"),
                         Column("active", "boolean"), Column("note", "json"), Column("tags", "text[]"))),
        Table("concert", (Column("id", "bigint"), Column("singer", "integer"), Column("price", "numeric(10,2)"),
                          Column("at", "timestamp with time zone"), Column("name", "character varying"))),
    ),
    (
        Table("a very long name of a table", (Column("a very long name of a column", "timestamp with time zone"),
                                              Column('quo"ted', "interval"), Column("ünï", "uuid"))),
        Table("Other", (Column("a very long name of a column", "timestamp"), Column("x", "character(3)"),
                        Column("w", "bytea"), Column("p", "point"),
                        Column("state", "state_of_a_subscription", labels=("open", "on hold", "shut")))),
    ),
    tuple(Table(f"t{n}", tuple(Column(f"c{k}", _KINDS[(n + k) % 6]) for k in range(n, n + 8))) for n in range(4)),
)  # fmt: skip


@cache
def language_of(dialect: str, schema: int, forward: bool) -> AttributedLanguage:
    return query_language(DatabaseSchema(SCHEMAS[schema], dialect=dialect), forward=forward)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_prices_are_enough_wherever_a_random_text_stops(dialect: str) -> None:
    ends = prices = count = 0
    for seed in range(some(900, 50)):
        rng = random.Random(seed)
        language = language_of(dialect, seed % 3, bool(seed % 4))
        size = rng.choice([2, 3, 4, 5, 6, 8, 12, 20])
        text, _ = random_queries.begun(rng, language, size, rare=rng.random() < 0.4)
        at: Any = language.start
        for place, byte in enumerate(text.encode()):
            at = language.step(at, byte)
            if rng.random() < 0.4:
                end, price = language.rest(at), language.price(at)
                assert len(end) <= price, (text.encode()[: place + 1], end)
                ends, prices, count = ends + len(end), prices + price, count + 1
    assert count > some(900, 50)
    # They were ten times what an end takes before each part of them was told by its types.
    assert prices < 4 * ends


@pytest.mark.parametrize(("dialect", "text", "most"), [
    ("postgresql", "SELECT name FROM singer WHERE ", 40),
    ("postgresql", "SELECT count(*) FROM singer WHERE name = (SELECT max(name) FROM concert WHERE ", 80),
    ("duckdb", "SELECT 1 FROM singer s JOIN concert c ON s.id = c.singer AND ((s.id + ", 80),
    ("duckdb", "SELECT name, born FROM singer GROUP BY name, ", 60),
    ("postgresql", "SELECT name, sum(id) OVER (ORDER BY born), id + 1 ", 200),
])  # fmt: skip
def test_the_price_of_a_plain_text_is_low(dialect: str, text: str, most: int) -> None:
    language = language_of(dialect, 0, True)
    at: Any = language.start
    for byte in text.encode():
        at = language.step(at, byte)
    assert len(language.rest(at)) <= language.price(at) <= most


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_string_of_a_backslash_has_an_end(dialect: str) -> None:
    """It is kept as it is read, and escapes nothing."""
    language = language_of(dialect, 0, True)
    at: Any = language.start
    for byte in b"SELECT '\\":
        at = language.step(at, byte)
    assert language.rest(at) == b"'"


@pytest.mark.parametrize("begun", ["(", "((", "( VALUE", "(SELECT 1 UNION ("])
def test_values_begin_only_where_they_have_an_end(begun: str) -> None:
    """DuckDB has none in a bracket with which a query begins."""
    language = language_of("duckdb", 0, True)
    at: Any = language.start
    for byte in begun.encode():
        at = None if at is None else language.step(at, byte)
    assert (at is None) is ("VALUE" in begun)
    if at is not None:
        assert language.end(at) is not None
        assert (language.step(at, ord("V")) is not None) is ("UNION" in begun)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_no_query_that_fits_is_forbidden(dialect: str, databases: Databases) -> None:
    """Under the budget that the command line has where none is given."""
    schema = reflect(databases(dialect).create(*test_analytics.statements(dialect)))
    language = query_language(schema)
    some_texts = each(test_analytics.FIRST + test_analytics.OTHERS, 60)
    texts = [text for text in some_texts if refusal(language, text) is None]
    assert texts
    words = {word for text in texts for word in text.split() for word in (word, f" {word}")}
    tokens = [bytes([byte]) for byte in range(256)] + sorted(word.encode() for word in words if len(word) > 1)
    vocabulary = guided.Vocabulary.from_tokens([*tokens, None], eos_ids=[len(tokens)])
    constraint = AttributedConstraint(language, vocabulary)
    row = np.zeros(vocabulary.n_words, np.uint32)
    for text in texts:
        ids, state = spelled(tokens, text.encode()), constraint.start
        for place, token in enumerate(ids):
            constraint.fill_budget_mask(state, row, 512 - place)
            assert tokenset.contains(row, token), (text, place)
            state = constraint.advance(state, token)
        assert constraint.is_accepting(state)


def spelled(tokens: list[bytes], text: bytes) -> list[int]:
    """The longest tokens from the left."""
    ids = {token: place for place, token in enumerate(tokens)}
    longest = max(map(len, tokens))
    found = []
    while text:
        part = next(text[:size] for size in range(longest, 0, -1) if text[:size] in ids)
        found.append(ids[part])
        text = text[len(part) :]
    return found
