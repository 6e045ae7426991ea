"""Columns of the result that are made of groups: the engine knows a group within an expression, as the language does."""

from __future__ import annotations

import pytest

from tests.databases import Databases
from tests.unit.grammar.sql.query.typed.test_everyday import judged_alike

TABLES = ["create table staff (id int primary key, name text, dept int, salary int, hired date)"]
TAKEN = """
SELECT DATE_TRUNC('month', hired)::date AS m, COUNT(*) FROM staff GROUP BY DATE_TRUNC('month', hired)
SELECT upper(lower(s.name)) || '!', COUNT(*) FROM staff s GROUP BY lower(name) ORDER BY lower(name)
SELECT EXTRACT(YEAR FROM hired) || '-' || EXTRACT(MONTH FROM hired) FROM staff GROUP BY EXTRACT(YEAR FROM hired), 1
SELECT EXTRACT(YEAR FROM hired) + 1, EXTRACT(YEAR FROM hired), MAX(id) FROM staff GROUP BY EXTRACT(YEAR FROM hired)
SELECT (salary / 1000) * 1000, COUNT(*) FROM staff GROUP BY salary / 1000
SELECT 1 - (salary - 1000) AS bucket FROM staff GROUP BY salary - 1000
SELECT COALESCE(CASE WHEN dept < 5 THEN 'a' END, 'x') FROM staff GROUP BY CASE WHEN dept < 5 THEN 'a' END
SELECT length(lower(name)) + dept FROM staff GROUP BY lower(name), dept
SELECT CASE WHEN dept IS NULL THEN 1 ELSE dept + 1 END, floor(salary / 3) * 3 FROM staff GROUP BY floor(salary / 3), dept
SELECT lower(name) AS n, lower(name) || 'x' FROM staff GROUP BY 1
SELECT RANK() OVER (ORDER BY upper(lower(name))) FROM staff GROUP BY lower(name)
SELECT lower(name) || ': ' || count(*), MAX(lower(name)) || lower(name) FROM staff GROUP BY lower(name)
SELECT SUM(salary) FILTER (WHERE dept = 1) / EXTRACT(YEAR FROM hired) FROM staff GROUP BY EXTRACT(YEAR FROM hired)
SELECT CASE WHEN COUNT(*) > 3 THEN lower(name) ELSE 'other' END FROM staff GROUP BY lower(name)
SELECT RANK() OVER (ORDER BY SUM(salary) / EXTRACT(YEAR FROM hired)) FROM staff GROUP BY EXTRACT(YEAR FROM hired)
SELECT COUNT(*) FROM staff GROUP BY EXTRACT(YEAR FROM hired) HAVING EXTRACT(YEAR FROM hired) >= 2020 AND COUNT(*) > 1
SELECT COUNT(*) FROM staff GROUP BY DATE_TRUNC('month', hired) HAVING COUNT(*) > 1 AND DATE_TRUNC('month', hired)::date > '2024-01-01'
SELECT COUNT(*) FROM staff GROUP BY lower(name), upper(name) HAVING COALESCE(lower(name), 'x') <> upper(name)
SELECT COUNT(*) FROM staff GROUP BY salary / 1000 HAVING 2 * (salary / 1000) > 3 ORDER BY salary / 1000
SELECT COUNT(*) FROM staff GROUP BY DATE_TRUNC('month', hired) ORDER BY EXTRACT(YEAR FROM DATE_TRUNC('month', hired)), COUNT(*) DESC
SELECT COUNT(*) FROM staff GROUP BY lower(name) ORDER BY CASE lower(name) WHEN 'a' THEN 1 ELSE 2 END, length(lower(name)) * COUNT(*)
""".strip().splitlines()
REFUSED = """
SELECT (1 + salary)::text, COUNT(*) FROM staff GROUP BY salary::text
SELECT lower(name) || salary FROM staff GROUP BY lower(name)
SELECT upper(name), COUNT(*) FROM staff GROUP BY lower(name)
SELECT 1 - salary - 1000 FROM staff GROUP BY salary - 1000
SELECT salary * dept + 1 FROM staff GROUP BY dept + 1
SELECT salary * (dept + 2) FROM staff GROUP BY dept + 2
SELECT lower(name) || SUM(salary) || name FROM staff GROUP BY lower(name)
SELECT MAX(lower(name)) || lower(name) FROM staff GROUP BY upper(name)
SELECT RANK() OVER (ORDER BY SUM(salary) / EXTRACT(MONTH FROM hired)) FROM staff GROUP BY EXTRACT(YEAR FROM hired)
SELECT COUNT(*) FROM staff GROUP BY EXTRACT(YEAR FROM hired) HAVING EXTRACT(MONTH FROM hired) >= 2020
SELECT COUNT(*) FROM staff GROUP BY lower(name) HAVING lower(name) <> name
SELECT COUNT(*) FROM staff GROUP BY salary / 1000 HAVING 2 * salary / 1000 > 3
SELECT COUNT(*) FROM staff GROUP BY salary::text HAVING (1 + salary)::text > 'a'
SELECT COUNT(*) FROM staff GROUP BY lower(name) ORDER BY lower(upper(name))
""".strip().splitlines()


