"""SQL as a potential: texts that one database would run weigh 1, all others nothing or little.  Nothing is executed."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from guided.infer.potentials.text_potentials import TextPotential
from guided.vocab.vocabulary import Vocabulary

__all__ = ["SqlDryRun"]

_READING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE})


class SqlDryRun(TextPotential):
    """Weight 1 for one statement that reads and that the database can prepare, ``exp(failing)`` for all other texts.

    Preparing finds what a grammar cannot know: columns of the wrong table, names in no scope, wrong numbers of
    arguments.  ``database`` is a URL, path or engine as `guided.sql` takes them.  It is opened read-only once and kept
    open; close it with `close`, or use the potential in a ``with`` statement.
    """

    def __init__(self, vocabulary: Vocabulary, database: str | Any, *, failing: float = -math.inf) -> None:
        from guided.grammar.sql.connection import connect_read_only

        super().__init__(vocabulary)
        if not failing <= 0:
            raise ValueError(f"failing is a log weight of at most 0, not {failing}")
        self.failing = failing
        self._open = ExitStack()
        connection = self._open.enter_context(connect_read_only(database))
        self._driver: sqlite3.Connection = connection.connection.driver_connection  # type: ignore[assignment]

    @property
    def boolean(self) -> bool:
        """True where failing texts are forbidden."""
        return self.failing == -math.inf

    def weights_of_prefixes(self, texts: Sequence[str]) -> list[float]:
        """0: only whole statements can be prepared."""
        return [0.0] * len(texts)

    def weights_of_texts(self, texts: Sequence[str]) -> list[float]:
        """0 or ``failing``."""
        return [0.0 if self._prepares(text) else self.failing for text in texts]

    def _prepares(self, text: str) -> bool:
        from guided.grammar.sql.connection import allow_everything

        def authorise(action: int, _: str | None, name: str | None, *__: str | None) -> int:
            reads = action in _READING and not (action == sqlite3.SQLITE_FUNCTION and name == "load_extension")
            return sqlite3.SQLITE_OK if reads else sqlite3.SQLITE_DENY

        self._driver.set_authorizer(authorise)
        try:
            # Behind these words comes exactly a statement; behind EXPLAIN alone, "QUERY PLAN SELECT 1" would be one.
            self._driver.execute(f"EXPLAIN QUERY PLAN {text}")
            return True
        except (sqlite3.Error, sqlite3.Warning, ValueError, OverflowError):
            return False
        finally:
            allow_everything(self._driver)

    def close(self) -> None:
        """Close the database; nothing can be asked any more."""
        self._open.close()

    def __enter__(self) -> SqlDryRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return "<SqlDryRun>"
