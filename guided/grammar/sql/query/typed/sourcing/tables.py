"""The names of relations in FROM, and of columns that USING makes one."""

from __future__ import annotations

from collections.abc import Iterable

from guided.grammar.attributed.nodes import Names
from guided.grammar.attributed.words import words_of
from guided.grammar.sql.query.relations import EVERY, LETTERS
from guided.grammar.sql.query.typed import changes as do
from guided.grammar.sql.query.typed import clauses
from guided.grammar.sql.query.typed.columns.catalog import Catalog
from guided.grammar.sql.query.typed.relations import Relation, Source, bare_columns
from guided.grammar.sql.query.typed.scope import Query, suits, wanting
from guided.grammar.sql.query.typed.sourcing.full_joins import joins

__all__ = [
    "AliasOfSource", "MergedColumn", "SchemaName", "TableName", "goes_by", "halved", "lateral", "may_be_nullable",
    "may_merge", "may_merge_any", "mergeable", "taken_names", "unjoined", "wants_alias", "with_source",
    "without_alias",
]  # fmt: skip


class TableName:
    """A relation in FROM.

    ``joined`` says that USING may follow, ``merged`` that it is a FULL JOIN, ``nullable`` that rows may lack it.
    """

    label = "a table"

    def __init__(self, catalog: Catalog, *, joined: bool, merged: bool = False, nullable: bool = False) -> None:
        self.catalog = catalog
        self.joined = joined
        self.merged = merged
        self.nullable = nullable or merged
        self.price = catalog.longest

    def allowed(self, query: Query) -> Names:
        """All of which some FROM can be made."""
        named = self._named(query)
        if (
            not query.named_tables
            and not query.schema
            and not self.merged
            and not any(pending.qualifier is None for pending in query.pending)
            and not query.distinct
            and not query.is_starred
            and not query.barred
        ):
            return Names(self.catalog.tables)
        return Names(words_of(name for name, relation in named.items() if self._fits(query, relation)))

    def _named(self, query: Query) -> dict[str, Relation]:
        if query.schema:
            return self.catalog.schemas[query.schema]
        tables = query.tables if self.nullable else query.named_tables
        return {**self.catalog.relations, **dict(reversed(tables))}

    def _fits(self, query: Query, relation: Relation) -> bool:
        """Agree its columns with what waits for them?"""
        if query.distinct and not relation.is_sortable and any(output.star is not None for output in query.outputs):
            return False
        if not clauses.has_demanded(query, relation) or not query.barred.isdisjoint(relation.types):
            return False
        waiting = {pending.column for pending in query.pending if pending.qualifier is None}
        if waiting & relation.ambiguous:
            return False
        if self.merged and not joins(query, Source("", relation)):
            return False
        types = relation.types
        if query.is_starred and query.awaiting is not None:
            return all(clauses.admits(query, name, kind, joined=self.joined) for name, kind in types.items())
        return all(clauses.admits(query, name, types[name], joined=self.joined) for name in waiting if name in types)

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the relation noted."""
        relation, own = self._named(query)[name], query.recursion
        if own is not None and own.relation is not None and own.name == name and not query.schema:
            query = query._replace(recursion=own._replace(read=True))
        return query._replace(name=name, relation=relation, schema="")

    def suggested(self, query: Query) -> Iterable[str]:
        """Relations that bind pending names; where none can, none (a sub-query will), and where none waits any."""
        missing = wanting(query)
        names = self.allowed(query).words.members
        named = self._named(query)
        found = []
        if not missing:
            # USING would have to name all that is shared: a sub-query is shorter.
            taken = taken_names(query)
            apart = (name for name in names if taken.isdisjoint(named[name].types))
            found = sorted(apart, key=lambda name: (len(name), name))[:4]
        for qualifier in sorted({pending.qualifier for pending in missing if pending.qualifier is not None}):
            if qualifier in names and _has(named[qualifier], query, qualifier):
                found.append(qualifier)
            else:
                fitting = [name for name in names if _has(named[name], query, qualifier)]
                found += sorted(fitting, key=lambda name: (len(name), name))[:1]
        bare = {pending.column for pending in missing if pending.qualifier is None}
        if bare:
            covering = {name: len(bare & named[name].types.keys()) for name in names}
            best = sorted(
                (name for name in covering if covering[name]), key=lambda name: (-covering[name], len(name), name)
            )
            found += best[:2]
        if not found and (query.schema or self.merged):
            # No sub-query may stand here, so a table must.
            return sorted(names, key=lambda name: (len(name), name))[:1]
        return found


class SchemaName:
    """A schema before the name of one of its tables."""

    label = "a schema"
    price = 1

    def __init__(self, table: TableName) -> None:
        self.table = table

    def allowed(self, query: Query) -> Names:
        """Those that have a table which may stand here."""
        known = self.table.catalog.schemas
        return Names(words_of(name for name in known if len(self.table.allowed(query._replace(schema=name)).words)))

    def after(self, query: Query, name: str) -> Query:
        """The query with the schema noted."""
        return query._replace(schema=name)

    def suggested(self, query: Query) -> Iterable[str]:
        """None: tables of the default schema need none, and a sub-query can have all columns; but where none can."""
        return self.allowed(query).words.members if clauses.wants_table(query) else ()


def taken_names(query: Query) -> frozenset[str]:
    """Names that wait without a qualifier, and that a source has; USING makes one of each and of another source's."""
    bare = bare_columns(query.sources)
    waiting = (pending.column for pending in query.pending if pending.qualifier is None)
    return frozenset(name for name in waiting if name in bare.unique or name in bare.ambiguous)


