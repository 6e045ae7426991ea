"""The prompt formats that guided-nano is trained on, as pure string functions.

Training (``examples/train_nano``) and inference call the same two functions, so a prompt at run time is of the very
form the model has seen.  Nothing here loads a model or looks at a database: tables arrive as plain dataclasses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["Column", "ForeignKey", "Table", "extraction_prompt", "sql_prompt"]

MAX_REFERENCE_DEPTH = 4
"""Nested objects and references are spelled out this deep; a schema below that is named by its kind alone."""


@dataclass(frozen=True)
class Column:
    """A column as the model sees it: its name and the type in the database's own words (``VARCHAR(30)``)."""

    name: str
    type: str = ""


@dataclass(frozen=True)
class ForeignKey:
    """``column`` of the table that holds this key refers to ``table.referred``.

    >>> from guided.nano import Column, ForeignKey, Table, sql_prompt
    >>> users = Table("users", (Column("id", "INTEGER"),))
    >>> orders = Table("orders", (Column("user", "INTEGER"),), (ForeignKey("user", "users", "id"),))
    >>> print(sql_prompt([users, orders], "Who ordered?"))
    SQL
    users(id int)
    orders(user int -> users.id)
    Who ordered?
    <BLANKLINE>
    """

    column: str
    table: str
    referred: str


@dataclass(frozen=True)
class Table:
    """A table or view with its columns in order and its foreign keys."""

    name: str
    columns: tuple[Column, ...]
    foreign_keys: tuple[ForeignKey, ...] = ()


HEADS = {"postgresql": "PostgreSQL", "duckdb": "PostgreSQL"}
"""The first line of a question's prompt, by dialect: ``SQL`` stands for SQLite and for what the model has not learned.
DuckDB reads PostgreSQL's spelling of all that it has."""


def sql_prompt(tables: Iterable[Table], question: str, dialect: str = "sqlite") -> str:
    """The prompt after which guided-nano writes one SELECT statement, without a closing semicolon.

    ``dialect`` is that of `guided.grammar.sql.DatabaseSchema`: the model knows SQLite's spelling and PostgreSQL's.

    Examples:
        >>> print(sql_prompt([Table("users", (Column("id", "INTEGER"), Column("name", "TEXT")))], "How many users?"))
        SQL
        users(id int, name text)
        How many users?
        <BLANKLINE>
    """
    lines = [_table_line(table) for table in tables]
    return HEADS.get(dialect, "SQL") + "\n" + "".join(line + "\n" for line in lines) + _one_line(question) + "\n"


def extraction_prompt(schema: Any, text: str) -> str:
    """The prompt after which guided-nano writes one JSON value of ``schema`` (a JSON Schema: dict or bool).

    Any schema renders: what has no short form (conditionals, negation, patterns) is left to the constraint.

    Examples:
        >>> schema = {"properties": {"age": {"type": "integer"}, "kind": {"enum": ["a", "b"]}}, "required": ["age"]}
        >>> print(extraction_prompt(schema, "He is 34."))
        JSON
        (age int, kind a|b?)
        He is 34.
        <BLANKLINE>
    """
    return f"JSON\n{_kind(schema, schema, 0)}\n{_one_line(text)}\n"


def _one_line(text: str) -> str:
    """The text with every run of white space made one space: newlines separate the parts of a prompt."""
    return " ".join(text.split())


def _table_line(table: Table) -> str:
    references = {key.column: f" -> {key.table}.{key.referred}" for key in table.foreign_keys}
    columns = (f"{c.name} {_column_kind(c.type)}{references.get(c.name, '')}" for c in table.columns)
    return f"{table.name}({', '.join(columns)})"


_COLUMN_KINDS = (
    ("bool", ("BOOL",)),
    ("date", ("DATE", "TIME")),
    ("int", ("INT", "SERIAL")),
    ("real", ("REAL", "FLOA", "DOUB", "NUMERIC", "DECIMAL", "MONEY", "NUMBER")),
)


