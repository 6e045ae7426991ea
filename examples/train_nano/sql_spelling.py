"""How SQLite and PostgreSQL write what they write differently: names, truth values, parts of dates, rounding."""

# ruff: noqa: SIM905  (the words are read as text)
from __future__ import annotations

import re
from enum import Enum

__all__ = ["Spelling"]

_FOLDED = re.compile(r"[a-z_][a-z0-9_]*")
_RESERVED = frozenset(
    "analyse analyze array both cast collate column do false fetch grant initially lateral leading only placing "
    "returning some symmetric trailing true user variadic window".split()
)
"""Words that PostgreSQL wants quoted and SQLite does not, of those that may be drawn as names."""


class Spelling(Enum):
    """A dialect that the model is taught; the value is the name that `guided.nano.sql_prompt` takes."""

    SQLITE = "sqlite"
    POSTGRESQL = "postgresql"

    def name_of(self, identifier: str) -> str:
        """The identifier as a statement writes it: PostgreSQL folds what is not quoted to small letters."""
        if self is Spelling.SQLITE or (_FOLDED.fullmatch(identifier) and identifier not in _RESERVED):
            return identifier
        return f'"{identifier}"'

    def truth(self, column: str, value: bool) -> str:
        """The condition that a column of truth values is so."""
        if self is Spelling.SQLITE:
            return f"{column} = {int(value)}"
        return column if value else f"NOT {column}"

    def year(self, column: str) -> str:
        """The year of a date: text in SQLite, a number in PostgreSQL."""
        return f"strftime('%Y', {column})" if self is Spelling.SQLITE else f"EXTRACT(YEAR FROM {column})"

    def month(self, column: str) -> str:
        """Year and month of a date as ``2024-03``."""
        return f"strftime('%Y-%m', {column})" if self is Spelling.SQLITE else f"TO_CHAR({column}, 'YYYY-MM')"

    def in_year(self, column: str, year: str) -> str:
        """The condition that a date is in a year, as the plain questions have it."""
        return f"{column} LIKE '{year}%'" if self is Spelling.SQLITE else f"{self.year(column)} = {year}"

    def since_year(self, column: str, year: str) -> str:
        """The condition that a date is in a year or later."""
        return f"{self.year(column)} >= " + (f"'{year}'" if self is Spelling.SQLITE else year)

    def rounded(self, number: str, digits: int, whole: bool) -> str:
        """A number with so many decimals; PostgreSQL rounds its double precision numbers as ``numeric`` only."""
        if self is Spelling.POSTGRESQL and not whole:
            number = f"CAST({number} AS numeric)"
        return f"ROUND({number}, {digits})"
