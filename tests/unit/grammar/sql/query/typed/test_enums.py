"""Types of labels that a PostgreSQL database defines: compared with their labels, each apart from the others."""

from __future__ import annotations

from tests.databases import Databases
from tests.unit.grammar.sql.query.test_queries import refusal
from tests.unit.grammar.sql.query.typed.test_everyday import judged_alike

TABLES = [
    "create type state as enum ('open', 'in use', 'gone')",
    "create type kind_of_a_vehicle_on_the_road as enum ('car', 'van', 'open')",
    "create type \"Odd name\" as enum ('x')",
    "create table cars (id int primary key, state state, was state[], kind kind_of_a_vehicle_on_the_road,"
    ' odd "Odd name", note text, wheels int)',
]
TAKEN = """
SELECT state, COUNT(*) FROM cars WHERE state <> 'gone' AND kind IN ('car', 'van') GROUP BY state ORDER BY state
SELECT SUM(CASE WHEN state = 'open' THEN 1 ELSE 0 END), COUNT(*) FILTER (WHERE kind = 'open') FROM cars
SELECT COALESCE(state, 'gone'), state::text || note, kind::varchar FROM cars WHERE state > 'open' OR kind IS NULL
SELECT MIN(state), ARRAY_AGG(DISTINCT kind) FROM cars GROUP BY id HAVING MAX(state) = 'gone'
SELECT c.id FROM cars c JOIN cars d USING (state) WHERE c.state = d.state AND (c.state, c.id) = ('open', 1)
SELECT note::state, 'van'::kind_of_a_vehicle_on_the_road, CAST(NULL AS state) FROM cars WHERE state = ANY (was)
SELECT state BETWEEN 'open' AND 'in use', state = ANY (ARRAY['open', 'gone']::state[]) FROM cars
SELECT UNNEST(ENUM_RANGE(NULL::state)), ENUM_FIRST(state) FROM cars
SELECT x.state = 'open' FROM (SELECT 'open'::state AS state) x
SELECT odd FROM cars WHERE odd IS NOT NULL
""".strip().splitlines()
REFUSED = """
SELECT id FROM cars WHERE state = kind
SELECT id FROM cars WHERE state = note
SELECT id FROM cars WHERE state = 1
SELECT COALESCE(state, kind) FROM cars
SELECT 1::state
SELECT state LIKE 'o%' FROM cars
SELECT state FROM cars UNION SELECT kind FROM cars
SELECT ENUM_RANGE(NULL)
""".strip().splitlines()

NO_LABELS = ["SELECT id FROM cars WHERE state = 'closed'", "SELECT 'van'::state"]
"""What the server notices only as it reads the values."""


def test_columns_have_their_labels(databases: Databases) -> None:
    language = judged_alike(databases("postgresql").create(*TABLES), TAKEN, REFUSED)
    assert all(refusal(language, text) is not None for text in NO_LABELS)
