"""Idioms of PostgreSQL and DuckDB: sources without names, windows that go on from others, ranges, paths into JSON.

What the engine prepares is taken, and what it refuses is refused.
"""

from __future__ import annotations

import pytest

from tests.databases import Databases
from tests.unit.grammar.sql.query.typed.test_everyday import judged_alike

TABLES = [
    "create table rides (ride_id int primary key, driver int, city text, fare numeric(10,2), started timestamp)",
    "create table drivers (driver int primary key, name text, city text)",
]
RANGES = [
    "create table stays (stay_id int primary key, bed int, nights daterange, hours tstzrange, rates numrange,"
    " doc jsonb, tags text[])"
]
BOTH = """
SELECT city FROM (SELECT city FROM rides) WHERE city > 'a'
SELECT * FROM (SELECT 1 AS a) CROSS JOIN (SELECT 2 AS a), (VALUES (1))
SELECT c, COUNT(*) FROM (SELECT city AS c FROM rides) GROUP BY c HAVING COUNT(*) > 1 ORDER BY c
SELECT DISTINCT ON (c) c, f FROM (SELECT city AS c, fare AS f FROM rides) ORDER BY c, f
SELECT d, name FROM drivers, LATERAL (SELECT COUNT(*) AS d FROM rides WHERE rides.driver = drivers.driver)
SELECT * FROM drivers JOIN (SELECT driver, SUM(fare) AS total FROM rides GROUP BY driver) USING (driver)
SELECT COUNT(*) OVER (w ROWS 2 PRECEDING), SUM(fare) OVER w FROM rides WINDOW w AS (PARTITION BY city ORDER BY started)
SELECT COUNT(*) OVER (w), RANK() OVER (w ORDER BY rides.fare DESC) FROM rides WINDOW w AS (PARTITION BY rides.city)
SELECT city, COUNT(*) FROM rides GROUP BY ROLLUP (city) HAVING GROUPING(city) = 0 ORDER BY GROUPING(rides.city), city
""".strip().splitlines()
POSTGRESQL = """
SELECT substring(city from '[a-z]+'), substring(city, '^.'), substring(city from 2 for 3) FROM rides
SELECT lower(nights), upper(nights) - lower(nights), nights * daterange('2024-01-01', '2024-02-01', '[]') FROM stays
SELECT bed FROM stays WHERE nights && daterange('2024-01-01', NULL) OR nights @> DATE '2024-02-15' OR isempty(rates)
SELECT hours @> now(), rates @> 1.5, rates + numrange(1, 2), nights IS NULL, nights = nights, hours::text FROM stays
SELECT s.nights, COUNT(*), array_agg(s.hours) FROM stays s GROUP BY s.nights ORDER BY s.nights
SELECT NULL::daterange, bed::text::int4range, CASE WHEN isempty(nights) THEN NULL ELSE nights END FROM stays
SELECT doc ?| ARRAY['a'], doc ?& '{a,b}', doc @? '$.a[*] ? (@.b > 1).c', doc @@ 'lax $.a > 1' FROM stays
SELECT tags @> '{E11.9}', tags = '{}', COALESCE(tags, '{}'), tags && '{"a b",c d}' FROM stays
SELECT p->>'a' FROM stays, jsonb_path_query(doc, '$.items[*]') AS p WHERE jsonb_exists(p, 'b')
""".strip().splitlines()
DUCKDB = """
SELECT if(fare > 50, 'dear', 'cheap') AS band, ifnull('a', city) FROM rides
""".strip().splitlines()
NOT_BOTH = """
SELECT a FROM (SELECT 1 AS a) CROSS JOIN (SELECT 2 AS a)
SELECT * FROM (SELECT 1 AS a), (SELECT 2 AS a) GROUP BY 1
SELECT COUNT(*) OVER (w) FROM rides WINDOW w AS (ORDER BY fare ROWS 2 PRECEDING)
SELECT COUNT(*) OVER (w ORDER BY fare) FROM rides WINDOW w AS (ORDER BY fare)
SELECT COUNT(*) OVER (w) FROM rides
SELECT city || 'a', COUNT(*) FROM rides GROUP BY city || 'a' HAVING GROUPING(city) = 0
SELECT city FROM rides HAVING GROUPING(city) = 0
""".strip().splitlines()
NOT_POSTGRESQL = """
SELECT COUNT(*) OVER (w PARTITION BY fare) FROM rides WINDOW w AS (ORDER BY fare)
SELECT COUNT(*) OVER (w GROUPS 2 PRECEDING) FROM rides WINDOW w AS (PARTITION BY fare)
SELECT daterange('2024-01-01', '2024-02-01', '{)')
SELECT nights && hours FROM stays
SELECT nights @> bed FROM stays
SELECT hours @> localtimestamp FROM stays
SELECT rates @> bed FROM stays
SELECT NULL @> bed FROM stays
SELECT isempty(NULL)
SELECT SUM(nights) FROM stays
SELECT nights + 1 FROM stays
SELECT lower(bed) FROM stays
SELECT substring(bed from '[0-9]+') FROM stays
SELECT doc @? 'a b' FROM stays
""".strip().splitlines()


@pytest.mark.parametrize(
    ("dialect", "taken", "refused"),
    [("postgresql", [*BOTH, *POSTGRESQL], [*NOT_BOTH, *NOT_POSTGRESQL]), ("duckdb", [*BOTH, *DUCKDB], NOT_BOTH)],
)
def test_the_language_is_the_engines(dialect: str, taken: list[str], refused: list[str], databases: Databases) -> None:
    tables = [*TABLES, *(RANGES if dialect == "postgresql" else ())]
    judged_alike(databases(dialect).create(*tables), taken, refused)
