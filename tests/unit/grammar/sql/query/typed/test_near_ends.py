"""Texts whose end took a search without bound, or was not found: a column with and without qualifiers, and literals."""

from __future__ import annotations

import pytest

from guided.grammar.attributed.language import AttributedLanguage
from guided.grammar.sql import Column, DatabaseSchema, Table
from guided.grammar.sql.query.language import query_language
from tests.unit.grammar.sql.query import random_queries

STEPS = 5_000
TEXTS = """
SELECT code, x.code, u.code FROM
SELECT code, x.code, u.code, count(*) FROM
SELECT code, x.code, u.code || 'a', count(*) FROM
SELECT id, x.id, u.id, t.id FROM
SELECT code, other, x.code, u.code, x.other, u.other FROM
SELECT sum(code), x.code, u.code * 2 FROM
SELECT name, code, u.name, u.code, t.id, s.name FROM
SELECT DISTINCT day, x.day, s.day FROM
SELECT id, code, x.id, u.id + 1, sum(x.code), u.code FROM
SELECT code, x.code, u.code, w.code FROM t JOIN
SELECT LOCALTIMESTAMP > - TIMESTAMPTZ
(TABLE s OFFSET (WITH RECURSIVE e AS ((WITH
((TABLE s UNION ALL (WITH RECURSIVE e AS ((WITH
SELECT a || 'x', x.day + x.
SELECT x.name FROM t JOIN LATERAL (SELECT y.other
SELECT day, x.day FROM s LEFT JOIN t
""".strip().splitlines()
DUCKDB = """
FROM t QUALIFY\t
SELECT count(*) FROM t QUALIFY\t
SELECT 1 FROM t WHERE EXTRACT(YEAR FROM array_to_string(
SELECT EXTRACT(MONTH FROM NULLIF(TRUE IS DISTINCT FROM array_transform(
FROM t JOIN t AS
FROM t RIGHT JOIN (TABLE t)
FROM t SEMI JOIN t AS
SELECT lower(x), y FROM t SEMI JOIN (WITH
SELECT lower(x), u.y FROM t ANTI JOIN (SELECT
SELECT lower(x), y FROM t SEMI JOIN (SELECT '' AS x) AS z ON
SELECT z.* EXCLUDE (a) FROM t
SELECT z.* EXCLUDE (a, b) FROM (SELECT 1 AS a, 2 AS b) AS
SELECT z.* EXCLUDE (b) FROM (VALUES (1, 2)) AS z (
SELECT z.* EXCLUDE (a) FROM (VALUES (1, 2)) AS z (b
SELECT s.* EXCLUDE (id, name, day) FROM s
""".strip().splitlines()
"""QUALIFY has a window, ON a condition, what SEMI JOIN joins defines no names, and a star leaves a column."""
NOWHERE = (
    "((((((((((((FROM (SELECT GROUPING(",
    "SELECT rank() OVER (ORDER BY (SELECT 1 FROM t QUALIFY\t",
    "FROM range(TRIM\t",
    "VALUES (0 <> TRIM\t",
    "VALUES (EXTRACT(year FROM CASE\t",
    "SELECT name FROM s JOIN s AS b ON",
    "SELECT x.id, name FROM t FULL JOIN t AS b ON",
    "SELECT id, x.id FROM t CROSS JOIN",
    "SELECT id, x.id FROM t JOIN LATERAL (",
    "SELECT shape, x.shape FROM t ",
    "SELECT name, x.name FROM s JOIN (TABLE s) x (a, b ",
)
"""So deep no source could follow with a column, what defines a window has none, what is computed has no such operand,
and of two columns of a name USING makes one, ON does not."""
POSTGRESQL = """
SELECT x FROM (VALUES (TRIM(+ TIMESTAMP
SELECT GROUPING(t.shape)
SELECT to_tsvector(name) FROM s INTERSECT SELECT
SELECT ARRAY(SELECT q.words INTERSECT
SELECT day, day, day FROM s UNION ALL VALUES (
SELECT day, day, day FROM s UNION ALL VALUES (NULL::date, NULL::date, NULL::date), (
SELECT day, day, day FROM s UNION ALL VALUES (TIMESTAMPTZ
SELECT GROUPING(u.shape, t.shape) FROM
SELECT ROW_TO_JSON(c), d.
SELECT d.c, ROW_TO_JSON(
SELECT CURRENT_TIMESTAMP >= CURRENT_TIME AT TIME ZONE 'UTC' + 0 / INTERVAL
SELECT CURRENT_TIMESTAMP + 0 ^ CAST('1' AS VARCHAR
SELECT name ILIKE CURRENT_TIME - +
SELECT ARRAY(VALUES (INT4RANGE(1,
SELECT DISTINCT ON (lower) lower('')
SELECT DISTINCT ON (name) x.name, name
SELECT c FROM (SELECT DISTINCT ON (c)
SELECT ARRAY[INT4RANGE(1,
SELECT count(*), id FROM s GROUP BY GROUPING SETS ((CURRENT_DATE != + TIMESTAMPTZ
SELECT GROUPING(l, m, n) + x.
SELECT 1 FROM s GROUP BY GROUPING SETS (s.
SELECT count(*), k
SELECT count(*), CASE WHEN j.k IS NULL THEN j.k
SELECT k->>'x', count(*) FROM j
SELECT k->>'x', t.id, count(*) FROM j, t GROUP BY
SELECT k->>'x', t.id, count(*) FROM j JOIN t ON TRUE GROUP BY ROLLUP (
SELECT k->>'x', GROUPING(
SELECT count(*), k->>'x' || (SELECT y.
SELECT json_array_elements(k), count
""".strip().splitlines()
"""Times take intervals there, to which products lead; columns of GROUPING have an order, and rows no column of their name.
There are no arrays of ranges, and what DISTINCT ON names is no other column of the result.  What is made of JSON is a
group, JSON is none."""


