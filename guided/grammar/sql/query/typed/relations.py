"""What can be queried: relations with the types of their columns, and sources, which are relations in FROM."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

from guided.grammar.sql.query.typed.types import BIT, SORTABLE

__all__ = ["Bare", "Relation", "Source", "bare_columns", "have_column", "is_named", "starred", "unnamed"]

_UNNAMED = "\0"


@dataclass(frozen=True)
class Relation:
    """A table, view, sub-query or common table expression."""

    columns: tuple[tuple[str | None, str], ...]
    """Names and types in their order; None for a column that cannot be named."""
    key: frozenset[str] = frozenset()
    """The primary key, on which all columns depend."""
    is_stored: bool = False
    """Is it a table of the database, and no view?"""
    is_value: bool = False
    """Is a row its one column, so that the name of the source is a value?"""
    sizes: tuple[tuple[str, str], ...] = ()
    """Columns of a stored table whose types say a size, with the words for these: varchar(40)."""

    @cached_property
    def types(self) -> dict[str, str]:
        """The columns that can be named, with their types."""
        return {name: kind for name, kind in self.columns if name is not None and name not in self.ambiguous}

    @cached_property
    def ambiguous(self) -> frozenset[str]:
        """The names that several columns have."""
        count = Counter(name for name, _ in self.columns if name is not None)
        return frozenset(name for name, times in count.items() if times > 1)

    @cached_property
    def is_sortable(self) -> bool:
        """Have all columns an order?"""
        return all(SORTABLE & BIT[kind] for _, kind in self.columns)

    @cached_property
    def unsorted(self) -> frozenset[str]:
        """The names of columns that have none."""
        return frozenset(name for name, kind in self.types.items() if not SORTABLE & BIT[kind])

    @cached_property
    def _hash(self) -> int:
        return hash((self.columns, self.key))

    def __hash__(self) -> int:
        return self._hash


class Source(NamedTuple):
    """A relation in FROM by the name it goes by there; columns in ``merged`` are those of a source before it."""

    name: str
    relation: Relation
    merged: tuple[str, ...] = ()
    """In the order in which USING has them."""
    is_lateral: bool = False
    """May it use the sources before it?"""


def unnamed(place: int) -> str:
    """What a source without a name goes by, which no text can say."""
    return f"{_UNNAMED}{place}"


def is_named(name: str) -> bool:
    """Can a text say the name of a source?"""
    return name[:1] not in ("", _UNNAMED)


class Bare(NamedTuple):
    """Columns that need no qualifier, with source (empty: USING made it of two) and type; those that would need one."""

    unique: dict[str, tuple[str, str]]
    ambiguous: frozenset[str]


@lru_cache(maxsize=8192)
def bare_columns(sources: tuple[Source, ...]) -> Bare:
    """What the columns of some sources are without a qualifier."""
    count: Counter[str] = Counter()
    found: dict[str, tuple[str, str]] = {}
    for source in sources:
        for name, kind in source.relation.types.items():
            if name not in source.merged:
                count[name] += 1
                found[name] = source.name, kind
        for name in source.relation.ambiguous:
            count[name] += 2
    for source in sources:
        # A column by that name would come first.
        if source.relation.is_value and source.name not in count:
            count[source.name] = 1
            found[source.name] = source.name, source.relation.columns[0][1]
    merged = frozenset(name for source in sources for name in source.merged)
    ambiguous = frozenset(name for name, times in count.items() if times > 1)
    found.update((name, ("", found[name][1])) for name in merged if name in found)
    return Bare({name: where for name, where in found.items() if name not in ambiguous}, ambiguous)


def have_column(sources: tuple[Source, ...], name: str | None) -> bool:
    """Has a source a column of a name?  DuckDB takes it for what stands before a point, if no source is called so."""
    bare = bare_columns(sources)
    return name in bare.unique or name in bare.ambiguous


def starred(sources: tuple[Source, ...], qualifier: str, *, shared_first: bool) -> list[tuple[str, str | None, str]]:
    """The columns that ``*`` stands for behind a qualifier or none (empty), in their order: source, name and type.

    The source is empty where USING made a column of two.  ``shared_first``: a join gives those columns first, in the
    order of USING, then the others of its left and its right side.
    """
    if qualifier:
        named = (source for source in sources if source.name == qualifier)
        return [(qualifier, name, kind) for source in named for name, kind in source.relation.columns]
    found: list[tuple[str, str | None, str]] = []
    for source in sources:
        places = {name: place for place, (_, name, _) in enumerate(found) if name in source.merged}
        for place in places.values():
            found[place] = ("", *found[place][1:])
        if shared_first and places:
            shared = [found[places[name]] for name in source.merged]
            found = shared + [one for place, one in enumerate(found) if place not in places.values()]
        own = source.relation.columns
        found += [(source.name, name, kind) for name, kind in own if name not in source.merged]
    return found
