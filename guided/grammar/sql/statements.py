"""`sql`: the SELECT statements over one database, as a grammar.

What a statement may be is in `guided.grammar.sql.query`.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from guided.grammar.ir import Grammar
from guided.grammar.sql.linking import MOST_TABLES, linked
from guided.grammar.sql.reflect import reflect
from guided.grammar.sql.schema import DatabaseSchema, Table

if TYPE_CHECKING:
    from guided.grammar.attributed.language import AttributedLanguage

__all__ = ["sql"]


def sql(
    schema_or_url: DatabaseSchema | str | Any,
    *,
    sample_values: int = 0,
    forward: bool = True,
    question: str | None = None,
    most_tables: int = MOST_TABLES,
) -> Grammar:
    """The language of SELECT statements over a database's own tables and columns, as people write them.

    ``schema_or_url``: a `DatabaseSchema`, or a database URL, file or SQLAlchemy engine to reflect it from; then
    ``sample_values`` is how many values a text column may have for its comparisons to be held to them (0: any string).
    ``forward`` says whether SELECT may use names that only a sub-query in FROM will define; without it all names but
    aliases exist, which helps a weak model.  With a ``question`` only the ``most_tables`` that fit it best may be named
    (`guided.grammar.sql.linking`), which `Grammar.notes` say.

    The engine prepares every statement without an error, and every name is in scope.  Keywords and names may be in any
    letter case, with any white space.  The grammar is no part of other grammars: it has no rules.

    Raises `UnsupportedError` for a dialect that is not there, `UnsatisfiableError` for a database without tables.

    >>> import guided
    >>> from guided.grammar.sql import Column, DatabaseSchema, Table
    >>> grammar = sql(DatabaseSchema((Table("singer", (Column("name"), Column("age"))),)))
    >>> vocabulary = guided.Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), None], eos_ids=[256])
    >>> constraint = guided.compile(grammar, vocabulary)
    >>> constraint.advance_bytes(constraint.start, b"SELECT s.nmae FROM singer s WHERE") == 0
    True
    """
    schema = schema_or_url
    if not isinstance(schema, DatabaseSchema):
        schema = reflect(schema_or_url, sample_values=sample_values)
    if question is not None:
        schema = linked(schema, question, most_tables=most_tables)
    options = {"forward": forward}
    tables, notes = _writable(schema)
    if schema.dialect not in _HOLDING and any(column.values for table in tables for column in table.columns):
        notes = (*notes, f"strings are not held to values of columns in queries of the dialect {schema.dialect!r}")
    language = partial(_language, replace(schema, tables=tables), forward)
    # Raises now what could not be compiled later.
    language()
    source = repr((replace(schema, notes=()), options))
    return Grammar(
        rules=(),
        start=0,
        language=language,
        rebuild=(sql, (schema,), options),
        key="sql:" + hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest(),
        notes=(*schema.notes, *notes),
    )


_HOLDING = frozenset(["sqlite", "mysql", "mariadb"])
"""Dialects whose strings are held to the values of columns."""


def _language(schema: DatabaseSchema, forward: bool) -> AttributedLanguage:
    # It needs numpy, which no command loads for its help.
    from guided.grammar.sql.query.language import query_language

    return query_language(schema, forward=forward)


def _writable(schema: DatabaseSchema) -> tuple[tuple[Table, ...], tuple[str, ...]]:
    """The tables of which every name can be written, and what is said of others: ``*`` stands for all columns."""
    tables: list[Table] = []
    notes: list[str] = []
    for table in schema.tables:
        names = (table.name, *(column.name for column in table.columns))
        odd = next(
            (
                name
                for name in names
                if len(name.encode("utf-8", "surrogatepass")) > MOST_BYTES or _UNWRITABLE.search(name)
            ),
            None,
        )
        if odd is None:
            tables.append(table)
        else:
            notes.append(
                f"the table {table.name[:40]!r} is left out: the name {odd[:40]!r} is empty, has more than {MOST_BYTES}"
                " bytes or holds control characters"
            )
    return tuple(tables), tuple(notes)


MOST_BYTES = 250
"""Of a name; a sub-query may have to define it again, and names of the writer's own choice have up to 255."""
_UNWRITABLE = re.compile(r"^\Z|[\x00-\x1f\x7f\ud800-\udfff]")
