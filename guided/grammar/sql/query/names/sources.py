"""Sources: the relations of FROM, what they go by there, and the columns by which USING joins them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from guided.grammar.attributed.nodes import Names
from guided.grammar.attributed.watched import asked, grown, later
from guided.grammar.attributed.words import words_of
from guided.grammar.sql.query import limits
from guided.grammar.sql.query.barred import barred_below
from guided.grammar.sql.query.catalog import Catalog, longest
from guided.grammar.sql.query.names.relations import recursive, relation_of
from guided.grammar.sql.query.outer_joins import starred_names
from guided.grammar.sql.query.relations import (
    EVERY,
    LETTERS,
    NOTHING,
    Relation,
    Source,
    bare_columns,
    mergeable_names,
)
from guided.grammar.sql.query.scope import (
    Query,
    clashing,
    has_star,
    taken_names,
    unbound,
    used_of,
    waiting_among,
    waiting_names,
)

__all__ = [
    "AliasOfSource", "Joining", "MergedColumn", "TableName", "can_derive", "mergeable", "own_source",
    "waits_for_alias", "wants_alias", "with_source",
]  # fmt: skip


class Joining(Enum):
    """What happens to columns of equal names."""

    PLAIN = "they are two"
    USING = "USING may make them one"
    NATURAL = "they are one"


class TableName:
    """A relation in FROM."""

    label = "a table"

    def __init__(self, catalog: Catalog, joining: Joining) -> None:
        self.catalog = catalog
        self.joining = joining
        self.price = longest(catalog.tables)

    def fits(self, query: Query, relation: Relation) -> bool:
        """Does no name without a qualifier become ambiguous, and are there no more columns than demanded?"""
        missing = query.missing_columns
        if relation is NOTHING or (missing is not None and len(relation.columns) > missing):
            return False
        if query.sources and not limits.fits_columns(query, len(relation.columns)):
            return False
        if relation.names & barred_below(query, merging=self.joining is not Joining.PLAIN):
            return False
        if not query.sources:
            return True
        chain = query.sources[query.chain :]
        if self.joining is Joining.NATURAL:
            return not relation.names & bare_columns(chain).ambiguous
        bare = bare_columns(query.sources)
        twice = relation.names & (bare.unique | bare.ambiguous)
        if self.joining is Joining.USING:
            twice -= mergeable_names(chain, Source("", relation))
        return not clashing(query, twice)

    def allowed(self, query: Query) -> Names:
        """All of which some FROM can be made."""
        free = not query.sources or (self.joining is Joining.USING and self._merges_all(query))
        barred = barred_below(query, merging=True)
        if free and not query.tables and not barred and not has_star(query):
            return Names(self.catalog.tables)
        names = {*self.catalog.relations, *(name for name, _ in query.tables)}
        found = (name for name in names if self.fits(query, self._relation(query, name)))
        return Names(words_of(found))

    def _merges_all(self, query: Query) -> bool:
        """Can USING make one of whatever names two sources have?"""
        return not (query.chain or self.catalog.hides or any(source.relation.hidden for source in query.sources))

    def _relation(self, query: Query, name: str) -> Relation:
        relation = relation_of(query, self.catalog, name)
        assert relation is not None, name
        return relation

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the relation noted."""
        relation = self._relation(query, name)
        recursion = query.recursion
        if recursion is not None and name in recursive(query):
            recursion = recursion._replace(is_used=True)
        return query._replace(name=name, relation=relation, recursion=recursion)

    def suggested(self, query: Query) -> Iterable[str]:
        """Relations that bind pending names; where none can, none (a sub-query will), and where none waits any."""
        missing = unbound(query)
        names = self.allowed(query).words.members
        if query.missing_columns is not None:
            # A sub-query has as many columns as are missing; of tables only one that has them, too.
            names = frozenset(
                name for name in names if len(self._relation(query, name).columns) == query.missing_columns
            )
        if not missing:
            if self.joining is Joining.USING and query.sources:
                # USING would have to name all that is shared: a sub-query is shorter.
                taken = taken_names(query)
                names = frozenset(name for name in names if taken.isdisjoint(self._relation(query, name).names))
            return sorted(names, key=lambda name: (len(name), name))[:4]
        found = []
        for qualifier in sorted({pending.qualifier for pending in missing if pending.qualifier is not None}):
            used = {pending.column for pending in missing if pending.qualifier == qualifier} - {EVERY}
            if qualifier in names and used <= self._relation(query, qualifier).named:
                found.append(qualifier)
            else:
                fitting = [name for name in names if used <= self._relation(query, name).named]
                found += sorted(fitting, key=lambda name: (len(name), name))[:1]
        bare = {pending.column for pending in missing if pending.qualifier is None}
        if bare:
            covering = {name: len(bare & self._relation(query, name).names) for name in names}
            best = sorted(
                (name for name in covering if covering[name]), key=lambda name: (-covering[name], len(name), name)
            )
            found += best[:2]
        if not found and (self.joining is Joining.NATURAL or (self.joining is Joining.PLAIN and not can_derive(query))):
            # No sub-query may stand here, so a table must.
            return sorted(names, key=lambda name: (len(name), name))[:1]
        return found


