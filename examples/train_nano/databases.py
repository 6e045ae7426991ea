"""Databases for a random schema, and whether two SELECT statements give the same rows there."""

from __future__ import annotations

import random
import sqlite3
from typing import Any

from sql_corpus import Field, Relation, Schema
from sql_spelling import Spelling

__all__ = ["contents", "database", "definitions", "same_result", "same_rows"]

ROWS = 40
WORK_LIMIT = 5_000_000
"""Virtual machine steps after which a generated statement is given up, and counts as wrong."""
SQL_TYPES = {"int": "INTEGER", "real": "REAL", "text": "TEXT", "date": "DATE", "bool": "BOOLEAN"}


def database(schema: Schema, seed: int) -> sqlite3.Connection:
    """An in-memory database with ``ROWS`` random rows a table, drawn from the values that questions ask about."""
    connection = sqlite3.connect(":memory:")
    for statement in definitions(schema):
        connection.execute(statement)
    for relation, rows in contents(schema, seed):
        marks = ", ".join("?" for _ in relation.fields)
        connection.executemany(f"INSERT INTO {relation.id} VALUES ({marks})", rows)
    connection.commit()
    return connection


def definitions(schema: Schema) -> list[str]:
    """The statements that make the tables, in the schema's dialect."""
    types = SQL_TYPES if schema.spelling is Spelling.SQLITE else {**SQL_TYPES, "real": "DOUBLE PRECISION"}
    return [
        f"CREATE TABLE {relation.id} ({', '.join(f'{field.id} {types[field.kind]}' for field in relation.fields)})"
        for relation in schema.relations
    ]


def contents(schema: Schema, seed: int) -> list[tuple[Relation, list[list[Any]]]]:
    """Each table with its random rows."""
    rng = random.Random(seed)
    return [
        (
            relation,
            [[number, *(_cell(rng, field) for field in relation.fields[1:])] for number in range(1, ROWS + 1)],
        )
        for relation in schema.relations
    ]


def _cell(rng: random.Random, field: Field) -> Any:
    if field.references is not None:
        return rng.randint(1, ROWS * 3 // 4)
    if rng.random() < 0.05:
        return None
    value = rng.choice(field.pool)
    if field.kind in ("int", "bool"):
        return int(value) + (rng.randint(-2, 2) if field.kind == "int" and rng.random() < 0.4 else 0)
    return float(value) if field.kind == "real" else value


def same_result(connection: sqlite3.Connection, written: str, expected: str) -> bool | None:
    """Whether both statements give the same rows: as a list where ``expected`` orders them, else as a multiset.

    None where the written one is refused, or takes too many steps.
    """
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
        return None
    finally:
        connection.set_progress_handler(None, 0)
    return same_rows(got, wanted, expected)


def same_rows(got: list[Any], wanted: list[Any], expected: str) -> bool:
    """Whether rows are those of the statement ``expected``, in its order where it has one."""
    if "ORDER BY" in expected:
        return got == wanted
    return sorted(map(repr, got)) == sorted(map(repr, wanted))
