"""Questions' queries that were written for SQLite, in MariaDB's spelling: those that the server prepares are taken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from guided.errors import GuidedError
from guided.grammar.sql import reflect
from guided.grammar.sql.connection import open_session
from guided.grammar.sql.query.language import query_language
from guided.grammar.sql.schema import DatabaseSchema
from tests.amounts import Refusals
from tests.databases import Databases
from tests.unit.grammar.sql.query.test_queries import refusal

_TYPES = (("INT", "BIGINT"), ("CHAR", "VARCHAR(100)"), ("TEXT", "VARCHAR(100)"), ("REAL", "DOUBLE"), ("NUM", "DOUBLE"),
          ("DATETIME", "DATETIME"), ("TIMESTAMP", "DATETIME"), ("DATE", "DATE"), ("BOOL", "BOOLEAN"))  # fmt: skip


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def tables(schema: DatabaseSchema) -> list[str]:
    """Statements that make the same tables, with names in lower case."""
    found = []
    for table in schema.tables:
        columns = []
        for column in table.columns:
            kind = next((name for mark, name in _TYPES if mark in column.type.upper()), "VARCHAR(100)")
            columns.append(f"{quoted(column.name)} {kind}")
        found.append(f"CREATE TABLE {quoted(table.name.lower())} ({', '.join(columns)})")
    return found


def translated(query: str) -> str:
    """In MySQL's spelling; names are in lower case, and what no name is is a string."""
    sqlglot = pytest.importorskip("sqlglot")
    tree = sqlglot.parse_one(query, read="sqlite")
    for name in tree.find_all(sqlglot.exp.Identifier):
        name.set("this", name.this.lower())

    def string(node: Any) -> Any:
        bare = isinstance(node, sqlglot.exp.Column) and not node.table and node.this.args.get("quoted")
        return sqlglot.exp.Literal.string(node.name) if bare else node

    return str(tree.transform(string).sql(dialect="mysql"))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least"), [("spider", 656), ("defog", 175)])
def test_gold_queries_in_its_spelling_are_taken(name: str, least: int, data: Path, databases: Databases) -> None:
    folder = data / "text2sql" / name
    if name == "spider":
        pairs = [(row["db_id"], row["query"]) for row in json.loads((folder / "dev.json").read_text())]
    else:
        rows = json.loads((folder / "questions.json").read_text())
        pairs = [(row["db_name"], query) for row in rows for query in row["query"].split(";") if query.strip()]
    prepared, missing = 0, []
    with Refusals(most=0.1) as refusals:
        for db in sorted({db for db, _ in pairs}):
            url = databases("mariadb").create(*tables(reflect(str(folder / f"db/{db}.sqlite"))))
            language = query_language(reflect(url))
            with open_session(url) as session:
                for query in (translated(query) for of, query in pairs if of == db):
                    with refusals.trial(GuidedError):
                        session.prepare(query)
                        prepared += 1
                        if refusal(language, query) is not None:
                            missing.append(query)
    assert prepared >= least
    assert len(missing) <= prepared // 100, missing
