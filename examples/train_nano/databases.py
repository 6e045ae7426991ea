"""SQLite databases for a random schema, and whether two SELECT statements give the same rows there."""

from __future__ import annotations

import random
import sqlite3
from typing import Any

from sql_corpus import Field, Schema

__all__ = ["database", "same_result"]

ROWS = 40
WORK_LIMIT = 5_000_000
"""Virtual machine steps after which a generated statement is given up, and counts as wrong."""
SQL_TYPES = {"int": "INTEGER", "real": "REAL", "text": "TEXT", "date": "DATE", "bool": "BOOLEAN"}


def database(schema: Schema, seed: int) -> sqlite3.Connection:
    """An in-memory database with ``ROWS`` random rows a table, drawn from the values that questions ask about."""
    rng = random.Random(seed)
    connection = sqlite3.connect(":memory:")
    for relation in schema.relations:
        columns = ", ".join(f"{field.id} {SQL_TYPES[field.kind]}" for field in relation.fields)
        connection.execute(f"CREATE TABLE {relation.id} ({columns})")
        marks = ", ".join("?" for _ in relation.fields)
        for number in range(1, ROWS + 1):
            row = [number, *(_cell(rng, field) for field in relation.fields[1:])]
            connection.execute(f"INSERT INTO {relation.id} VALUES ({marks})", row)
    connection.commit()
    return connection


def _cell(rng: random.Random, field: Field) -> Any:
    if field.references is not None:
        return rng.randint(1, ROWS * 3 // 4)
    if rng.random() < 0.05:
        return None
    value = rng.choice(field.pool)
    if field.kind in ("int", "bool"):
        return int(value) + (rng.randint(-2, 2) if field.kind == "int" and rng.random() < 0.4 else 0)
    return float(value) if field.kind == "real" else value


def same_result(connection: sqlite3.Connection, written: str, expected: str) -> bool:
    """Whether both statements give the same rows: as a list where ``expected`` orders them, else as a multiset."""
    wanted = connection.execute(expected).fetchall()
    steps = 0

    def over_limit() -> bool:
        nonlocal steps
        steps += 1
        return steps > WORK_LIMIT // 1000

    connection.set_progress_handler(over_limit, 1000)
    try:
        got = connection.execute(written).fetchall()
    except (sqlite3.Error, sqlite3.Warning):
        return False
    finally:
        connection.set_progress_handler(None, 0)
    if "ORDER BY" in expected:
        return got == wanted
    return sorted(map(repr, got)) == sorted(map(repr, wanted))
