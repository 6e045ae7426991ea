"""Casts, operators and functions against DuckDB itself: it must take what is taken, and give the same type."""

from __future__ import annotations

import random
from collections.abc import Iterator

import duckdb
import pytest

from guided.grammar.sql.query.dialects.duckdb.types import SYSTEM, declared
from guided.grammar.sql.query.typed import functions, operators
from guided.grammar.sql.query.typed.types import ANY_NULL, BIT, HELD, common, is_literal, settled, turns_into
from tests.amounts import some

WRITTEN = {
    "int2": "SMALLINT", "int4": "INTEGER", "int8": "BIGINT", "int16": "HUGEINT", "numeric": "DECIMAL(18,9)",
    "numeric2": "DECIMAL(30,18)", "numeric3": "DECIMAL(38,27)", "numeric4": "DECIMAL(38,36)", "float4": "FLOAT",
    "float8": "DOUBLE", "bool": "BOOLEAN", "text": "VARCHAR", "date": "DATE", "time": "TIME", "timetz": "TIMETZ",
    "timestamp": "TIMESTAMP", "timestamptz": "TIMESTAMPTZ", "interval": "INTERVAL", "bytea": "BLOB", "uuid": "UUID",
    "jsonb": "JSON",
}  # fmt: skip
LITERALS = {
    ANY_NULL: "NULL", "'text": "'some text'", "'whole": "'12'", "'integer": "'123456'", "'decimal": "'2.5'",
    "'date": "'2020-01-01'", "'timestamp": "'2020-01-01 10:00'", "'time": "'10:00'", "'interval": "'3 days'",
    "'bool": "'yes'", "'json": "'{}'", "'field": "'month'", "'part": "'dow'", "'uuid": "'00000000-0000-0000-0000-000000000000'", "'format": "'%Y'", "'regex": "'a'", "'flags": "'i'",
    "'path": "'$.a'", "'share": "0.5", "'digits": "2",
}  # fmt: skip
TYPES = [*(name for name in BIT if name in SYSTEM.types), *LITERALS]
LARGE = frozenset(["numeric2", "numeric3", "numeric4"])
"""Decimals that fit no common one: the engine loses digits of theirs."""
PLAIN = [name for name in TYPES if name not in HELD]


def written(name: str) -> str:
    return WRITTEN[name[1:]] + "[]" if name[0] == "_" else WRITTEN[name]


def spelled(name: str) -> str:
    return LITERALS.get(name) or f'"{name}"'


class Engine:
    """Asks for the type of an expression, None where it is refused."""

    def __init__(self) -> None:
        self.connection = duckdb.connect()
        columns = ", ".join(f'"{name}" {written(name)}' for name in TYPES if not is_literal(name))
        self.connection.execute(f"CREATE TABLE t ({columns})")

    def type_of(self, expression: str) -> str | None:
        try:
            self.connection.execute(f"EXPLAIN SELECT {expression} FROM t")
        except duckdb.Error:
            return None
        ((_, name, *_),) = self.connection.execute(f"DESCRIBE SELECT {expression} FROM t").fetchall()
        return declared(name)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    found = Engine()
    yield found
    found.connection.close()


def test_operators_have_the_engines_types(engine: Engine) -> None:
    rng = random.Random(0)
    sql = {"compare": "<", "equal": "=", "like": "LIKE", "among": "IN", "at": "AT TIME ZONE"}
    taken = 0
    for name in SYSTEM.operators:
        pairs = [(left, right) for left in TYPES for right in TYPES if operators.result(SYSTEM, name, left, right)]
        assert pairs, name
        for left, right in rng.sample(pairs, some(len(pairs), min(len(pairs), 12))):
            mine = operators.result(SYSTEM, name, left, right)
            assert mine == engine.type_of(f"{spelled(left)} {sql.get(name, name)} {spelled(right)}"), (
                name,
                left,
                right,
            )
            taken += 1
    assert taken > 150


def test_casts_and_common_types_are_the_engines(engine: Engine) -> None:
    rng = random.Random(0)
    pairs = [(left, right) for left in PLAIN for right in PLAIN]
    for left, right in rng.sample(pairs, some(len(pairs), 4)):
        if not is_literal(right) and turns_into(SYSTEM, left, right):
            assert engine.type_of(f"{spelled(left)}::{written(right)}") == right, (left, right)
        mine = common(SYSTEM, left, right)
        if mine is not None:
            real = engine.type_of(f"COALESCE({spelled(left)}, {spelled(right)})")
            both = {left.removeprefix("_"), right.removeprefix("_")}
            assert settled(SYSTEM, mine) == real or both <= LARGE, (left, right)


@pytest.mark.parametrize("group", ["scalars", "aggregates", "windows"])
def test_functions_have_the_engines_types(group: str, engine: Engine) -> None:
    over = " OVER ()" if group == "windows" else ""
    for name in getattr(SYSTEM, group):
        # By the function, so that one more or less leaves the others' draws.
        rng = random.Random(name)
        low, high = functions.arity(SYSTEM, name)
        for count in range(low, min(high, 4) + 1):
            near = [
                tuple(rng.choice(TYPES) if rng.random() < 0.4 else functions._concrete(wanted) for wanted in parameters)
                for parameters, _ in functions._of(SYSTEM, name, count)
                for _ in range(some(40, 8))
            ]
            far = [tuple(rng.choice(TYPES) for _ in range(count)) for _ in range(some(100, 20))]
            for types in {*near, *far}:
                mine = functions.call_of(SYSTEM, name, types) if set(types) <= set(TYPES) else None
                if mine is not None and len(LARGE & {one.removeprefix("_") for one in types}) < 2:
                    arguments = ", ".join(map(spelled, types)) or ("*" if name == "count" else "")
                    assert mine == engine.type_of(f"{name}({arguments}){over}"), (name, types)
