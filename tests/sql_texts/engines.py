"""A database of a dialect, and what its engine says of a text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum

from guided.errors import GuidedError
from guided.grammar.sql import DatabaseSchema, reflect
from guided.grammar.sql.connection import open_session
from tests.databases import Source

__all__ = ["Verdict", "opened"]


class Verdict(Enum):
    """What the engine does with a text."""

    PREPARED = "prepared"
    CONSTANT = "a constant cannot be computed"
    REFUSED = "refused"


_CONSTANTS = {
    "mariadb": ("out of range",),
    "duckdb": (
        "Conversion Error",
        "Out of Range Error",
        "Division by zero",
        "value is out of range",
        "Unknown TimeZone",
        "Could not parse string",
    ),
}
"""What the engines say of constants, which these two compute while they prepare: of a number that is too large, of a
text that is no number or no date, of a zone that they do not know."""


@contextmanager
def opened(
    source: Source, statements: Sequence[str]
) -> Iterator[tuple[DatabaseSchema, Callable[[str], tuple[Verdict, str]]]]:
    """The schema of a new database, and a function that says what its engine does with a text, and why."""
    url = source.create(*statements)
    with open_session(url) as session:
        constants = _CONSTANTS.get(session.dialect, ())

        def verdict(text: str) -> tuple[Verdict, str]:
            try:
                session.prepare(text)
            except GuidedError as error:
                said = str(error)
                return (Verdict.CONSTANT if any(each in said for each in constants) else Verdict.REFUSED), said
            return Verdict.PREPARED, ""

        yield reflect(url), verdict
