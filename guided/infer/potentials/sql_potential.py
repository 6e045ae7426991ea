"""SQL as a potential: texts that one database would run weigh 1, all others nothing or little.  Nothing is executed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from guided.errors import GuidedError
from guided.infer.potentials.text_potentials import TextPotential
from guided.vocab.vocabulary import Vocabulary

__all__ = ["SqlDryRun"]


class SqlDryRun(TextPotential):
    """Weight 1 for one statement that reads and that the database can prepare, ``exp(failing)`` for all other texts.

    Preparing finds what a grammar cannot know: columns of the wrong table, names in no scope, wrong numbers of
    arguments.  ``database`` is a URL, path or engine as `guided.sql` takes them.  It is opened read-only once and kept
    open; close it with `close`, or use the potential in a ``with`` statement.  Raises `ValueError` where ``failing`` is
    above 0.

    >>> import sqlite3, tempfile, os
    >>> import guided
    >>> from guided import infer
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> path = os.path.join(tempfile.mkdtemp(), "shop.db")
    >>> sqlite3.connect(path).execute("CREATE TABLE users (id INTEGER)").connection.close()
    >>> with infer.SqlDryRun(letters, path) as potential:
    ...     print(potential.complete_each([b"SELECT id FROM users", b"SELECT name FROM users"]))
    [0.0, -inf]
    """

    def __init__(self, vocabulary: Vocabulary, database: str | Any, *, failing: float = -math.inf) -> None:
        from guided.grammar.sql.connection import open_session

        super().__init__(vocabulary)
        if not failing <= 0:
            raise ValueError(f"failing is a log weight of at most 0, not {failing}")
        self.failing = failing
        self._open = ExitStack()
        self._session = self._open.enter_context(open_session(database))

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
        try:
            self._session.prepare(text)
        except GuidedError:
            return False
        return True

    def close(self) -> None:
        """Close the database; nothing can be asked any more."""
        self._open.close()

    def __enter__(self) -> SqlDryRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return "<SqlDryRun>"
