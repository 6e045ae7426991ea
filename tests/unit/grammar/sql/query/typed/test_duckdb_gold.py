"""Questions' queries that were written for SQLite, in DuckDB's spelling: those that the engine prepares are taken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest

from guided.grammar.sql import reflect
from guided.grammar.sql.query.language import query_language
from guided.grammar.sql.schema import DatabaseSchema
from tests.amounts import Refusals
from tests.unit.grammar.sql.query.test_queries import refusal

_TYPES = (("INT", "BIGINT"), ("CHAR", "VARCHAR"), ("TEXT", "VARCHAR"), ("REAL", "DOUBLE"), ("NUM", "DOUBLE"),
          ("DATETIME", "TIMESTAMP"), ("TIMESTAMP", "TIMESTAMP"), ("DATE", "DATE"), ("BOOL", "BOOLEAN"))  # fmt: skip


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def tables(schema: DatabaseSchema) -> list[str]:
    """Statements that make the same tables."""
    found = []
    for table in schema.tables:
        columns = []
        for column in table.columns:
            kind = next((name for mark, name in _TYPES if mark in column.type.upper()), "VARCHAR")
            columns.append(f"{quoted(column.name)} {kind}")
        found.append(f"CREATE TABLE {quoted(table.name)} ({', '.join(columns)})")
    return found


def translated(query: str) -> str:
    """In DuckDB's spelling; what no name is is a string."""
    sqlglot = pytest.importorskip("sqlglot")

    def string(node: Any) -> Any:
        bare = isinstance(node, sqlglot.exp.Column) and not node.table and node.this.args.get("quoted")
        return sqlglot.exp.Literal.string(node.name) if bare else node

    return str(sqlglot.parse_one(query, read="sqlite").transform(string).sql(dialect="duckdb"))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least"), [("spider", 570), ("defog", 181)])
def test_gold_queries_in_its_spelling_are_taken(name: str, least: int, data: Path, tmp_path: Path) -> None:
    folder = data / "text2sql" / name
    if name == "spider":
        pairs = [(row["db_id"], row["query"]) for row in json.loads((folder / "dev.json").read_text())]
    else:
        rows = json.loads((folder / "questions.json").read_text())
        pairs = [(row["db_name"], query) for row in rows for query in row["query"].split(";") if query.strip()]
    prepared, missing = 0, []
    # Spider's queries name columns beside aggregates which are not grouped, and add up texts.
    with Refusals(most=0.15) as refusals:
        for db in sorted({db for db, _ in pairs}):
            file = tmp_path / f"{db}.duckdb"
            with duckdb.connect(str(file)) as connection:
                for statement in tables(reflect(str(folder / f"db/{db}.sqlite"))):
                    connection.execute(statement)
            language = query_language(reflect(str(file)))
            with duckdb.connect(str(file), read_only=True) as connection:
                for query in (translated(query) for of, query in pairs if of == db):
                    with refusals.trial(duckdb.Error):
                        connection.execute(f"EXPLAIN {query}")
                        prepared += 1
                        if refusal(language, query) is not None:
                            missing.append(query)
    assert prepared >= least
    assert len(missing) <= prepared // 100, missing
