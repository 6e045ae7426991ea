"""Casts, operators and functions against PostgreSQL itself: it must take what is taken, and give the same type."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from guided.grammar.sql.query.dialects.postgresql.types import SYSTEM
from guided.grammar.sql.query.typed import functions, operators
from guided.grammar.sql.query.typed.types import BIT, RANGES, common, is_literal, settled, turns_into
from tests.amounts import some
from tests.databases import Databases

SPELLED = {
    "'null": "NULL", "'text": "'some text'", "'whole": "'12'", "'integer": "'123456'", "'decimal": "'2.5'", "'date": "'2020-01-01'",
    "'timestamp": "'2020-01-01 10:00'", "'time": "'10:00'", "'interval": "'3 days'", "'bool": "'yes'", "'json": "'{}'",
    "'array": "'{}'", "'jsonpath": "'$.a'",
    "'config": "'english'", "'query": "'a & b'", "'bounds": "'[)'", "'code": "'65'",
}  # fmt: skip
TYPES = [name for name in BIT if name in SYSTEM.types or name in SPELLED]


def spelled(name: str) -> str:
    """A value of a type, or a literal."""
    return SPELLED.get(name) or f"NULL::{written(name)}"


def written(name: str) -> str:
    return name[1:] + "[]" if name[0] == "_" else name


class Server:
    """Asks for the type of an expression, None where it is refused."""

    def __init__(self, driver: Any) -> None:
        self.cursor = driver.cursor()

    def type_of(self, expression: str) -> str | None:
        import psycopg

        try:
            self.cursor.execute(f"PREPARE asked AS SELECT {expression}")
        except psycopg.Error:
            return None
        found = self.cursor.execute(
            "SELECT typname FROM pg_prepared_statements, pg_type WHERE name = 'asked' AND oid = result_types[1]"
        ).fetchone()
        self.cursor.execute("DEALLOCATE asked")
        name: str = found[0]
        return name


@pytest.fixture(scope="module")
def server(databases: Databases) -> Iterator[Server]:
    import sqlalchemy

    engine = sqlalchemy.create_engine(databases("postgresql").create(), isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield Server(connection.connection.driver_connection)
    engine.dispose()


def test_operators_have_the_servers_types(server: Server) -> None:
    rng = random.Random(0)
    sql = {"compare": "=", "like": "LIKE"}
    stricter = taken = 0
    for name in operators.LEVELS:
        if name not in SYSTEM.operators or name == "at":
            continue
        pairs = [(left, right) for left in TYPES for right in TYPES]
        for left, right in rng.sample(pairs, some(len(pairs), 24)):
            mine = operators.result(SYSTEM, name, left, right)
            real = server.type_of(f"{spelled(left)} {sql.get(name, name)} {spelled(right)}")
            taken += mine is not None
            if mine is None and (is_literal(left) or is_literal(right)):
                stricter += real is not None
            else:
                # ILIKE and SIMILAR TO, which are followed as LIKE, take no bytes.
                assert mine == real or (name == "like" and left == right == "bytea"), (name, left, right)
    assert stricter < taken


def test_casts_and_common_types_are_the_servers(server: Server) -> None:
    rng = random.Random(0)
    pairs = [(left, right) for left in TYPES for right in TYPES]
    newer = {"bytea", "_bytea"}
    texts = {"text", "varchar", "bpchar", "_text", "_varchar", "_bpchar"}
    for left, right in rng.sample(pairs, some(len(pairs), 4)):
        if not is_literal(right) and not newer & {left, right}:
            real = server.type_of(f"{spelled(left)}::{written(right)}")
            assert turns_into(SYSTEM, left, right) == (real is not None) or (is_literal(left) and real), (left, right)
        mine, real = common(SYSTEM, left, right), server.type_of(f"COALESCE({spelled(left)}, {spelled(right)})")
        if mine is not None or not (is_literal(left) or is_literal(right)):
            assert (mine and settled(SYSTEM, mine)) == real or (mine in texts and real in texts), (left, right)


@pytest.mark.parametrize("group", ["scalars", "aggregates", "windows", "row_sets"])
def test_functions_have_the_servers_types(group: str, server: Server) -> None:
    rng = random.Random(0)
    over = " OVER ()" if group == "windows" else ""
    for name in getattr(SYSTEM, group):
        if len(SYSTEM.row_columns.get(name, ())) > 1:
            # A row, whose columns `test_rows_of_several_columns` compares.
            continue
        low, high = functions.arity(SYSTEM, name)
        for count in range(low, min(high, 4) + 1):
            near = [
                tuple(rng.choice(TYPES) if rng.random() < 0.4 else functions._concrete(wanted) for wanted in parameters)
                for parameters, _ in functions._of(SYSTEM, name, count)
                for _ in range(some(40, 8))
            ]
            far = [tuple(rng.choice(TYPES) for _ in range(count)) for _ in range(some(100, 20))]
            for types in (*near, *far):
                if any(one not in BIT for one in types):
                    continue
                mine = functions.call_of(SYSTEM, name, types)
                if mine is not None or not any(map(is_literal, types)):
                    arguments = ", ".join(map(spelled, types)) or ("*" if name == "count" else "")
                    real = server.type_of(f'"{name}"({arguments}){over}')
                    # What is held to a spelling might be any text; numbers are names of configurations, too.
                    held = any({"'config", "'bounds", "'code"} & {*one.parameters} for one in SYSTEM.functions[name])
                    stricter = "bytea" in types or held or (real is not None and real[1:] in RANGES)
                    assert mine == real or (mine is None and stricter), (name, types)


def test_rows_of_several_columns(server: Server) -> None:
    several = {name: columns for name, columns in SYSTEM.row_columns.items() if len(columns) > 1}
    assert several
    for name, columns in several.items():
        given = name.partition("_")[0]
        for column, kind in columns:
            assert server.type_of(f"(SELECT {column} FROM {name}('{{}}'::{given}) LIMIT 1)") == kind, (name, column)
