"""What a grammar of SQL needs to know of a database: tables, columns, keys and a few values, as plain data.

`guided.grammar.sql.reflect` reads these from a live database; a test or a user may just as well write them down.
Nothing here opens a database.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["Column", "ColumnKind", "DatabaseSchema", "ForeignKey", "NameCase", "Table"]


class NameCase(Enum):
    """What letter case means in names: how an engine compares them, and what becomes of one without quotes."""

    EXACT = "exact"
    """Names are compared as they are written, with or without quotes."""
    LOWERED = "lowered"
    """A name without quotes stands for the one in lower case; a quoted one for itself."""
    IGNORED = "ignored"
    """Names that differ in case only are the same, with or without quotes."""


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
    nullable: bool = True
    generated: bool = False
    """Computed from other columns."""
    hidden: bool = False
    """Not among the columns of ``*``, though its name can be written."""
    labels: tuple[str, ...] = ()
    """Of an enumerated type: all that the column can hold, in the type's order."""

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
    """``columns`` of the table that holds this key refer to ``referred`` of ``table``, one by one.

    ``schema`` is where the other table lives, as in `Table`.
    """

    columns: tuple[str, ...]
    table: str
    referred: tuple[str, ...]
    schema: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """A table or view; ``schema`` is the one it lives in (in SQLite an attached database), None for the default one.

    A table of the default schema may be named without it; `DatabaseSchema.default_schema` is its name.
    """

    name: str
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    schema: str | None = None
    view: bool = False
    has_rowid: bool = False
    """In SQLite: have its rows a number, whose name is ``rowid`` where no column has it?"""


@dataclass(frozen=True, slots=True)
class DatabaseSchema:
    """All tables that queries may name; ``notes`` says what reflection had to leave out, and why.

    ``dialect`` is "sqlite", "postgresql", "mysql", "mariadb" or "duckdb".
    """

    tables: tuple[Table, ...]
    dialect: str = "sqlite"
    notes: tuple[str, ...] = ()
    default_schema: str | None = None
    table_names: NameCase = NameCase.IGNORED
    """Also of schemas and of what a query calls its tables."""
    column_names: NameCase = NameCase.IGNORED
    version: tuple[int, ...] = ()
    """The engine's; empty: not known."""
    modes: tuple[str, ...] = ()
    """MySQL's and MariaDB's ``sql_mode`` in alphabetical order: ANSI_QUOTES, PIPES_AS_CONCAT and so on."""
