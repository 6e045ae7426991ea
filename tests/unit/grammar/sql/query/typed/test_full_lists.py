"""Lists whose length is known take no comma behind their last item: nothing could follow it."""

from __future__ import annotations

from typing import Any

import pytest

import guided
from guided.grammar.sql import Column, DatabaseSchema, NameCase, Table
from guided.grammar.sql.query.language import query_language
from tests.vocabularies import of_bytes

FULL = (
    "SELECT 1 UNION SELECT 1",
    "WITH x(a) AS (SELECT 1",
    "SELECT (1, 2) IN (SELECT 1, 2",
    "SELECT (1, 2) = (1, 2",
    "SELECT (1, 2) IN ((1, 2",
    "VALUES (1, 2), (3, 4",
    'SELECT 1 FROM (SELECT 1, 2) AS s("a", b',
)


@pytest.fixture(scope="module", params=["postgresql", "duckdb"])
def constraint(request: pytest.FixtureRequest):
    table = Table("election", (Column("id", "INTEGER"), Column("name", "TEXT")))
    names = NameCase.LOWERED if request.param == "postgresql" else NameCase.IGNORED
    schema = DatabaseSchema((table,), dialect=request.param, table_names=names, column_names=names)
    return guided.compile(guided.sql(schema), of_bytes())


@pytest.mark.parametrize("text", FULL)
def test_no_comma_follows_the_last_item(constraint, text):
    state = constraint.advance_bytes(constraint.start, text.encode())
    assert state
    assert constraint.is_accepting(constraint.advance_bytes(state, constraint.shortest_text(state)))
    assert constraint.advance_bytes(state, b",") == 0


def test_a_list_of_columns_ends_with_the_last_only(constraint):
    state = constraint.advance_bytes(constraint.start, b"SELECT 1 FROM (SELECT 1, 2) AS s(a")
    assert constraint.advance_bytes(state, b")") == 0
    assert constraint.shortest_text(state).startswith(b",")


@pytest.mark.parametrize("dialect", ["postgresql", "duckdb"])
def test_ungrouped_columns_do_not_begin_terms_of_order(dialect: str) -> None:
    table = Table("gates", (Column("id", "integer"), Column("city", "text"), Column("age", "integer")))
    language = query_language(DatabaseSchema((table,), dialect=dialect))
    text = "SELECT city, COUNT(*) FROM gates GROUP BY city ORDER BY "
    assert language.reads(f"{text}city".encode())
    assert language.reads(f"{text}MAX(age)".encode())
    at: Any = language.start
    for byte in f"{text}id".encode():
        at = None if at is None else language.step(at, byte)
    assert at is None or language.end(at) is not None


@pytest.mark.parametrize("dialect", ["postgresql", "duckdb"])
def test_a_part_in_brackets_has_a_type_of_its_own_when_its_column_gets_a_name(dialect: str) -> None:
    table = Table("gates", (Column("id", "integer"),))
    language = query_language(DatabaseSchema((table,), dialect=dialect))
    assert language.reads(b"SELECT 1 INTERSECT (SELECT NULL::int AS a)")
    at: Any = language.start
    for byte in b"SELECT 1 INTERSECT (SELECT NULL AS":
        at = None if at is None else language.step(at, byte)
    assert at is None or language.end(at) is not None


@pytest.mark.parametrize("text", [" FROM LATERAL", ", a.b, c.d FROM LATERAL", " FROM election JOIN LATERAL"])
def test_lateral_can_be_ended(constraint, text):
    state = constraint.advance_bytes(constraint.start, f"SELECT 1{text}".encode())
    end = constraint.shortest_text(state)
    assert len(end) <= constraint.completion_bound(state)
    assert constraint.is_accepting(constraint.advance_bytes(state, end))


@pytest.mark.parametrize("dialect", ["postgresql", "duckdb", "sqlite", "mysql"])
@pytest.mark.parametrize(("qualifiers", "names"), [(6, 20), pytest.param(20, 100, marks=pytest.mark.slow)])
def test_many_names_that_wait_for_their_sources_have_a_short_end(dialect: str, qualifiers: int, names: int) -> None:
    """No source defines what another is to have: the end grows with the names, not with names times sources."""
    language = query_language(DatabaseSchema((Table("gates", (Column("id", "integer"),)),), dialect=dialect))
    terms = [f"q{n} . c{n}" for n in range(qualifiers)] + [f"n{n}" for n in range(names)]
    at: Any = language.start
    for byte in f"SELECT {', '.join(terms)}".encode():
        at = language.step(at, byte)
    assert len(language.rest(at)) < 16 * len(terms)


