"""The databases of which texts are drawn: the tests' own, those of Spider and defog, and random ones with odd names."""

from __future__ import annotations

import os
import random
import sqlite3
from contextlib import closing
from functools import lru_cache
from pathlib import Path

from guided.grammar.sql import reflect
from tests.unit.grammar.sql.query import test_mariadb, test_mariadb_gold, test_queries
from tests.unit.grammar.sql.query.typed import test_duckdb, test_postgresql, test_translated_gold

__all__ = ["database"]

_OWN = {
    "sqlite": [each for each in test_queries.DATABASE.split(";") if each.strip()],
    "mariadb": test_mariadb.DATABASE,
    "postgresql": test_postgresql.DATABASE,
    "duckdb": test_duckdb.DATABASE,
}
_TYPES = {
    "sqlite": ("INTEGER", "TEXT", "REAL", "NUMERIC", "BLOB", "VARCHAR(20)", "DATE", "DATETIME", "BOOLEAN", ""),
    "mariadb": (
        "INT", "BIGINT UNSIGNED", "TINYINT(1)", "VARCHAR(30)", "TEXT", "CHAR(3)", "DATE", "DATETIME", "TIMESTAMP NULL",
        "TIME", "YEAR", "DECIMAL(10,2)", "DOUBLE", "FLOAT", "JSON", "ENUM('a','b c','it''s')", "SET('x','y')", "BLOB",
        "BIT(3)",
    ),
    "postgresql": (
        "smallint", "integer", "bigint", "numeric", "numeric(10,2)", "real", "double precision", "text", "varchar(20)",
        "char(3)", "boolean", "date", "time", "timetz", "timestamp", "timestamptz", "interval", "json", "jsonb", "uuid",
        "bytea", "integer[]", "text[]", "date[]", "inet", "point", "money", "int4range", "tsvector", "mood", "oid",
        "xml", "bit(3)", "name", "numeric[]", "jsonb[]", "timestamptz[]", "boolean[]",
    ),
    "duckdb": (
        "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UBIGINT", "FLOAT", "DOUBLE", "DECIMAL(10,2)",
        "DECIMAL(38,20)", "VARCHAR", "BOOLEAN", "DATE", "TIME", "TIMETZ", "TIMESTAMP", "TIMESTAMPTZ", "INTERVAL", "JSON",
        "UUID", "BLOB", "INTEGER[]", "VARCHAR[]", "DATE[]", "STRUCT(a INTEGER, b VARCHAR)", "MAP(VARCHAR, INTEGER)",
        "ENUM('a', 'b c')", "BIT", "INTEGER[3]", "TIMESTAMP_S", "UNION(n INTEGER, s VARCHAR)", "INTEGER[][]",
    ),
}  # fmt: skip
"""Types of columns, also those that the language does not know; on MariaDB no UUID, INET6 and GEOMETRY,
which it does not tell from others."""
_KEYS = {"sqlite": "INTEGER", "mariadb": "INT", "postgresql": "integer", "duckdb": "INTEGER"}
_PLAIN = ("id", "name", "age", "total", "created_at", "a", "b", "x1", "day", "title", "customer_id", "amount", "_n")
_ODD = (
    "Free Meal Count (K-12)", "select", "from", "order", "group", "a.b", 'say "x"', "it's", "a`b", "Größe", "名前", "1st",
    "naïve café", "x" * 61, "Name", "ID", "x; DROP TABLE y --", "a  b", "100%", "why?", "null", "true", "user", "date",
    "timestamp", "count", "sum", "values", "row", "left", "natural", "end", "over", "window", "filter", "lateral", "array",
    "public", "main", "a$b", "key", "type", "interval", "year", "current_date", "case", "rank", "\\", "/* c */", "é",
    "not", "exists", "with", "recursive", "json_each", "generate_series", "rowid", "excluded", "all", "any", "-1", "*",
    "cast", "extract", "if", "exclude", "position", "trim", "grouping", "cube", "mod", "div", "interval '1 day'", ":x",
    "price [USD]", "]",
)  # fmt: skip
_TOO_LONG = {"sqlite": "y" * 130, "mariadb": "y" * 64, "postgresql": "ü" * 31, "duckdb": "y" * 130}


def database(dialect: str, number: int) -> list[str]:
    """The statements that make one of the databases of a dialect; number 0 is the tests' own."""
    files = _files()
    kinds = 3 if files else 2
    if number % kinds == 0:
        return list(_OWN[dialect])
    if number % kinds == 2:
        return _copied(files[number // kinds % len(files)], dialect)
    return _random(dialect, random.Random(f"database/{number}"))


@lru_cache(maxsize=1)
def _files() -> list[Path]:
    folder = Path(os.environ.get("GUIDED_DATA", Path(__file__).parents[3] / "shared" / "data"))
    return sorted(folder.glob("text2sql/*/db/*.sqlite"))


def _copied(file: Path, dialect: str) -> list[str]:
    """The tables of a file of SQLite, in a dialect's types."""
    if dialect != "sqlite":
        schema = reflect(str(file))
        return list((test_mariadb_gold if dialect == "mariadb" else test_translated_gold).tables(schema))
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        asked = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
        return [sql for (sql,) in connection.execute(asked)]


def _random(dialect: str, rng: random.Random) -> list[str]:
    """Up to five tables, which often have the same names of columns, and sometimes a view."""
    found = ["CREATE TYPE mood AS ENUM ('a', 'b c', 'it''s')"] if dialect == "postgresql" else []
    odd = rng.random()
    shared = _names(dialect, rng, 6, odd)
    tables = _names(dialect, rng, rng.randint(1, 5), odd)
    for table in tables:
        columns = _different([*rng.sample(shared, rng.randint(0, 3)), *_names(dialect, rng, rng.randint(1, 8), odd)])
        types = [rng.choice(_TYPES[dialect]) for _ in columns]
        key = ""
        if rng.random() < 0.6:
            types[0] = f"{_KEYS[dialect]} NOT NULL"
            key = f", PRIMARY KEY ({_quoted(dialect, columns[0])})"
        listed = ", ".join(f"{_quoted(dialect, name)} {kind}" for name, kind in zip(columns, types, strict=True))
        found.append(f"CREATE TABLE {_quoted(dialect, table)} ({listed}{key})")
    if rng.random() < 0.3 and "a view" not in tables:
        found.append(f"CREATE VIEW {_quoted(dialect, 'a view')} AS SELECT * FROM {_quoted(dialect, tables[0])}")
    return found


def _names(dialect: str, rng: random.Random, n: int, odd: float) -> list[str]:
    pool = (*_ODD, _TOO_LONG[dialect])
    return _different([rng.choice(pool if rng.random() < odd else _PLAIN) for _ in range(n)])


def _different(names: list[str]) -> list[str]:
    """The names that no engine takes for the same."""
    return list({name.lower(): name for name in names}.values())


def _quoted(dialect: str, name: str) -> str:
    quote = "`" if dialect == "mariadb" else '"'
    return quote + name.replace(quote, quote + quote) + quote