def _has(relation: Relation, query: Query, qualifier: str) -> bool:
    """Has a relation the columns that wait with a qualifier, of their types?"""
    if clauses.is_emptied(query, qualifier, (column for column, _ in relation.columns)):
        return False
    types = relation.types
    return all(
        pending.column == EVERY or (pending.column in types and suits(query, pending, types[pending.column]))
        for pending in query.pending
        if pending.qualifier == qualifier
    )


def without_alias(query: Query) -> Query | None:
    """A relation that goes by its own name."""
    return with_source(query, query.name) if query.name and goes_by(query, query.name) else None


def goes_by(query: Query, name: str) -> bool:
    """Can the relation that was read go by a name?"""
    assert query.relation is not None
    return name not in query.own_names and _has(query.relation, query, name)


def with_source(query: Query, name: str) -> Query | None:
    """The query with the relation that was read as a source."""
    assert query.relation is not None
    if any(path == name and field in query.relation.types for path, field in query.paths):
        return None
    return query._replace(sources=(*query.sources, Source(name, query.relation)), name="", relation=None, crossed=False)


def lateral(query: Query) -> Query:
    """The last source may use those before it."""
    *before, last = query.sources
    return query._replace(sources=(*before, last._replace(is_lateral=True)))


def halved(query: Query) -> Query:
    """Behind SEMI and ANTI."""
    return query._replace(half=len(query.sources))


def unjoined(query: Query) -> Query:
    """Behind SEMI JOIN and ANTI JOIN: their right side gives no columns."""
    return query._replace(sources=query.sources[:-1], half=None)


class AliasOfSource:
    """The name that a relation goes by in FROM."""

    label = "an alias"
    price = 1

    def __init__(self, excluded: frozenset[str] = frozenset()) -> None:
        self.excluded = excluded

    def allowed(self, query: Query) -> Names:
        """Names in use before FROM that fit, and any other."""
        awaited = words_of(name for name in self._awaited(query) if name not in self.excluded)
        return Names(awaited, True, self.excluded)

    def _awaited(self, query: Query) -> list[str]:
        waiting = sorted({pending.qualifier for pending in wanting(query) if pending.qualifier is not None})
        return [name for name in waiting if goes_by(query, name)]

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the source."""
        return None if name in self.excluded or not goes_by(query, name) else with_source(query, name)

    def suggested(self, query: Query) -> Iterable[str]:
        """What is awaited, else a letter."""
        return self._awaited(query)[:1] or [letter for letter in LETTERS if goes_by(query, letter)][:1]


def wants_alias(query: Query) -> bool:
    """Is a name awaited that the relation which was read can go by, and that is not its own?"""
    waiting = {pending.qualifier for pending in wanting(query) if pending.qualifier is not None}
    if query.relation is None:
        return False
    if not goes_by(query, query.name):
        return True
    if query.name in waiting:
        return False
    if any(goes_by(query, name) for name in waiting):
        return True
    bare = {pending.column for pending in wanting(query) if pending.qualifier is None}
    return bool(waiting) and not bare & query.relation.types.keys()


class MergedColumn:
    """A column of USING: one that both sides have, of one type, and the left side once."""

    label = "a column of both tables"

    def __init__(self, catalog: Catalog, *, names: int = 1) -> None:
        """``names`` are those of the shortest condition where there is no such column."""
        self.price = names * catalog.longest

    def allowed(self, query: Query) -> Names:
        """Those that are not merged yet."""
        return Names(words_of(mergeable(query)))

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the column merged."""
        right = query.sources[-1]
        merged = right._replace(merged=(*right.merged, name))
        return query._replace(sources=(*query.sources[:-1], merged))

    def suggested(self, query: Query) -> Iterable[str]:
        """Those that would be ambiguous, then others."""
        waiting = {pending.column for pending in query.pending if pending.qualifier is None}
        return sorted(mergeable(query), key=lambda name: (name not in waiting, len(name), name))


def mergeable(query: Query) -> frozenset[str]:
    """The columns by which the last source can be joined with USING."""
    *left, right = query.sources
    bare = bare_columns(tuple(left)).unique
    return frozenset(
        name
        for name, kind in right.relation.types.items()
        if name in bare
        and bare[name][1] == kind
        and clauses.is_sortable(kind)
        and name not in right.merged
        and not any(one.name == name and one.relation.is_value for one in left)
    )


def may_merge_any(catalog: Catalog) -> do.Change:
    """Is there a table for a FULL JOIN?"""
    name = TableName(catalog, joined=True, merged=True)

    def change(query: Query) -> Query | None:
        return query if len(name.allowed(query).words) else None

    return change


def may_be_nullable(query: Query) -> Query | None:
    """A join behind which rows may lack the sources so far; the engine does not have a query so read itself."""
    return None if query.recursion is not None and query.recursion.read else query


def may_merge(query: Query) -> Query | None:
    """USING, where both sides have a column of one name."""
    return query if mergeable(query) else None
