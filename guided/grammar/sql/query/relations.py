"""What can be queried: relations with their columns, and sources, which are relations in a FROM clause.  All folded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from guided.grammar.attributed.words import Words

__all__ = [
    "EVERY", "LETTERS", "NOTHING", "ROW_NAMES", "Bare", "Holders", "Relation", "Source", "bare_columns",
    "mergeable_names", "starred",
]  # fmt: skip

EVERY = ""
"""The name under which all columns of a source are awaited, as ``t.*`` has it; no column is called so."""
LETTERS = tuple("abcdefghijklmnopqrstuvwxyz")
"""The shortest names, for what a text that ends soon has to name."""


@dataclass(frozen=True)
class Relation:
    """A table, view, sub-query or common table expression; columns in their order, None for one without a name."""

    columns: tuple[str | None, ...]
    values: tuple[tuple[str, Words], ...] = ()
    """The columns whose values are known, with these."""
    hidden: frozenset[str] = frozenset()
    """Columns that can be named, but are not among those of ``*``."""
    row_names: frozenset[str] = frozenset()
    """Names of the number of a row; without a qualifier only where there is one source."""

    @cached_property
    def visible(self) -> frozenset[str]:
        """The columns of ``*`` that can be named."""
        return frozenset(column for column in self.columns if column is not None)

    @cached_property
    def names(self) -> frozenset[str]:
        """The columns that can be named."""
        return self.visible | self.hidden

    @cached_property
    def named(self) -> frozenset[str]:
        """What can stand behind a qualifier."""
        return self.names | self.row_names

    @cached_property
    def values_of(self) -> dict[str, Words]:
        """The values, by column."""
        return dict(self.values)

    @cached_property
    def _hash(self) -> int:
        return hash(self.columns)

    def __hash__(self) -> int:
        return self._hash


NOTHING = Relation(())
"""What a name stands for that must not be used, as that of a common table expression within itself."""


ROW_NAMES = frozenset(["rowid", "oid", "_rowid_"])
"""SQLite's names of the number of a row."""


class Source(NamedTuple):
    """A relation in FROM by the name it goes by there; columns in ``merged`` are those of a source before it."""

    name: str
    relation: Relation
    merged: frozenset[str] = frozenset()


class Bare(NamedTuple):
    """Columns that need no qualifier, and those that would need one."""

    unique: frozenset[str]
    ambiguous: frozenset[str]


@lru_cache(maxsize=8192)
def bare_columns(sources: tuple[Source, ...]) -> Bare:
    """What the columns of some sources are without a qualifier."""
    count = Counter(name for source in sources for name in source.relation.names - source.merged)
    unique = frozenset(name for name, times in count.items() if times == 1)
    ambiguous = frozenset(count) - unique
    return Bare(unique | sources[0].relation.row_names if len(sources) == 1 else unique, ambiguous)


def mergeable_names(left: tuple[Source, ...], right: Source) -> frozenset[str]:
    """The columns by which sources can be joined with another: hidden ones are not among them."""
    hidden = frozenset[str]().union(*(source.relation.hidden | source.relation.row_names for source in left))
    return (bare_columns(left).unique - hidden) & right.relation.visible


class Holders:
    """The relations that have a column, of some relations."""

    def __init__(self, columns: Iterable[Iterable[str]]) -> None:
        """``columns`` are those of each relation."""
        self._by_column: dict[str, int] = {}
        place = 0
        for place, names in enumerate(columns, 1):
            for name in names:
                self._by_column[name] = self._by_column.get(name, 0) | 1 << place
        self._every = (2 << place) - 2

    def is_in_each(self, names: Iterable[str]) -> bool:
        """Has each relation one of some names?

        >>> Holders([("a", "b"), ("b", "c")]).is_in_each(("a", "c"))
        True
        """
        found = 0
        for name in names:
            found |= self._by_column.get(name, 0)
        return found == self._every


def starred(sources: tuple[Source, ...]) -> tuple[str | None, ...]:
    """The columns of ``*``."""
    return tuple(
        column
        for source in sources
        for column in source.relation.columns
        if column is None or column not in source.merged
    )
