"""Signs before an operand: two in a row at most, so that a token of 32 has no place behind each of them."""

from __future__ import annotations

import pytest

from guided.grammar.attributed.language import AttributedLanguage
from guided.grammar.sql import Column, DatabaseSchema, Table
from guided.grammar.sql.query.language import query_language


@pytest.fixture(scope="module", params=["postgresql", "duckdb"])
def language(request: pytest.FixtureRequest) -> AttributedLanguage:
    return query_language(DatabaseSchema((Table("t", (Column("a", "INTEGER"),)),), dialect=request.param))


@pytest.mark.parametrize("text", ["SELECT + +1", "SELECT -+a FROM t", "SELECT - +(- +1)", "SELECT 1 - + -a FROM t"])
def test_two_signs_are_taken(language: AttributedLanguage, text: str) -> None:
    assert language.reads(text.encode())


@pytest.mark.parametrize("text", ["SELECT + + +1", "SELECT -+ -a FROM t", "SELECT 1 - + - +a FROM t"])
def test_three_in_a_row_are_not(language: AttributedLanguage, text: str) -> None:
    assert not language.reads(text.encode())
