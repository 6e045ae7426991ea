"""What a query returned.  How it is written down: `guided.grammar.sql.result_files`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["QueryResult"]


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