@pytest.fixture(scope="module", params=["postgresql", "duckdb"])
def language(request: pytest.FixtureRequest) -> AttributedLanguage:
    tables = (
        Table("t", (Column("id", "INTEGER"), Column("name", "TEXT"), Column("shape", "XML"))),
        Table("s", (Column("id", "INTEGER"), Column("name", "TEXT"), Column("day", "DATE"))),
        Table("q", (Column("words", "TSVECTOR"), Column("id", "INTEGER"))),
        Table("j", tuple(Column(name, "JSON") for name in "klmn")),
    )
    return query_language(DatabaseSchema(tables, dialect=request.param))


@pytest.mark.parametrize("text", TEXTS)
def test_the_end_is_near(language: AttributedLanguage, text: str) -> None:
    check_end(language, text)


@pytest.mark.parametrize("language", ["postgresql"], indirect=True)
@pytest.mark.parametrize("text", POSTGRESQL)
def test_the_end_of_times_is_near(language: AttributedLanguage, text: str) -> None:
    check_end(language, text)


@pytest.mark.parametrize("language", ["duckdb"], indirect=True)
@pytest.mark.parametrize("text", DUCKDB)
def test_the_end_of_other_clauses_is_near(language: AttributedLanguage, text: str) -> None:
    check_end(language, text)


@pytest.mark.parametrize("language", ["duckdb"], indirect=True)
@pytest.mark.parametrize("text", NOWHERE)
def test_what_has_no_end_does_not_begin(language: AttributedLanguage, text: str) -> None:
    assert random_queries.read(language, language.start, text) is None


@pytest.mark.parametrize("language", ["postgresql"], indirect=True)
def test_a_literal_stands_where_a_type_is_that_casts_lead_to(language: AttributedLanguage) -> None:
    begun = "VALUES (ts_rank_cd(NULL || "
    assert random_queries.read(language, language.start, begun + "NULL") is None
    assert random_queries.read(language, language.start, "VALUES (ts_rank_cd(NULL, ") is not None
    check_end(language, begun)


@pytest.mark.parametrize("language", ["postgresql"], indirect=True)
def test_the_one_source_that_a_star_demands_owes_no_other_names(language: AttributedLanguage) -> None:
    begun = "TABLE s UNION ALL SELECT DISTINCT ON (v.id, other) "
    check_end(language, begun)
    assert random_queries.read(language, language.start, begun + "*") is None
    assert language.reads(b"TABLE s UNION ALL SELECT DISTINCT * FROM s")


def test_a_row_as_a_value_goes_by_a_short_name() -> None:
    columns = (Column("feature_type_code", "TEXT"), Column("feature_type_name", "TEXT"))
    schema = DatabaseSchema((Table("ref_feature_types", columns), Table("properties", columns)), dialect="postgresql")
    check_end(query_language(schema, forward=False), "(TABLE ref_feature_types UNION SELECT ROW_TO_JSON")


