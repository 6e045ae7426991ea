"""Names that an engine has few of, such as those of types and collations."""

from __future__ import annotations

from collections.abc import Iterable

from guided.grammar.attributed.nodes import Names
from guided.grammar.attributed.words import words_of
from guided.grammar.sql.query.scope import Query

__all__ = ["FixedName"]


class FixedName:
    """One of a few words that are no keywords, such as types and collations."""

    def __init__(self, label: str, names: Iterable[str]) -> None:
        self.label = label
        self._names = Names(words_of(names))
        self.price = max(map(len, self._names.words.sorted), default=0)

    def allowed(self, query: Query) -> Names:
        """The same everywhere."""
        return self._names

    def after(self, query: Query, name: str) -> Query | None:
        """The query as it was."""
        return query

    def suggested(self, query: Query) -> Iterable[str]:
        """The shortest."""
        return sorted(self._names.words.members, key=lambda name: (len(name), name))[:1]
