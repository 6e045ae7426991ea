"""Lists, JSON and frames as they are written in DuckDB, and frames in PostgreSQL: what the engine takes is taken."""

from __future__ import annotations

from tests.databases import Databases
from tests.unit.grammar.sql.query.typed.test_everyday import judged_alike

TABLES = ["create table notes (id int, doc json, tags varchar[], sizes bigint[], prices double[], made timestamp)"]
TAKEN = """
SELECT doc->'a'->0->>'b' AS b, doc->'$.a' FROM notes
SELECT doc->'a'->>'b' AS b, count(*) FROM notes GROUP BY b ORDER BY doc->'a'->>'b'
SELECT (doc->'a'->>'n')::int + 1, upper(doc->'a'->>'b'), [doc->0] FROM notes WHERE (doc->'a'->>'n') = 'x'
SELECT doc->>'a' AS a, count(*), min(doc) FROM notes GROUP BY ALL
SELECT DISTINCT doc FROM notes ORDER BY doc
SELECT id FROM notes WHERE 'a' IN tags AND 1 + 1 NOT IN sizes AND id IN sizes || sizes OR id IN prices
SELECT list_sum(sizes), list_avg(prices), list_max(tags), list_contains(sizes, 3) FROM notes
SELECT unnest(generate_series(DATE '2024-01-01', DATE '2024-02-01', INTERVAL 1 DAY))::date AS day
SELECT day FROM generate_series(DATE '2024-01-01', DATE '2024-02-01', INTERVAL 1 DAY) AS d(day) WHERE day > now()
SELECT count(*) OVER (ORDER BY made RANGE BETWEEN INTERVAL 5 MINUTES PRECEDING AND INTERVAL '2' DAYS FOLLOWING) FROM notes
SELECT to_json(tags), json_value(doc, '$.a'), json_group_array(id) FROM notes GROUP BY 1, 2
""".strip().splitlines()
REFUSED = """
SELECT doc->'a'->>'b' = 'x' FROM notes
SELECT doc->'a' IS NULL FROM notes
SELECT 1 IN tags FROM notes
SELECT 'a' IN id FROM notes
SELECT 1 IN (sizes) || sizes FROM notes
SELECT list_sum(tags) FROM notes
SELECT list_stddev_pop(tags) FROM notes
SELECT count(*) OVER (ORDER BY made RANGE 5 MINUTES PRECEDING) FROM notes
""".strip().splitlines()
POSTGRESQL = """
SELECT count(*) OVER (ORDER BY made RANGE BETWEEN '1 hour' PRECEDING AND CURRENT ROW) FROM notes
SELECT count(*) OVER (ORDER BY made RANGE INTERVAL '1' DAY PRECEDING) FROM notes
""".strip().splitlines()


def test_duckdb_is_followed(databases: Databases) -> None:
    judged_alike(databases("duckdb").create(*TABLES), TAKEN, REFUSED)


def test_frames_of_postgresql_are_followed(databases: Databases) -> None:
    judged_alike(databases("postgresql").create("create table notes (id int, made timestamp)"), POSTGRESQL, [])