@pytest.mark.parametrize(("dialect", "text"), [
    ("postgresql", "SELECT true BETWEEN 'a' || 0"),
    ("postgresql", "SELECT true = 'a' ||"),
    ("duckdb", "SELECT true = 'a' ||"),
])  # fmt: skip
def test_what_no_cast_makes_a_condition_a_pattern_does(dialect: str, text: str) -> None:
    language = query_language(DatabaseSchema((Table("gates", (Column("id", "integer"),)),), dialect=dialect))
    at: Any = language.start
    for byte in text.encode():
        at = language.step(at, byte)
    assert len(language.rest(at)) <= 16


@pytest.mark.parametrize(("dialect", "kind"), [("postgresql", "point"), ("duckdb", "GEOMETRY")])
def test_no_values_stand_beside_a_type_that_no_expression_has(dialect: str, kind: str) -> None:
    table = Table("gates", (Column("id", "integer"), Column("place", kind)))
    language = query_language(DatabaseSchema((table,), dialect=dialect))
    assert language.reads(b"SELECT * FROM gates UNION ALL SELECT 1, NULL")
    assert language.reads(b"SELECT id FROM gates UNION ALL VALUES (1)")
    at: Any = language.start
    for byte in b"SELECT * FROM gates UNION ALL VALUES (":
        at = None if at is None else language.step(at, byte)
    assert at is None or language.end(at) is not None


@pytest.mark.parametrize("dialect", ["postgresql", "duckdb"])
@pytest.mark.parametrize("columns", ["g.*", "g.notes", "id, notes"])
def test_no_groups_are_begun_where_a_column_can_be_none(dialect: str, columns: str) -> None:
    table = Table("gates", (Column("id", "integer"), Column("notes", "json")))
    language = query_language(DatabaseSchema((table,), dialect=dialect))
    at: Any = language.start
    for byte in f"SELECT {columns} FROM gates g GROUP BY".encode():
        at = None if at is None else language.step(at, byte)
    assert at is None or language.end(at) is not None


@pytest.mark.parametrize("dialect", ["postgresql", "duckdb"])
def test_no_order_is_begun_of_what_reads_itself(dialect: str) -> None:
    language = query_language(DatabaseSchema((Table("gates", (Column("id", "integer"),)),), dialect=dialect))
    at: Any = language.start
    for byte in b"WITH RECURSIVE a(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a ORDER":
        at = None if at is None else language.step(at, byte)
    at = None if at is None else language.step(at, ord(" "))
    assert at is None or language.end(at) is not None


@pytest.mark.parametrize("forward", [True, False])
@pytest.mark.parametrize(("dialect", "kind"), [("postgresql", "json"), ("duckdb", "GEOMETRY")])
def test_a_column_alone_has_an_order(dialect: str, kind: str, forward: bool) -> None:
    unsorted = Table("t", (Column("raw", kind),))
    both = Table("t", (Column("raw", kind), Column("a long name", "text")))
    for table in (unsorted, both):
        language = query_language(DatabaseSchema((table,), dialect=dialect), forward=forward)
        for text in (
            "SELECT DISTINCT ON (",
            "SELECT DISTINCT ON (t.",
            "SELECT DISTINCT ON (t.ra",
            "SELECT DISTINCT ON (c.e,",
            "SELECT 1 FROM t GROUP BY GROUPING SETS (ra",
            "SELECT 1 FROM t GROUP BY GROUPING SETS (t.",
        ):
            at: Any = language.start
            for byte in text.encode():
                at = None if at is None else language.step(at, byte)
            assert at is None or len(language.rest(at)) <= language.price(at), text
    assert language.reads(b'SELECT DISTINCT ON (t."a long name", "a long name") 1 FROM t')
    assert language.reads(b'SELECT 1 FROM t GROUP BY GROUPING SETS ("a long name", (t."a long name"))')
