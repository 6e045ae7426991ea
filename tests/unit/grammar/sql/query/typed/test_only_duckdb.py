"""What people write on DuckDB alone: the engine takes what the language has, and refuses what it has not."""

from __future__ import annotations

from tests.databases import Databases
from tests.unit.grammar.sql.query.typed.test_everyday import judged_alike
from tests.unit.grammar.sql.query.typed.test_near_ends import check_end

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
SELECT r.host, cost, n FROM runs r POSITIONAL JOIN hosts h POSITIONAL JOIN (SELECT 1 AS n) x JOIN notes ON note = r.host
SELECT note, tag FROM notes CROSS JOIN hosts POSITIONAL JOIN runs r POSITIONAL JOIN unnest(r.tags) u(tag)
SELECT * FROM runs POSITIONAL JOIN hosts
SELECT note FROM notes POSITIONAL JOIN LATERAL (SELECT note AS n) x, hosts
WITH p AS (SELECT cost, took FROM hosts POSITIONAL JOIN runs) SELECT (SELECT max(p.cost) FROM p WHERE p.took > h.id) FROM hosts h
SELECT extract('Hour' FROM started) AS h, count(*) FROM runs GROUP BY extract('Hour' FROM started) ORDER BY h
SELECT extract('dow' FROM day) + 1, extract('epoch' FROM started - day) / 60.5 FROM runs WHERE extract('year' FROM day) = 2024
SELECT host, quantile_cont(took, [0.25, 0.5, 1]) AS q, q[2] FROM runs GROUP BY host HAVING quantile_cont(took, [0.5])[1] > 3
SELECT quantile_disc(DISTINCT host, [0, 0.75] ORDER BY host), quantile(day, [0.5]), quantile_cont(DISTINCT id, 0.5) FROM runs
SELECT quantile_cont(day, [0.5])[1] - INTERVAL 1 DAY, quantile_cont(id, [0.5]) FROM runs
SELECT quantile_cont(took, [0.9] ORDER BY id) FILTER (id > 1) FROM runs
SELECT quantile_disc(tags[1], [0.5, 0.9]) OVER (ORDER BY id) FROM runs
SELECT percentile_cont([0.25, 0.75]) WITHIN GROUP (ORDER BY took DESC), percentile_disc([0.5]) WITHIN GROUP (ORDER BY host) FROM runs
SELECT id AS k FROM runs UNION SELECT id AS h FROM hosts GROUP BY h ORDER BY k
SELECT z.* EXCLUDE (note), h.* FROM notes z, hosts h
SELECT n.* EXCLUDE note, 1 AS k FROM notes AS n
SELECT h.id, notes.* EXCLUDE (note) FROM hosts h, notes ORDER BY ALL
SELECT z.* EXCLUDE (note), * FROM notes z
SELECT 1 FROM hosts took WHERE EXISTS (SELECT 1 FROM runs r JOIN notes ON took.id = r.id WHERE r.id = took.id)
SELECT (SELECT took.id FROM notes), (SELECT max(tags.id) FROM runs tags) FROM hosts took
SELECT host, rank() OVER (ORDER BY sum(took)), sum(took) * 2 + rank() OVER (ORDER BY max(id) DESC) FROM runs GROUP BY ALL
SELECT host, sum(took ORDER BY random()), first_value(max(took)) OVER () FROM runs GROUP BY host ORDER BY random()
SELECT g FROM runs r JOIN LATERAL (SELECT r.id AS g) x ON g IN (1, 2) JOIN hosts h ON h.id = (SELECT 1) AND h.id = ANY([1])
""".strip().splitlines()
REFUSED = """
SELECT host FROM runs LIMIT 101%
SELECT host FROM runs OFFSET 10%
SELECT host FROM runs LIMIT (SELECT 10) PERCENT
SELECT host FROM runs FETCH FIRST 10 PERCENT ROWS ONLY
SELECT (SELECT max(r.id) FROM runs r WHERE r.id = h.id LIMIT 10%) FROM hosts h
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 5 LIMIT 10%) SELECT x FROM n
SELECT host FROM runs POSITIONAL JOIN hosts
SELECT cost FROM runs POSITIONAL JOIN hosts ON TRUE
SELECT cost FROM runs POSITIONAL JOIN hosts USING (id)
SELECT cost FROM runs INNER POSITIONAL JOIN hosts
SELECT cost FROM hosts h, unnest([h.id]) u POSITIONAL JOIN notes
SELECT (SELECT max(x.id) FROM (SELECT r.id FROM runs r WHERE r.id = h.id) x POSITIONAL JOIN notes) FROM hosts h
SELECT extract('weekly' FROM day) FROM runs
SELECT extract('year' FROM NULL) FROM runs
SELECT extract('year' FROM day) FROM runs GROUP BY extract('month' FROM day)
SELECT quantile_cont(took, [0.5, 2]) FROM runs
SELECT quantile_cont(took, [id]) FROM runs
SELECT quantile_cont(host, [0.5]) FROM runs
SELECT quantile_cont(took, [0.5]) + 1 FROM runs
SELECT id AS k FROM runs UNION SELECT id AS h FROM hosts GROUP BY k
SELECT z.* EXCLUDE (note) FROM notes z
SELECT z.* EXCLUDE (note), y.* EXCLUDE (note) FROM notes z, notes y
SELECT z.* EXCLUDE (note), * EXCLUDE (note) FROM notes z
SELECT host, rank() OVER (PARTITION BY host) FROM runs GROUP BY ALL
SELECT host, rank() OVER (PARTITION BY host ORDER BY sum(took)) FROM runs GROUP BY ALL
SELECT host, host || sum(took) FROM runs GROUP BY ALL
SELECT row_number() OVER (ORDER BY random()) FROM runs
SELECT rank() OVER w FROM runs WINDOW w AS (PARTITION BY host || (SELECT random()))
SELECT (SELECT took.id FROM runs) FROM hosts took
SELECT 1 FROM hosts took WHERE EXISTS (SELECT 1 FROM runs GROUP BY took.id)
SELECT g FROM runs r JOIN LATERAL (SELECT r.id AS g) x ON g = ANY([1])
SELECT g FROM runs r LEFT JOIN LATERAL (SELECT r.id AS g) x ON (g <> ALL([1])) IS TRUE
SELECT g FROM runs JOIN generate_series(runs.id) x(g) ON EXISTS (SELECT 1)
SELECT g FROM runs JOIN generate_series(runs.id) x(g) ON g = (SELECT 1)
SELECT g FROM runs JOIN unnest(runs.tags) x(g) ON host IN (SELECT host FROM hosts)
""".strip().splitlines()
LEFT = """
SELECT host FROM runs WHERE id IN (SELECT id FROM hosts LIMIT 10%)
SELECT host FROM runs LIMIT 0%
SELECT extract('hours' FROM started) FROM runs
SELECT note FROM notes, hosts POSITIONAL JOIN runs
SELECT id FROM hosts WHERE EXISTS (SELECT note FROM notes POSITIONAL JOIN runs)
SELECT quantile_disc(cost::DECIMAL(18, 12), [0.5]) FROM hosts
SELECT quantile_cont(took, []) FROM runs
SELECT z.* EXCLUDE (note), h.* EXCLUDE (cost) FROM notes z, hosts h
SELECT g FROM runs JOIN generate_series(3) x(g) ON g = (SELECT 1)
""".strip().splitlines()

BEGUN = """
SELECT quantile_cont(DISTINCT took
SELECT quantile_disc(DISTINCT host, [0.2
SELECT percentile_disc([0.25, 0.5]) WITHIN GROUP (ORDER BY
SELECT z.* EXCLUDE (note), h.* EXCLUDE (id), h.cost + 1 FROM notes z,
SELECT z.* EXCLUDE (note), y.* EXCLUDE (note) FROM
""".strip().splitlines()
"""What had no end, or might have none."""


def test_only_duckdb(databases: Databases) -> None:
    language = judged_alike(databases("duckdb").create(*TABLES), TAKEN, REFUSED, LEFT)
    for text in BEGUN:
        check_end(language, text)
