"""What people write on DuckDB alone: the engine takes what the language has, and refuses what it has not."""

from __future__ import annotations

from tests.databases import Databases
from tests.unit.grammar.sql.query.typed.test_everyday import judged_alike

TABLES = [
    "create table runs (id int, host varchar, took double, started timestamp, day date, tags varchar[])",
    "create table hosts (id int, host varchar, cost decimal(10, 2))",
    "create table notes (note varchar)",
]
TAKEN = """
SELECT host FROM runs ORDER BY took LIMIT 10%
SELECT host FROM runs LIMIT 2.5 PERCENT OFFSET 3 ROWS
SELECT host FROM runs OFFSET 3 LIMIT .5%;
(SELECT id FROM runs LIMIT 10 %) UNION (SELECT id FROM hosts LIMIT 100 percent) ORDER BY 1 LIMIT 50%
WITH r AS (SELECT id FROM runs LIMIT 5%) SELECT (SELECT max(r.id) FROM r WHERE r.id = h.id) FROM hosts h, (FROM r LIMIT 5%)
""".strip().splitlines()
REFUSED = """
SELECT host FROM runs LIMIT 101%
SELECT host FROM runs OFFSET 10%
SELECT host FROM runs LIMIT (SELECT 10) PERCENT
SELECT host FROM runs FETCH FIRST 10 PERCENT ROWS ONLY
SELECT (SELECT max(r.id) FROM runs r WHERE r.id = h.id LIMIT 10%) FROM hosts h
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 5 LIMIT 10%) SELECT x FROM n
""".strip().splitlines()
LEFT = """
SELECT host FROM runs WHERE id IN (SELECT id FROM hosts LIMIT 10%)
SELECT host FROM runs LIMIT 0%
""".strip().splitlines()


def test_only_duckdb(databases: Databases) -> None:
    judged_alike(databases("duckdb").create(*TABLES), TAKEN, REFUSED, LEFT)
