"""What a query returned.  How it is written down: `guided.grammar.sql.result_files`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from guided.html import card, table

__all__ = ["QueryResult"]

_SHOWN = 50
"""Rows that a notebook shows."""


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The columns and rows of one query."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    """Values as the driver gives them: int, float, str, bytes, None, Decimal, dates, lists."""
    truncated: bool
    """Whether there are more rows."""
    seconds: float
    """From sending the query to its last row."""

    def _repr_html_(self) -> str:
        more = len(self.rows) - _SHOWN
        rows = f"{len(self.rows):,}{' and more' if self.truncated else ''} rows in {self.seconds:.3f} s"
        return card(rows, table(self.columns, self.rows[:_SHOWN], more))
