"""Signs and keywords are refused where nothing may come behind them, not one lexeme later."""

from __future__ import annotations

import random

import pytest

from guided.grammar.attributed.language import AttributedLanguage
from guided.grammar.attributed.nodes import Keyword, Sign
from guided.grammar.sql import Column, DatabaseSchema, Table
from guided.grammar.sql.query.language import query_language
from tests.amounts import some
from tests.unit.grammar.sql.query import random_queries
from tests.unit.grammar.sql.query.test_queries import refusal

TYPES = {
    "sqlite": ("INTEGER", "TEXT", "TEXT"),
    "mariadb": ("int", "varchar(20)", "date"),
    "postgresql": ("integer", "text", "text[]"),
    "duckdb": ("INTEGER", "VARCHAR", "VARCHAR[]"),
}
DEAD = [
    ("postgresql", "SELECT " + "(" * 13),
    ("postgresql", "SELECT 1 + " + "(" * 13),
    ("postgresql", "(" * 13),
    ("postgresql", "SELECT RIGHT(b, 1,"),
    ("postgresql", "SELECT 1 FROM t WHERE " + "(" * 12 + "c = ANY"),
    ("duckdb", "SELECT " + "(" * 13),
    ("duckdb", "(" * 13),
    ("duckdb", "SELECT RIGHT(b, 1,"),
    ("duckdb", "(VALUES"),
    ("duckdb", "SELECT NULL ORDER BY ALL"),
    ("duckdb", "SELECT unnest(c), count(*) FROM t GROUP BY ALL"),
    ("mariadb", "SELECT row_number() OVER (ORDER BY min(1) OVER"),
]


def _language(dialect: str) -> AttributedLanguage:
    columns = tuple(Column(name, kind) for name, kind in zip("abc", TYPES[dialect], strict=True))
    return query_language(DatabaseSchema((Table("t", columns),), dialect=dialect))


@pytest.fixture(scope="module", params=TYPES)
def language(request: pytest.FixtureRequest) -> AttributedLanguage:
    return _language(request.param)


@pytest.mark.parametrize(("dialect", "text"), DEAD)
def test_what_nothing_follows_is_refused(dialect: str, text: str) -> None:
    at = refusal(_language(dialect), text)
    assert at is not None
    assert at < len(text)


def test_each_sign_and_keyword_leads_on(language: AttributedLanguage) -> None:
    for seed in range(some(1000, 3)):
        rng = random.Random(f"leads/{seed}")
        at, text, bracket = language.start, "", rng.random() * 0.8
        for _ in range(some(60, 20)):
            place = language.resolved(at)
            assert place is not None
            for open_ in place.opens:
                if isinstance(open_.terminal, Sign | Keyword):
                    lexeme = random_queries.lexeme(rng, language, open_)
                    after = random_queries.read(language, at, f" {lexeme}")
                    assert after is None or language.may_be_over(after), f"{text} {lexeme}"
            opens = list(place.opens)
            rng.shuffle(opens)
            if rng.random() < bracket:
                opens.sort(key=lambda one: not (isinstance(one.terminal, Sign) and one.terminal.text == "("))
            for open_ in opens:
                lexeme = None if open_.terminal is None else random_queries.lexeme(rng, language, open_)
                after = None if lexeme is None else random_queries.read(language, at, f" {lexeme}")
                if after is not None and language.resolved(after) is not None:
                    at, text = after, f"{text} {lexeme}"
                    break
            else:
                break
