"""WITH RECURSIVE over columns whose types have a size, which must be the same in all parts."""

from __future__ import annotations

import pytest

from tests.databases import Databases
from tests.unit.grammar.sql.query.typed.test_everyday import judged_alike

TABLES = [
    "create table staff (id int primary key, name varchar(40), nick varchar(20), town text, pay numeric(8,2), boss int)",
    "create table towns (town varchar(40), code varchar(5))",
]
BEGUN = "WITH RECURSIVE tree AS (SELECT id, name, 0 AS level FROM staff WHERE boss IS NULL UNION ALL "
TAKEN = [
    BEGUN + "SELECT s.id, s.name, t.level + 1 FROM staff s JOIN tree t ON s.boss = t.id) SELECT * FROM tree",
    BEGUN + "SELECT s.id, w.town, t.level FROM staff s, towns w, tree t WHERE s.boss = t.id) SELECT * FROM tree",
    BEGUN + "SELECT s.id, s.nick, 0 FROM staff s) SELECT * FROM tree",
    "WITH RECURSIVE t (i, n, p) AS (SELECT id, name, pay FROM staff UNION SELECT id, name, pay FROM staff"
    " JOIN t ON boss = i) SELECT n, SUM(p) FROM t GROUP BY n",
    "WITH RECURSIVE t AS (SELECT id, ARRAY[id] AS path, name FROM staff UNION ALL SELECT s.id, t.path || s.id, s.name"
    " FROM staff s JOIN t ON s.boss = t.id WHERE NOT s.id = ANY(t.path)) SELECT * FROM t",
]
REFUSED = [
    BEGUN + "SELECT s.id, s.nick, t.level FROM staff s, tree t WHERE s.boss = t.id) SELECT * FROM tree",
    BEGUN + "SELECT s.id, s.name || '', t.level FROM staff s, tree t WHERE s.boss = t.id) SELECT * FROM tree",
    BEGUN + "SELECT s.id, s.town, t.level FROM staff s, tree t WHERE s.boss = t.id) SELECT * FROM tree",
]
LEFT = [
    BEGUN + "SELECT s.id, s.name, t.level FROM tree t JOIN staff s ON s.boss = t.id) SELECT * FROM tree",
    BEGUN + "SELECT s.id, t.name, t.level FROM staff s, tree t WHERE s.boss = t.id) SELECT * FROM tree",
]


def test_sizes_in_recursion(databases: Databases) -> None:
    judged_alike(databases("postgresql").create(*TABLES), TAKEN, REFUSED, LEFT)


@pytest.mark.parametrize("text", [TAKEN[0], TAKEN[3]])
def test_names_of_duckdb(databases: Databases, text: str) -> None:
    judged_alike(databases("duckdb").create(*TABLES), [text], [])
