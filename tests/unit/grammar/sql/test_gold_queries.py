"""Queries that people wrote for other databases: how many of them the grammar accepts, in its own spelling."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from guided.grammar.sql import reflect, sql
from tests.twin.descent import Descent
from tests.twin.sql_spelling import canonical


def share_accepted(folder: Path, pairs: list[tuple[str, str]]) -> float:
    grammars: dict[str, tuple[object, Descent]] = {}
    accepted = 0
    for name, query in pairs:
        if name not in grammars:
            schema = reflect(f"sqlite:///{folder / name}.sqlite")
            grammars[name] = (schema, Descent(sql(schema)))
        schema, twin = grammars[name]
        accepted += twin.accepts(canonical(query, schema).encode())  # type: ignore[arg-type]
    return accepted / len(pairs)


def pairs_of(data: Path, names: set[str] | None) -> list[tuple[str, str]]:
    questions = json.loads((data / "text2sql" / "spider" / "dev.json").read_text())
    return sorted({(q["db_id"], q["query"]) for q in questions if names is None or q["db_id"] in names})


def test_some_spider_databases(data: Path) -> None:
    folder = data / "text2sql" / "spider" / "db"
    assert share_accepted(folder, pairs_of(data, {"concert_singer", "pets_1", "voter_1", "tvshow"})) == 1.0


@pytest.mark.slow
def test_all_of_spider(data: Path) -> None:
    folder = data / "text2sql" / "spider" / "db"
    assert share_accepted(folder, pairs_of(data, None)) >= 0.97
