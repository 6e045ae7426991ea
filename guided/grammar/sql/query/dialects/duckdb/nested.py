"""Structs and maps of a DuckDB database: those of its columns, each a type of its own.

Followed are as many as `guided.grammar.sql.query.typed.types.NESTED`.  Columns of others can be selected, counted and
cast.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from guided.grammar.sql.query.typed.dialect import Nested, TypedDialect
from guided.grammar.sql.query.typed.system import Signature
from guided.grammar.sql.query.typed.types import NESTED, OTHER
from guided.grammar.sql.schema import DatabaseSchema

__all__ = ["with_nested"]

_MOST_BYTES = 200
"""Of a type's words: no end of a text should be far, and each that NULL must be cast to is written out."""
_FIELD = re.compile(r'\s*(?:"((?:[^"]|"")*)"|(\w+))\s+(.*)', re.DOTALL)


def with_nested(dialect: TypedDialect, schema: DatabaseSchema) -> TypedDialect:
    """The dialect with the types of a database, itself where that has none."""
    reader = _Reader(dialect.declared)
    for table in schema.tables:
        for column in table.columns:
            reader.read(column.type)
    found = tuple(reader.found.values())
    if not found:
        return dialect
    system, names = dialect.system, [one.name for one in found]
    among = tuple(Signature((name, "_" + name), "bool") for name in names)
    pairs = tuple(Signature((name, name), "bool") for name in names)
    operators = {
        **system.operators,
        "among": (*system.operators["among"], *among),
        **{name: (*system.operators[name], *pairs) for name in ("compare", "equal")},
    }
    maps = {name: tuple(rows) for name, rows in _functions(found).items()}
    types = system.types.union(names, ("_" + name for name in names))
    return replace(
        dialect,
        system=replace(system, types=types, operators=operators, scalars={**system.scalars, **maps}),
        declared=reader.read,
        nested=found,
    )


def _functions(found: tuple[Nested, ...]) -> dict[str, list[Signature]]:
    """The functions of maps."""
    rows: dict[str, list[Signature]] = {}
    for one in found:
        if one.fields:
            continue
        name, key, value = one.name, one.key, one.value
        rows.setdefault("cardinality", []).append(Signature((name,), "int16"))
        rows.setdefault("map_contains", []).append(Signature((name, key), "bool"))
        rows.setdefault("map_keys", []).append(Signature((name,), "_" + key))
        rows.setdefault("map_concat", []).append(Signature((name, name), name))
        rows.setdefault("map_extract_value", []).append(Signature((name, key), value))
        if not value.startswith("_"):
            rows.setdefault("map_values", []).append(Signature((name,), "_" + value))
            rows.setdefault("element_at", []).append(Signature((name, key), "_" + value))
            rows.setdefault("map_extract", []).append(Signature((name, key), "_" + value))
    # NULL is of no type there: it must fit two.
    return {name: [*some, Signature(("never",) * len(some[0].parameters), "never")] for name, some in rows.items()}


class _Reader:
    """Reads the words in which the engine tells types, and gives each struct and map a place."""

    def __init__(self, declared: Callable[[str], str]) -> None:
        self._declared = declared
        self.found: dict[tuple[object, ...], Nested] = {}

    def read(self, text: str) -> str:
        """The type, also of a list."""
        text = text.strip()
        if text.endswith("[]"):
            inner = self.read(text[:-2])
            return "_" + inner if inner in NESTED else self._declared(text)
        kind, _, inside = text.partition("(")
        if kind.upper() not in ("STRUCT", "MAP") or not inside.endswith(")") or "'" in text:
            return self._declared(text)
        parts = _split(inside[:-1])
        if kind.upper() == "MAP":
            key, value = map(self.read, parts) if len(parts) == 2 else (OTHER, OTHER)
            known = key not in (OTHER, *NESTED) and key[0] != "_" and "_" + key in _LISTED and value != OTHER
            return self._place(text, (), key, value) if known else OTHER
        fields = []
        for part in parts:
            match = _FIELD.fullmatch(part)
            if match is None:
                return OTHER
            name = match[2] or match[1].replace('""', '"')
            fields.append((name.lower(), self.read(match[3])))
        if any(kind == OTHER for _, kind in fields):
            return OTHER
        return self._place(text, tuple(fields), "", "")

    def _place(self, text: str, fields: tuple[tuple[str, str], ...], key: str, value: str) -> str:
        known = self.found.get((fields, key, value))
        if known is not None:
            return known.name
        if len(self.found) >= len(NESTED) or len(text) > _MOST_BYTES:
            return OTHER
        one = Nested(NESTED[len(self.found)], fields, key, value)
        self.found[fields, key, value] = one
        return one.name


_LISTED = ("_text", "_int2", "_int4", "_int8", "_int16", "_float8", "_date", "_timestamp", "_uuid", "_bool")
"""Lists of what maps have as keys."""


def _split(text: str) -> list[str]:
    """Parts between commas that stand in no bracket and no quotes."""
    parts, depth, quoted = [""], 0, False
    for letter in text:
        quoted ^= letter == '"'
        depth += 0 if quoted else (letter == "(") - (letter == ")")
        if letter == "," and not depth and not quoted:
            parts.append("")
        else:
            parts[-1] += letter
    return parts
