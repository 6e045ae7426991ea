"""Types of labels that a PostgreSQL database defines (CREATE TYPE ... AS ENUM), by the columns that have them.

Followed are those of most columns, as many as `guided.grammar.sql.query.typed.types.ENUMS`, whose names and labels are
written as they are.  Columns of others can be selected, counted and cast.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from guided.grammar.sql.query.typed.dialect import TypedDialect
from guided.grammar.sql.query.typed.system import functions_of
from guided.grammar.sql.query.typed.types import ENUMS
from guided.grammar.sql.schema import DatabaseSchema

__all__ = ["with_enums"]

_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_MOST_LABEL = 40
_FUNCTIONS = functions_of("""
enum_first enum_last: anyenum>anyenum
enum_range: anyenum>anyarray; anyenum anyenum>anyarray
""")


def with_enums(dialect: TypedDialect, schema: DatabaseSchema) -> TypedDialect:
    """The dialect with the types of a database, itself where that has none."""
    count: Counter[str] = Counter()
    labels: dict[str, tuple[str, ...]] = {}
    for table in schema.tables:
        for column in table.columns:
            if _may_be_followed(column.type, column.labels, dialect):
                count[column.type] += 1
                labels[column.type] = column.labels
    places = {word: name for (word, _), name in zip(count.most_common(len(ENUMS)), ENUMS, strict=False)}
    if not places:
        return dialect
    system, declared = dialect.system, dialect.declared
    return replace(
        dialect,
        system=replace(
            system,
            types=system.types.union(places.values(), ("_" + name for name in places.values())),
            scalars={**system.scalars, **_FUNCTIONS},
        ),
        declared=lambda text: _declared(text, places) or declared(text),
        type_words={**dialect.type_words, **places},
        enums=tuple(labels[word] for word in places),
    )


def _declared(text: str, places: dict[str, str]) -> str:
    """The type of a column, empty where it is none of these."""
    name = places.get(text.removesuffix("[]"), "")
    return "_" + name if name and text.endswith("[]") else name


def _may_be_followed(word: str, labels: tuple[str, ...], dialect: TypedDialect) -> bool:
    is_name = _PLAIN.fullmatch(word) is not None and word not in dialect.lexis.reserved
    plain = all(0 < len(label.encode()) <= _MOST_LABEL and not {"'", "\\"} & {*label} for label in labels)
    return bool(labels) and is_name and word not in dialect.type_words and plain
