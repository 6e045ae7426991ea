"""What a grammar of SQL needs to know of a database: tables, columns, keys and a few values, as plain data.

`guided.grammar.sql.reflect` reads these from a live database; a test or a user may just as well write them down.
Nothing here opens a database.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["Column", "ColumnKind", "DatabaseSchema", "ForeignKey", "Table"]


class ColumnKind(Enum):
    """What a column may be compared with: numbers, strings (dates are strings in SQLite), or either."""

    NUMBER = "number"
    TEXT = "text"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, its type in the database's own words (empty: untyped), and values sampled from it.

    When ``values`` is not empty, the grammar lets the column equal these strings only; patterns and order comparisons
    stay free.
    """

    name: str
    type: str = ""
    values: tuple[str, ...] = ()

    @property
    def kind(self) -> ColumnKind:
        """SQLite's affinity rules, but a date is text, and a boolean or an unknown type is anything.

        >>> [Column("x", t).kind.value for t in ("VARCHAR(30)", "bigint", "DATETIME", "MY TYPE", "")]
        ['text', 'number', 'text', 'any', 'any']
        """
        declared = self.type.upper()
        for kind, marks in _KINDS:
            if any(mark in declared for mark in marks):
                return kind
        return ColumnKind.ANY


_KINDS: tuple[tuple[ColumnKind, tuple[str, ...]], ...] = (
    (ColumnKind.ANY, ("INTERVAL", "POINT")),
    (ColumnKind.TEXT, ("DATE", "TIME")),
    (ColumnKind.NUMBER, ("INT", "SERIAL")),
    (ColumnKind.TEXT, ("CHAR", "CLOB", "TEXT", "STRING", "UUID")),
    (ColumnKind.NUMBER, ("REAL", "FLOA", "DOUB", "NUMERIC", "NUMBER", "DECIMAL", "MONEY")),
)
"""The first row with a mark in the declared type decides; ``INTERVAL`` and ``POINT`` merely look like ``INT``."""


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """``columns`` of the table that holds this key refer to ``referred`` of ``table``, one by one."""

    columns: tuple[str, ...]
    table: str
    referred: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table or view; ``schema`` is the attached database it lives in, None for the main one."""

    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    schema: str | None = None


@dataclass(frozen=True, slots=True)
class DatabaseSchema:
    """All tables that queries may name; ``notes`` says what reflection had to leave out, and why."""

    tables: tuple[Table, ...]
    dialect: str = "sqlite"
    notes: tuple[str, ...] = ()