@pytest.mark.parametrize("dialect", ["postgresql", "duckdb"])
@pytest.mark.parametrize("begun", ['SELECT x."current_date"', 'SELECT 1, u."current_date", x."current_date" FROM t AS'])
def test_a_column_that_no_query_can_name_is_of_a_table(dialect: str, begun: str) -> None:
    # Beside so long a name a sub-query counts as shorter than a table.
    tables = (Table("t", (Column("current_date", "TEXT"), Column("y" * 60, "INTEGER"))), Table("z" * 60, ()))
    check_end(query_language(DatabaseSchema(tables, dialect=dialect)), begun)


@pytest.mark.parametrize("dialect", ["postgresql", "duckdb"])
def test_a_table_that_has_all_names_goes_by_the_one_that_waits(dialect: str) -> None:
    # By its own name it would leave a column for a second one, which has the first again; as lists, not for USING.
    tables = (Table("t", (Column("current_date", "DATE"), Column("shape", "XML"))),)
    check_end(query_language(DatabaseSchema(tables, dialect=dialect)), 'SELECT shape, x."current_date" FROM')


@pytest.mark.parametrize("dialect", ["postgresql", "duckdb"])
def test_what_using_makes_one_is_of_one_type(dialect: str) -> None:
    tables = (Table("t", (Column("k", "INTEGER"),)), Table("s", (Column("k", "BOOLEAN"),)))
    language = query_language(DatabaseSchema(tables, dialect))
    for text in ("SELECT k, x.k < TRUE FROM ", "SELECT k, (SELECT x.k < TRUE) FROM "):
        # The column of t is no operand there, and no other makes one with it.
        assert random_queries.read(language, language.start, text + "t") is None
        assert language.reads((text + "s x").encode())
        check_end(language, text)
    assert language.reads(b"SELECT 1 FROM s x WHERE EXISTS (SELECT k FROM t WHERE x.k < TRUE)")
    assert not language.reads(b"SELECT 1 FROM s WHERE (SELECT k, x.k < TRUE FROM t JOIN (SELECT 0) x(k) USING (k)) > 1")


def test_a_function_may_have_what_waits() -> None:
    schema = DatabaseSchema((Table("t", (Column("id"), Column("type"))),))
    check_end(query_language(schema), "SELECT id, type FROM t JOIN json_each")


BOTH = """
SELECT alpha, beta FROM t JOIN
SELECT alpha, beta FROM t LEFT JOIN s
SELECT alpha, beta FROM s JOIN main.
SELECT x.alpha, beta, alpha FROM t JOIN
SELECT alpha, max(beta) FROM s JOIN
SELECT alpha, beta FROM t WHERE alpha IN (SELECT beta FROM s JOIN t
""".strip().splitlines()


@pytest.mark.parametrize("dialect", ["sqlite", "mariadb", "postgresql", "duckdb"])
@pytest.mark.parametrize("text", BOTH)
def test_what_all_tables_have_is_joined_by_using_or_left_out(dialect: str, text: str) -> None:
    both = tuple(Column(name, "INTEGER") for name in ("alpha", "beta"))
    schema = DatabaseSchema((Table("t", both), Table("s", both)), dialect, default_schema="main")
    for forward in (True, False):
        check_end(query_language(schema, forward=forward), text)


@pytest.mark.parametrize("dialect", ["sqlite", "mariadb", "postgresql", "duckdb"])
def test_the_shortest_table_that_has_nothing_that_waits_is_joined(dialect: str) -> None:
    tables = {"flights": ("uid", "airline"), "airports": ("code", "city")}
    schema = tuple(Table(name, tuple(Column(one, "INTEGER") for one in of)) for name, of in tables.items())
    language = query_language(DatabaseSchema(schema, dialect))
    begun = "SELECT uid, airline FROM flights JOIN "
    at = random_queries.read(language, language.start, begun)
    assert at is not None and language.rest(at).startswith(b"airports")
    check_end(language, begun)


def check_end(language: AttributedLanguage, text: str) -> None:
    at = random_queries.read(language, language.start, text)
    assert at is not None
    end = language.end(at, STEPS)
    assert end is not None
    assert len(end) <= language.price(at)
    assert language.reads(text.encode() + end)
