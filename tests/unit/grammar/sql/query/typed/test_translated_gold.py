"""Questions' queries that were written for SQLite, in the spelling of another engine: what that prepares is taken."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy

from guided.grammar.sql import reflect
from guided.grammar.sql.query.language import query_language
from guided.grammar.sql.schema import DatabaseSchema
from tests.databases import Databases
from tests.unit.grammar.sql.query.test_queries import refusal
from tests.unit.grammar.sql.query.typed.test_analytics import prepares

_TYPES = (
    ("INT", "bigint"), ("CHAR", "varchar"), ("TEXT", "text"), ("REAL", "double precision"),
    ("NUM", "double precision"), ("DATETIME", "timestamp"), ("TIMESTAMP", "timestamp"), ("DATE", "date"),
    ("BOOL", "boolean"),
)  # fmt: skip
_SPELLINGS = {"duckdb": "duckdb", "postgresql": "postgres"}
"""What sqlglot calls the dialects."""


def quoted(name: str) -> str:
    """As a query without quotes has the name."""
    return '"' + name.lower().replace('"', '""') + '"'


def tables(schema: DatabaseSchema) -> Iterator[str]:
    """Statements that make the same tables."""
    for table in schema.tables:
        columns = []
        for column in table.columns:
            kind = next((name for mark, name in _TYPES if mark in column.type.upper()), "text")
            columns.append(f"{quoted(column.name)} {kind}")
        if table.primary_key:
            columns.append(f"PRIMARY KEY ({', '.join(map(quoted, table.primary_key))})")
        yield f"CREATE TABLE {quoted(table.name)} ({', '.join(columns)})"


def translated(query: str, dialect: str) -> str:
    """In the spelling of a dialect; what no name is is a string."""
    sqlglot = pytest.importorskip("sqlglot")

    def string(node: Any) -> Any:
        bare = isinstance(node, sqlglot.exp.Column) and not node.table and node.this.args.get("quoted")
        return sqlglot.exp.Literal.string(node.name) if bare else node

    return str(sqlglot.parse_one(query, read="sqlite").transform(string).sql(dialect=_SPELLINGS[dialect]))


@pytest.mark.slow
@pytest.mark.parametrize("dialect", _SPELLINGS)
@pytest.mark.parametrize(("name", "least"), [("spider", 565), ("defog", 181)])
def test_gold_queries_in_its_spelling_are_taken(
    dialect: str, name: str, least: int, data: Path, databases: Databases
) -> None:
    folder = data / "text2sql" / name
    if name == "spider":
        pairs = [(row["db_id"], row["query"]) for row in json.loads((folder / "dev.json").read_text())]
    else:
        rows = json.loads((folder / "questions.json").read_text())
        pairs = [(row["db_name"], query) for row in rows for query in row["query"].split(";") if query.strip()]
    prepared, missing = 0, []
    for db in sorted({db for db, _ in pairs}):
        url = databases(dialect).create(*tables(reflect(str(folder / f"db/{db}.sqlite"))))
        language = query_language(reflect(url))
        engine = sqlalchemy.create_engine(url)
        with engine.connect() as connection:
            for query in (translated(query, dialect) for of, query in pairs if of == db):
                # Spider's queries name columns beside aggregates which are not grouped, and add up texts.
                if prepares(connection, query):
                    prepared += 1
                    if refusal(language, query) is not None:
                        missing.append(query)
        engine.dispose()
    assert prepared >= least
    # DuckDB orders DISTINCT rows by columns that are not in them; the language does not.
    assert len(missing) <= prepared // 250, missing
