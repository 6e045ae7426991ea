"""Everyday queries over a hospital, a carrier and a help desk, on PostgreSQL and DuckDB.

What the engine prepares is taken, and what it refuses is refused.  The first were not in the language when they were
written, on tables for which nothing had been made.
"""

from __future__ import annotations

import pytest

from guided.errors import GuidedError
from guided.grammar.attributed.language import AttributedLanguage
from guided.grammar.sql import reflect
from guided.grammar.sql.connection import open_session
from guided.grammar.sql.query.language import query_language
from tests.databases import Databases
from tests.unit.grammar.sql.query.test_queries import refusal

TABLES = [
    "create table wards (ward_id int primary key, name varchar(60), floor int, beds int)",
    "create table admissions (admission_id bigint primary key, patient_id int, ward_id int, admitted_at timestamp,"
    " diagnosis varchar(200), cost numeric(12,2))",
    "create table shipments (shipment_id bigint primary key, ward_id int, shipped_on date, carrier varchar(40))",
    "create table tickets (ticket_id int primary key, agent varchar(80), subject varchar(200), opened_at timestamp,"
    " rating int, status varchar(20))",
]
POSTGRESQL = """
SELECT name FROM wards WHERE name LIKE ANY (ARRAY['A%', 'B%']) OR name NOT ILIKE ALL (SELECT carrier FROM shipments)
SELECT COUNT(DISTINCT (patient_id, ward_id)) FROM admissions
SELECT make_interval(days => 3, secs => 1.5) + admitted_at FROM admissions
SELECT overlay(name placing 'XX' from 1 for 2) FROM wards
SELECT name AS n FROM wards UNION SELECT carrier AS c FROM shipments GROUP BY c ORDER BY n
SELECT extract('dow' FROM admitted_at) AS d, COUNT(*) FROM admissions GROUP BY extract('dow' FROM admitted_at)
SELECT floor, (array_agg(name ORDER BY beds DESC))[1:3] AS biggest, (ARRAY[1, 2])[:1], (ARRAY[1, 2])[2:] FROM wards GROUP BY floor
SELECT carrier, COUNT(*) FROM shipments GROUP BY 1 ORDER BY 2 DESC LIMIT (SELECT COUNT(*) FROM wards) OFFSET (SELECT 1)
SELECT w.name, COUNT(a.*) FROM wards w LEFT JOIN admissions a ON a.ward_id = w.ward_id GROUP BY w.name HAVING COUNT(a.*) > 1
SELECT subject FROM tickets WHERE status = ANY ('{open,waiting}')
SELECT e.key, e.value FROM jsonb_each_text('{"a": 1}') AS e
SELECT key, value FROM json_each('{"a": 1}')
SELECT e.k, e.v FROM jsonb_each('{"a": 1}') AS e(k, v)
SELECT j.value FROM jsonb_array_elements('[1, 2]') j
SELECT k.k FROM jsonb_object_keys('{"a": 1}') AS k
SELECT t.a, t.n FROM unnest(ARRAY['x', 'y']) WITH ORDINALITY AS t(a, n)
SELECT generate_series FROM generate_series(1, 3)
SELECT encode(sha256(name::bytea), 'hex'), format('%s (%s)', name, beds), regexp_count(name, 'a') FROM wards
SELECT jsonb_path_query_array('{"a": [1]}', '$.a[*]'), jsonb_path_exists('{"a": 1}', '$ ? (@.a > 0 && @.a < 9)')
SELECT name, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY floor ORDER BY beds) AS n FROM wards) w WHERE n <= 3
SELECT t.name FROM (SELECT * FROM (SELECT w.*, 1 AS one FROM wards w) v) t WHERE t.one = 1
SELECT json_agg(t ORDER BY t.name) FROM (SELECT name, beds FROM wards) t
SELECT row_to_json(w), to_jsonb(w) - 'beds' AS rest FROM wards w
SELECT floor, jsonb_agg(w) FROM wards w GROUP BY floor
TABLE wards
WITH w AS (TABLE wards) SELECT name FROM w
WITH w AS (SELECT * FROM wards UNION ALL SELECT * FROM (TABLE wards) v) SELECT name FROM w
SELECT name FROM wards WHERE ward_id IN (SELECT * FROM (SELECT ward_id FROM admissions) a)
SELECT w.name FROM wards w TABLESAMPLE BERNOULLI (2.5) REPEATABLE (7) JOIN admissions TABLESAMPLE SYSTEM (50) USING (ward_id)
SELECT (admitted_at, interval '1 day') OVERLAPS (timestamp '2024-01-01 00:00', timestamp '2024-02-01 00:00') AND cost > 1 FROM admissions
SELECT ticket_id, ts_rank(to_tsvector('english', subject), plainto_tsquery('english', 'late')) AS r FROM tickets ORDER BY r
SELECT subject FROM tickets WHERE to_tsvector(subject) @@ websearch_to_tsquery('simple', status)
SELECT percentile_cont(ARRAY[0.25, 0.75]) WITHIN GROUP (ORDER BY cost) FROM admissions
SELECT name FROM wards, jsonb_array_elements('[{"a": 1}]') AS e WHERE e->>'a' = name AND (e.value->>'n')::int > 1
SELECT e, e.value, COUNT(*) FROM tickets, json_array_elements_text('["a"]') e WHERE e LIKE 'a%' GROUP BY e, e.value ORDER BY e
""".strip().splitlines()
DUCKDB = """
SELECT unnest(string_split(diagnosis, ',')) AS part, COUNT(*) FROM admissions GROUP BY part ORDER BY part
SELECT string_split(subject, ' ')[1], subject[1:10], subject[2], ([1, 2])[2:] FROM tickets
SELECT range AS d FROM range(DATE '2024-01-01', DATE '2024-02-01', INTERVAL 1 DAY)
SELECT avg(rating) FILTER (status = 'open'), count(t.*) FROM tickets t
SELECT date(opened_at) AS day, count(*) FROM tickets GROUP BY day
SELECT time_bucket(INTERVAL '15 minutes', opened_at) AS slot, count(*) FROM tickets GROUP BY slot
SELECT string_split(subject, ' ') && ['refund', 'return'] FROM tickets
SELECT COUNT(DISTINCT (patient_id, ward_id)) FROM admissions
SELECT carrier FROM shipments LIMIT (SELECT COUNT(*) FROM wards)
SELECT jaro_winkler_similarity(name, 'ICU'), split(name, ' ')[1], isfinite(cost) FROM wards, admissions
SELECT * FROM wards UNION ALL SELECT * FROM wards
SELECT name, n FROM (SELECT *, row_number() OVER (PARTITION BY floor ORDER BY beds) AS n FROM wards) w WHERE n <= 3
SELECT w.name, * FROM wards w SEMI JOIN admissions a ON a.ward_id = w.ward_id AND cost > 1 ANTI JOIN shipments USING (ward_id)
SELECT geomean(cost), list_intersect(list(ward_id), [1, 2]) FROM admissions
""".strip().splitlines()
NOT_POSTGRESQL = """
SELECT name LIKE ANY (ARRAY[1]) FROM wards
SELECT name AS n FROM wards UNION SELECT carrier AS c FROM shipments GROUP BY n
SELECT make_interval(days => 1, days => 2)
SELECT make_interval(days => 1.5)
SELECT name FROM wards LIMIT (SELECT name FROM wards)
SELECT name FROM wards LIMIT (SELECT wards.beds)
SELECT COUNT(a.*) FROM wards w
SELECT t.ordinality FROM unnest(ARRAY[1]) AS t
SELECT e.a FROM jsonb_each('{"a": 1}') AS e
SELECT COUNT(DISTINCT (name, ward_id)) + name FROM wards
SELECT jsonb_path_exists('{"a": 1}', 'a > 1')
SELECT sha256(name) FROM wards
TABLE wards UNION TABLE tickets
SELECT t.one FROM (SELECT * FROM wards) t
SELECT name FROM (SELECT *, 'x' AS name FROM wards) t
SELECT row_to_json(name) FROM wards name
SELECT to_json(w), COUNT(*) FROM wards w
SELECT row_to_json(x)
SELECT * FROM wards UNION ALL SELECT * FROM tickets
SELECT * FROM wards UNION ALL SELECT * FROM wards, tickets
SELECT ward_id IN (SELECT * FROM wards) FROM wards
SELECT (TABLE wards)
SELECT json_build_array() EXCEPT ALL SELECT json_build_array()
SELECT x.name FROM (SELECT name FROM wards) x TABLESAMPLE SYSTEM (10)
SELECT (beds, floor) OVERLAPS (beds, floor) FROM wards
SELECT to_tsvector(subject) @@ 1 FROM tickets
SELECT e.e FROM jsonb_array_elements('[1]') e
SELECT x.e FROM (SELECT * FROM jsonb_array_elements('[1]') e) x
""".strip().splitlines()
NOT_DUCKDB = """
SELECT unnest([1, 2]) AS n WHERE n > 1
SELECT unnest([1, 2]) AS n, count(*) GROUP BY ALL
SELECT unnest(list(beds)) AS n FROM wards GROUP BY n
SELECT beds[1] FROM wards
SELECT ARRAY(SELECT 1 ORDER BY ALL)
SELECT name FROM wards w WHERE EXISTS (SELECT w.beds LIMIT (SELECT 1))
SELECT [1] && ['x'] FROM wards
SELECT a.cost FROM wards w SEMI JOIN admissions a USING (ward_id)
SELECT w.name FROM wards w SEMI JOIN admissions a USING (ward_id) WHERE a.cost > 1
SELECT 1 UNION SELECT 2 LIMIT (SELECT 1)
""".strip().splitlines()


@pytest.mark.parametrize(
    ("dialect", "taken", "refused"), [("postgresql", POSTGRESQL, NOT_POSTGRESQL), ("duckdb", DUCKDB, NOT_DUCKDB)]
)
def test_the_language_is_the_engines(dialect: str, taken: list[str], refused: list[str], databases: Databases) -> None:
    judged_alike(databases(dialect).create(*TABLES), taken, refused)


def judged_alike(url: str, taken: list[str], refused: list[str], left: list[str] | None = None) -> AttributedLanguage:
    """The language of a database, which the engine agrees with about these texts, but for those that are ``left``."""
    language = query_language(reflect(url))
    with open_session(url) as session:
        for text in taken:
            session.prepare(text)
            assert refusal(language, text) is None, text
        for text in refused:
            with pytest.raises(GuidedError):
                session.prepare(text)
            assert refusal(language, text) is not None, text
        for text in left or ():
            session.prepare(text)
            assert refusal(language, text) is not None, text
    return language