def _column_kind(declared: str) -> str:
    """One of int, real, date, bool, text: SQLite's affinity rules, plus the names other databases use."""
    upper = declared.upper()
    if "INTERVAL" in upper or "POINT" in upper:
        return "text"
    for kind, marks in _COLUMN_KINDS:
        if any(mark in upper for mark in marks):
            return kind
    return "text"


_JSON_KINDS = {"string": "text", "integer": "int", "number": "real", "boolean": "bool", "null": "null"}


def _kind(schema: Any, root: Any, depth: int) -> str:
    """A schema in a few words: ``int``, ``a|b``, ``text[]``, ``(x int, y int)``, with ``?`` where null is allowed."""
    schema = _resolve(schema, root)
    if not isinstance(schema, Mapping):
        return "any"
    if "const" in schema:
        return _plain(schema["const"])
    enum = schema.get("enum")
    if isinstance(enum, list) and enum:
        return "|".join(_plain(value) for value in enum)
    for keyword in ("anyOf", "oneOf"):
        branches = schema.get(keyword)
        if isinstance(branches, list) and branches:
            return _union([_kind(branch, root, depth + 1) for branch in branches] if depth < 8 else ["any"])
    parts = schema.get("allOf")
    if isinstance(parts, list) and parts and "properties" not in schema:
        return _kind(_merged(parts, root), root, depth + 1) if depth < 8 else "any"
    declared = schema.get("type")
    if isinstance(declared, list):
        return _union([_kind({**schema, "type": name}, root, depth) for name in declared])
    if declared == "object" or (declared is None and "properties" in schema):
        return _object(schema, root, depth)
    if declared == "array" or (declared is None and "items" in schema):
        return _kind(schema.get("items", True), root, depth + 1) + "[]" if depth < MAX_REFERENCE_DEPTH else "any[]"
    if declared == "string" and str(schema.get("format", "")).startswith("date"):
        return "date"
    return _JSON_KINDS.get(declared, "any") if isinstance(declared, str) else "any"


def _object(schema: Mapping[str, Any], root: Any, depth: int) -> str:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping) or depth >= MAX_REFERENCE_DEPTH:
        return "object"
    required = schema.get("required")
    required = required if isinstance(required, list) else []
    fields = []
    for name, child in properties.items():
        kind = _kind(child, root, depth + 1)
        fields.append(f"{name} {kind}{'' if name in required or kind.endswith('?') else '?'}")
    return f"({', '.join(fields)})"


def _union(kinds: list[str]) -> str:
    """``a|b``, duplicates dropped; null becomes a trailing question mark."""
    named = list(dict.fromkeys(kind.rstrip("?") for kind in kinds if kind != "null"))
    nullable = len(named) < len(set(kinds)) or any(kind.endswith("?") for kind in kinds)
    return "|".join(named or ["null"]) + ("?" if nullable and named else "")


def _merged(parts: list[Any], root: Any) -> dict[str, Any]:
    """The keywords of all parts of an allOf in one schema; for display, so the last one wins."""
    merged: dict[str, Any] = {}
    for part in parts:
        part = _resolve(part, root)
        if isinstance(part, Mapping):
            for keyword, value in part.items():
                old = merged.get(keyword)
                if isinstance(old, dict) and isinstance(value, Mapping):
                    merged[keyword] = {**old, **value}
                elif isinstance(old, list) and isinstance(value, list):
                    merged[keyword] = old + value
                else:
                    merged[keyword] = dict(value) if isinstance(value, Mapping) else value
    return merged


def _resolve(schema: Any, root: Any) -> Any:
    """The schema that local ``$ref``s lead to; True (anything) where one leads nowhere, in a circle or elsewhere."""
    for _ in range(MAX_REFERENCE_DEPTH):
        if not (isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str)):
            return schema
        pointer = schema["$ref"]
        if not pointer.startswith("#"):
            return True
        schema = root
        for step in pointer[1:].split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(schema, Mapping) or step not in schema:
                return True
            schema = schema[step]
    return True


def _plain(value: Any) -> str:
    """A JSON value without quotes around a string: the model adds those."""
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return repr(value)
    return "object" if isinstance(value, Mapping) else "list"
