"""Structs and maps of DuckDB: their fields and keys, where they are sorted and grouped, and what they are cast to."""

from __future__ import annotations

import pytest

from guided.grammar.sql import DatabaseSchema, reflect
from guided.grammar.sql.query.language import query_language
from guided.grammar.sql.schema import Column, Table
from tests.databases import Databases
from tests.unit.grammar.sql.query import random_queries
from tests.unit.grammar.sql.query.test_queries import refusal
from tests.unit.grammar.sql.query.typed.test_everyday import judged_alike

TABLES = [
    "create table people (id int, home struct(city varchar, geo struct(lat double, lon double)), attrs map(varchar, int),"
    " jobs struct(title varchar, pay decimal(10,2))[])",
    "create table home (city int, n int)",
]
TAKEN = """
SELECT home.city FROM people
SELECT p.home.city AS town, p.home.geo.lat FROM people p ORDER BY town, home.geo.lat
SELECT home.geo.lat + 1, upper(home.city), home['city'] FROM people WHERE home.city LIKE 'A%' AND people.home.geo.lon > 1
SELECT home.city, count(*) FROM people GROUP BY home.city HAVING count(*) > 1 ORDER BY home.city
SELECT home.city, count(*) FROM people GROUP BY ALL ORDER BY home.city
SELECT lat FROM (SELECT home.geo.lat FROM people) q
SELECT jobs[1].title, (home).city, (home.geo).lat FROM people
SELECT unnest(jobs) AS job, min(id) OVER (ORDER BY home) FROM people
SELECT DISTINCT home, attrs FROM people ORDER BY home
SELECT home = home, max(home), count(DISTINCT home.geo), list(home) FROM people GROUP BY home
SELECT COALESCE(home, NULL::STRUCT(city text, geo STRUCT(lat double, lon double))), home::text FROM people
SELECT attrs['a'] + 1, map_keys(attrs), cardinality(attrs), map_contains(attrs, 'k'), attrs::MAP(text, int) FROM people
SELECT home.n FROM home
SELECT home.city FROM people, (SELECT 1 AS n) AS home
""".strip().splitlines()
REFUSED = """
SELECT home.town FROM people
SELECT home.geo.city FROM people
SELECT home + 1 FROM people
SELECT attrs[1] FROM people
SELECT id.city FROM people
SELECT jobs.title FROM people
SELECT home AS h, h.city FROM people
SELECT home.city FROM people ORDER BY city
SELECT home.city, city || 'a' FROM people
SELECT city FROM (SELECT (home).city FROM people) q
SELECT id, count(*) FROM people GROUP BY home.city
""".strip().splitlines()


def test_they_are_the_engines(databases: Databases) -> None:
    judged_alike(databases("duckdb").create(*TABLES), TAKEN, REFUSED)


def test_a_source_of_the_name_comes_first(databases: Databases) -> None:
    """``home.city`` is the column of the table then, a number."""
    language = query_language(reflect(databases("duckdb").create(*TABLES)))
    assert refusal(language, "SELECT upper(home.city) FROM people, home") is not None
    assert refusal(language, "SELECT home.city + 1 FROM people, home") is None


@pytest.mark.parametrize(
    "text",
    [
        "SELECT home.city, other.x, foo",
        "SELECT t.home.city, t.foo",
        "SELECT home.city || foo",
        "FROM unnest(COALESCE(NULL::STRUCT(city TEXT)[], NULL::text::real",
        "FROM unnest(NULL::text::STRUCT(city TEXT)[]",
    ],
)
def test_a_sub_query_has_a_struct_where_no_table_will_do(text: str) -> None:
    home = Column("home", "STRUCT(city VARCHAR)")
    language = query_language(DatabaseSchema((Table("people", (home,)),), dialect="duckdb"))
    at = random_queries.read(language, language.start, text)
    assert at is not None
    end = language.end(at)
    assert end is not None and len(end) <= language.price(at)
