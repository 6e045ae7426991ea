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
SELECT s.nights, COUNT(*), MAX(lower(s.hours)) FROM stays s GROUP BY s.nights ORDER BY s.nights
SELECT NULL::daterange, bed::text::int4range, CASE WHEN isempty(nights) THEN NULL ELSE nights END FROM stays
SELECT doc ?| ARRAY['a'], doc ?& '{a,b}', doc @? '$.a[*] ? (@.b > 1).c', doc @@ 'lax $.a > 1' FROM stays
SELECT s.bed, x.sku, x.qty * x.price FROM stays s, jsonb_to_recordset(s.doc) AS x(sku text, qty int, price numeric(10,2))
SELECT r.at, n FROM stays CROSS JOIN LATERAL json_to_record(doc::json) r (n double precision, at timestamp with time zone)
SELECT COUNT(x.a), MAX(x.b) FROM jsonb_to_recordset('[{"a": 1}]') AS x(a int, b varchar(3)) WHERE x.b LIKE 'a%'
SELECT tags @> '{E11.9}', tags = '{}', COALESCE(tags, '{}'), tags && '{"a b",c d}' FROM stays
SELECT p->>'a' FROM stays, jsonb_path_query(doc, '$.items[*]') AS p WHERE jsonb_exists(p, 'b')
""".strip().splitlines()
DUCKDB = """
SELECT if(fare > 50, 'dear', 'cheap') AS band, ifnull('a', city) FROM rides
SELECT fare * 2 AS twice, twice + 1 AS more, more - twice FROM rides WHERE more > 3 ORDER BY more
SELECT SUM(fare) AS total, city, total / SUM(total) OVER () AS share FROM rides GROUP BY city
SELECT date_trunc('month', started) AS m, m + INTERVAL 1 DAY AS n, COUNT(*) FROM rides GROUP BY m
SELECT fare + 1 AS a, a + 1 AS b, COUNT(*) FROM rides GROUP BY ALL
SELECT x + 1 AS fare, fare * 2 FROM (SELECT driver AS x, fare FROM rides)
SELECT 1 AS a, a + 1
SELECT * EXCLUDE (fare, driver) FROM rides
SELECT r.* EXCLUDE fare, d.name FROM rides r JOIN drivers d USING (driver)
SELECT * EXCLUDE (n) FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY city ORDER BY fare) AS n FROM rides) WHERE n = 1
SELECT * EXCLUDE (driver) REPLACE (round(fare, 0) AS fare, UPPER(city) AS city), 1 AS one FROM rides
SELECT DISTINCT * EXCLUDE (ride_id) FROM rides ORDER BY fare
SELECT * RENAME fare AS price FROM rides ORDER BY price
SELECT r.* EXCLUDE (city) REPLACE (fare * 2 AS fare) RENAME (driver AS fare, ride_id AS ride) FROM rides r WHERE ride > 1
SELECT * EXCLUDE (a) FROM (SELECT 1 AS a), (SELECT 2 AS b)
FROM rides
FROM rides WHERE fare > 1 ORDER BY started LIMIT 5
FROM rides r JOIN drivers d USING (driver) SELECT d.name, SUM(fare) AS total GROUP BY d.name HAVING total > 1 ORDER BY ALL
FROM rides SELECT DISTINCT city, fare * 2 AS twice, twice + 1 WHERE twice > 3
WITH a AS (FROM rides) FROM a SELECT * UNION ALL (FROM rides LIMIT 3)
SELECT (FROM rides SELECT MAX(fare)), COUNT(*) FROM (FROM drivers) WHERE EXISTS (FROM rides) AND 1 IN (FROM (SELECT 1))
""".strip().splitlines()
DUCKDB += """
SELECT city FROM rides TABLESAMPLE 10% JOIN drivers d TABLESAMPLE RESERVOIR (5 ROWS) USING (city)
SELECT city, COUNT(*) FROM rides GROUP BY city USING SAMPLE 0.5 PERCENT (BERNOULLI, 42) ORDER BY city LIMIT 3
FROM rides USING SAMPLE 10 ROWS
SELECT city FROM rides WHERE city GLOB 'a*' AND city NOT GLOB 'b*'
SELECT r.fare, o.fare FROM rides r ASOF LEFT JOIN rides o ON r.city = o.city AND r.started > o.started
SELECT r.fare FROM rides r ASOF JOIN rides o USING (city, started)
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
NOT_DUCKDB = """
SELECT SUM(fare) AS s, SUM(s) FROM rides
SELECT ROW_NUMBER() OVER () AS n, SUM(n) OVER () FROM rides
SELECT random() + 1 AS r, r + 1 FROM rides
SELECT (SELECT 1) + 1 AS q, q + 1 FROM rides
SELECT fare + 1 AS a, a + 1 AS b, COUNT(*) FROM rides GROUP BY 1, 2
SELECT fare + 1 AS a, a + 1 AS b, COUNT(*) FROM rides
SELECT fare + 1 AS a, a + 1, rides.a FROM rides
SELECT * EXCLUDE (fare, fare) FROM rides
SELECT * EXCLUDE (foo) FROM rides
SELECT * EXCLUDE (fare) REPLACE (1 AS fare) FROM rides
SELECT * REPLACE (1 AS foo) FROM rides
SELECT * EXCLUDE (fare) RENAME (fare AS price) FROM rides
SELECT * RENAME (fare AS price) EXCLUDE (city) FROM rides
SELECT fare FROM (SELECT * RENAME (fare AS price) FROM rides)
SELECT * REPLACE (SUM(fare) AS fare) FROM rides
SELECT * EXCLUDE (a) FROM (SELECT 1 AS a)
SELECT z.* EXCLUDE (a) FROM (SELECT 1 AS a) AS z
SELECT z.* EXCLUDE (a) FROM (VALUES (1)) AS z (a)
SELECT fare FROM (SELECT * EXCLUDE (fare) FROM rides)
SELECT 1 IN (SELECT * EXCLUDE (fare) FROM rides)
FROM rides WHERE fare > 1 SELECT city
FROM rides SELECT foo
FROM rides SELECT rides.city, r.city
FROM rides SELECT city, COUNT(*)
FROM rides SELECT
FROM rides USING SAMPLE 200%
SELECT city GLOB 'a*' ESCAPE '!' FROM rides
SELECT r.fare FROM rides r ASOF JOIN rides o ON r.city = o.city
SELECT r.fare FROM rides r ASOF JOIN rides o ON r.city > o.city AND r.started > o.started
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
SELECT x.c FROM jsonb_to_recordset('[]') AS x(a int)
SELECT * FROM jsonb_to_recordset('[]') AS x
SELECT x.a + 1 FROM jsonb_to_recordset('[]') AS x(a text)
SELECT * FROM jsonb_to_recordset('[]') AS x(a int, a int)
""".strip().splitlines()


@pytest.mark.parametrize(
    ("dialect", "taken", "refused"),
    [
        ("postgresql", [*BOTH, *POSTGRESQL], [*NOT_BOTH, *NOT_POSTGRESQL]),
        ("duckdb", [*BOTH, *DUCKDB], [*NOT_BOTH, *NOT_DUCKDB]),
    ],
)
def test_the_language_is_the_engines(dialect: str, taken: list[str], refused: list[str], databases: Databases) -> None:
    tables = [*TABLES, *(RANGES if dialect == "postgresql" else ())]
    judged_alike(databases(dialect).create(*tables), taken, refused)