@asked("sources", "pending")
def can_derive(query: Query) -> bool:
    """May a sub-query that is not joined with USING be a source?  Only while nothing could become ambiguous by it."""
    bare = bare_columns(query.sources)
    return not waiting_among(query, bare.unique | bare.ambiguous)


@asked("pending", "sources", "relation")
def _awaited(query: Query) -> tuple[str, ...]:
    """The names that wait for a source which the relation that was read can be."""
    waiting = sorted({pending.qualifier for pending in unbound(query) if pending.qualifier is not None})
    return tuple(name for name in waiting if _may_go_by(query, name))


@asked("pending", "sources", "relation")
def _may_go_by(query: Query, name: str) -> bool:
    """May it be a source of this name?"""
    assert query.relation is not None
    return used_of(query, name) - {EVERY} <= query.relation.named and name not in query.own_names


class AliasOfSource:
    """The name that a relation goes by in FROM."""

    label = "an alias"
    price = 1

    def __init__(self, catalog: Catalog, excluded: frozenset[str] = frozenset()) -> None:
        self.catalog = catalog
        self.excluded = excluded

    def allowed(self, query: Query) -> Names:
        """Names in use before FROM that fit, and any other."""
        awaited = words_of(name for name in _awaited(query) if name not in self.excluded)
        return Names(awaited, True, self.excluded)

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the source."""
        if name in self.excluded or not _may_go_by(query, name):
            return None
        return with_source(query, name)

    def suggested(self, query: Query) -> Iterable[str]:
        """What is awaited, else a letter."""
        awaited = _awaited(query)[:1]
        return awaited or [letter for letter in LETTERS if _may_go_by(query, letter)][:1]


def wants_alias(query: Query) -> bool:
    """Is a name awaited that the relation which was read can go by, and that is not its own?"""
    return waits_for_alias(query) and all(pending.qualifier != query.name for pending in unbound(query))


def waits_for_alias(query: Query) -> bool:
    """Is a name awaited that the relation which was read can go by?"""
    waiting = {pending.qualifier for pending in unbound(query) if pending.qualifier is not None}
    bare = {pending.column for pending in unbound(query) if pending.qualifier is None}
    return bool(waiting) and query.relation is not None and not bare & query.relation.names


def with_source(query: Query, name: str) -> Query:
    """The query with the relation that was read as a source."""
    return grown(query, "sources", later(query, _RELATION, _source_of, name))._replace(name="", relation=None)


_RELATION = frozenset(("relation",))
_NAMED_RELATION = frozenset(("relation", "name"))


def _source_of(query: Query, name: str) -> Source:
    assert query.relation is not None
    return Source(name, query.relation)


def own_source(query: Query) -> Query:
    """The query with the relation that was read as a source by its own name."""
    return grown(query, "sources", later(query, _NAMED_RELATION, _own_source_of))._replace(name="", relation=None)


def _own_source_of(query: Query) -> Source:
    return _source_of(query, query.name)


class MergedColumn:
    """A column of USING: one that both sides have, and the left side once."""

    label = "a column of both tables"

    def __init__(self, catalog: Catalog) -> None:
        self.price = longest(catalog.columns)

    def allowed(self, query: Query) -> Names:
        """Those that are not merged yet."""
        return Names(words_of(mergeable(query)))

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the column merged."""
        right = query.sources[-1]
        merged = right._replace(merged=right.merged | {name})
        return starred_names(query._replace(sources=(*query.sources[:-1], merged)))

    def suggested(self, query: Query) -> Iterable[str]:
        """Those that would be ambiguous, then others."""
        waiting = waiting_names(query)
        names = mergeable(query)
        return sorted(names, key=lambda name: (name not in waiting, len(name), name))


def mergeable(query: Query) -> frozenset[str]:
    """The columns by which the last source can be joined with USING."""
    *left, right = query.sources[query.chain :]
    return mergeable_names(tuple(left), right) - right.merged
