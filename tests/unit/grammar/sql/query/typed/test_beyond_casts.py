"""Types to which no cast leads: what is written where one is wanted is of that very type, so that it has an end."""

from __future__ import annotations

from typing import Any

import pytest

from guided.grammar.attributed.language import AttributedLanguage
from guided.grammar.sql import Column, DatabaseSchema, Table, reflect
from guided.grammar.sql.query.language import query_language
from tests.databases import Databases

BOTH = """
SELECT * FROM gates UNION ALL SELECT upper(
SELECT * FROM gates UNION ALL SELECT id FROM
SELECT * FROM gates UNION ALL SELECT g.id FROM
SELECT * FROM gates UNION ALL SELECT NULL ::
SELECT * FROM gates UNION ALL SELECT NULL ORDER BY
SELECT 1 FROM gates WHERE coalesce(place, upper(
SELECT 1 FROM gates g WHERE coalesce(place, g.id,
SELECT 1 FROM gates ORDER BY CASE WHEN TRUE THEN place ELSE (
SELECT * FROM gates UNION ALL (
SELECT * FROM gates UNION ALL (SELECT
SELECT * FROM gates UNION ALL (SELECT DISTINCT
SELECT * FROM gates UNION ALL SELECT DISTINCT *
SELECT * FROM gates UNION ALL (WITH gates(a) AS (SELECT 1) SELECT
SELECT *, 1, 2, 3, 4 FROM gates UNION ALL SELECT
SELECT *, 1, 2, 3, 4 FROM gates UNION ALL (
SELECT *, 1, 2, 3, 4 FROM gates UNION ALL SELECT *
SELECT *, 1, 2, 3, 4 FROM gates UNION ALL (SELECT
""".strip().splitlines()
DUCKDB = """
SELECT string_agg(name, upper(
SELECT string_agg(name, id )
SELECT string_agg(name, 'a' ::
SELECT 1 FROM prices WHERE [ratio] = (
SELECT 1 FROM prices WHERE CASE [ratio] WHEN id THEN
VALUES (NULL) EXCEPT ALL SELECT id :: DECIMAL
VALUES (NULL) UNION ALL SELECT CASE WHEN
VALUES (NULL) ORDER BY
""".strip().splitlines()


@pytest.fixture(scope="module")
def languages() -> dict[str, AttributedLanguage]:
    tables = (
        Table("gates", (Column("place", "geometry"),)),
        Table("prices", (Column("id", "integer"), Column("name", "text"), Column("ratio", "decimal(18,12)"))),
    )
    return {name: query_language(DatabaseSchema(tables, dialect=name)) for name in ("postgresql", "duckdb")}


@pytest.mark.parametrize(
    ("dialect", "text"), [("postgresql", text) for text in BOTH] + [("duckdb", text) for text in (*BOTH, *DUCKDB)]
)
def test_nothing_is_begun_without_an_end(dialect: str, text: str, languages: dict[str, AttributedLanguage]) -> None:
    at: Any = languages[dialect].start
    for byte in text.encode():
        at = None if at is None else languages[dialect].step(at, byte)
    end = None if at is None else languages[dialect].end(at)
    assert at is None or (end is not None and len(end) <= languages[dialect].price(at))


@pytest.mark.parametrize("dialect", ["postgresql", "duckdb"])
def test_columns_of_the_very_type_are_taken(dialect: str, languages: dict[str, AttributedLanguage]) -> None:
    chosen = languages[dialect]
    assert chosen.reads(b"SELECT 1 FROM gates g WHERE coalesce(place, g.place, NULL) IS NULL")
    assert not chosen.reads(b"SELECT 1 FROM gates, prices p WHERE coalesce(place, p.name, NULL) IS NULL")
    assert chosen.reads(b"SELECT * FROM gates UNION ALL SELECT NULL")
    assert chosen.reads(b"(SELECT * FROM gates LIMIT 1) UNION ALL (SELECT * FROM gates)")
    assert not chosen.reads(b"SELECT * FROM gates UNION ALL SELECT DISTINCT * FROM gates")


def test_null_in_values_of_duckdb_has_the_type_of_what_is_beside_it(languages: dict[str, AttributedLanguage]) -> None:
    assert languages["duckdb"].reads(b"VALUES (NULL) UNION ALL SELECT upper(name) FROM prices ORDER BY 1")


@pytest.mark.parametrize(
    "text", ['SELECT "current_date" !=', 'SELECT g."localtime" FROM', 'SELECT "current_time" FROM']
)
def test_no_column_has_a_name_that_nothing_may_define(text: str, languages: dict[str, AttributedLanguage]) -> None:
    at: Any = languages["duckdb"].start
    for byte in text.encode():
        at = None if at is None else languages["duckdb"].step(at, byte)
    assert at is None
    tables = (Table("days", (Column("current_date", "date"),)),)
    chosen = query_language(DatabaseSchema(tables, dialect="duckdb"))
    assert chosen.reads(b'SELECT "current_date" FROM days')


def test_a_column_hides_a_word_of_duckdb(databases: Databases) -> None:
    """Its own columns go before CURRENT_DATE, and each table has a ``rowid`` besides."""
    import duckdb

    statements = ['CREATE TABLE days ("current_date" BIT, rowid INTEGER)', "CREATE TABLE t (a INTEGER)"]
    language = query_language(reflect(databases("duckdb").create(*statements)))
    engine = duckdb.connect()
    for statement in statements:
        engine.execute(statement)
    for text in ("SELECT current_date > DATE '2020-01-01' FROM days", "SELECT rowid FROM days, t"):
        with pytest.raises(duckdb.BinderException):
            engine.execute(text)
        assert not language.reads(text.encode())
    assert language.reads(b"SELECT * FROM days, t")


def test_arrays_of_ranges_are_left_out(languages: dict[str, AttributedLanguage]) -> None:
    """They are no types that are followed: to read one raised a `KeyError`."""
    chosen = languages["postgresql"]
    assert chosen.reads(b"SELECT name::tsrange IS NULL, name::date[] IS NULL FROM prices")
    assert not chosen.reads(b"SELECT name::tsrange[] IS NULL FROM prices")
    rows = "SELECT * FROM jsonb_to_recordset('[]'::jsonb) AS r(a {}, b int)"
    assert chosen.reads(rows.format("tsrange").encode()) and chosen.reads(rows.format("tsvector[]").encode())
    assert not chosen.reads(rows.format("tsrange[]").encode())