@pytest.mark.parametrize("dialect", ["postgresql", "duckdb"])
def test_groups_within_expressions(databases: Databases, dialect: str) -> None:
    judged_alike(databases(dialect).create(*TABLES), TAKEN, REFUSED)


def test_duckdb_tells_groups_by_the_words_of_their_types(databases: Databases) -> None:
    taken = ["SELECT id::text || 'x' FROM staff GROUP BY id::TEXT HAVING id::Text > 'a'"]
    refused = [
        "SELECT id::varchar FROM staff GROUP BY id::text",
        "SELECT hired::timestamptz, COUNT(*) FROM staff GROUP BY hired::timestamp with time zone",
        "SELECT COUNT(*) FROM staff GROUP BY id::int8 HAVING id::bigint > 3",
    ]
    judged_alike(databases("duckdb").create(*TABLES), taken, refused)


def test_columns_of_other_schemas(databases: Databases) -> None:
    """A name that FROM will give to a table of any schema."""
    from guided.grammar.sql import reflect
    from guided.grammar.sql.query.language import query_language

    made = ["create schema sales", "create table sales.bills (id int, paid boolean, total int)", *TABLES]
    language = query_language(reflect(databases("postgresql").create(*made), schemas=["sales"]), forward=False)
    assert language.reads(b"SELECT SUM(b.total) FILTER (WHERE b.paid), MAX(b.total) FROM sales.bills b")
    assert not language.reads(b"SELECT SUM(b.total) FILTER (WHERE b.paid), MAX(b.salary) FROM sales.bills b")


JSON = ["create table log (id int, at date, kind text, body json, more json)"]
OF_JSON = """
SELECT body->>'page' AS page, count(*) AS views FROM log WHERE kind = 'view' GROUP BY body->>'page' ORDER BY views DESC
SELECT count(*), l.body->>'page' FROM log l GROUP BY 2 ORDER BY l.body->>'page'
SELECT coalesce(body->>'page', 'none') AS p, max(body->>'n') FROM log GROUP BY p
SELECT (body#>>'{a,b}')::date, count(DISTINCT id) FROM log GROUP BY (body#>>'{a,b}')::date
SELECT (body->>'n')::int / 10 * 10, count(*) FROM log GROUP BY (body->>'n')::int / 10, 1
SELECT count(*), CASE WHEN body->>'a' = 'x' THEN more END::text FROM log GROUP BY 2
SELECT count(*), body::text, more IS NULL FROM log GROUP BY 2, 3
SELECT kind, body->>'a', grouping(kind), count(*) FROM log GROUP BY ROLLUP (kind, body->>'a')
SELECT body->>'a', rank() OVER (ORDER BY count(*)) FROM log GROUP BY 1
SELECT json_array_elements_text(body), count(*) FROM log GROUP BY 1
SELECT body->>'a' FROM log GROUP BY 1
SELECT date_trunc('month', at), body->>'a', sum((body->>'n')::int) FROM log GROUP BY 1, 2
SELECT body->>'a', count(body), count(*) FILTER (WHERE body IS NULL) FROM log GROUP BY 1
SELECT x FROM (SELECT body->>'x' AS x, count(*) FROM log GROUP BY x) AS t WHERE x = 'a'
""".strip().splitlines()
NOT_OF_JSON = """
SELECT body, count(*) FROM log
SELECT body->'a', count(*) FROM log GROUP BY 1
SELECT body->>'a', count(*) FROM log GROUP BY body
SELECT body->>'a', count(*) FROM log GROUP BY more->>'a'
SELECT body->>'a', count(*) FROM log GROUP BY body->>'b'
SELECT body->>'a', count(*) FROM log
SELECT body->>'a' || count(*) FROM log GROUP BY 1
SELECT count(*), rank() OVER (ORDER BY body->>'a') FROM log
SELECT body->>'a', grouping(body) FROM log GROUP BY 1, body
SELECT body->>'a', body, count(*) FROM log GROUP BY 1, 2
SELECT max(body) FROM log
""".strip().splitlines()


def test_what_is_made_of_json_is_grouped(databases: Databases) -> None:
    judged_alike(databases("postgresql").create(*JSON), OF_JSON, NOT_OF_JSON)
