"""The kinds of names in a query: which may stand at a place, what they change, and which end a text soon."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from guided.grammar.attributed.nodes import Names
from guided.grammar.attributed.watched import asked, gathered, grown, later
from guided.grammar.attributed.words import Words, union, words_of
from guided.grammar.sql.query import limits
from guided.grammar.sql.query.catalog import Catalog
from guided.grammar.sql.query.outer_joins import starred_names
from guided.grammar.sql.query.relations import (
    EVERY,
    LETTERS,
    NOTHING,
    ROW_NAMES,
    Relation,
    Source,
    bare_columns,
    mergeable_names,
)
from guided.grammar.sql.query.scope import (
    Clause,
    Item,
    Output,
    Pending,
    Query,
    Taint,
    aliases,
    bare_names,
    barred_below,
    barred_by_star,
    clashing,
    has_output_of_all,
    has_star,
    is_full,
    is_local,
    knows,
    must_be_whole,
    refer,
    unbound,
    used_of,
    waiting_among,
    waiting_names,
)
from guided.grammar.sql.query.values import read_column

__all__ = [
    "AliasOfColumn", "AliasOfSource", "BareColumn", "Joining", "MergedColumn", "QualifiedColumn",
    "Qualifier", "TableName", "can_derive", "has_taint", "may_be_named", "mergeable", "own_source",
    "read_atom", "waits_for_alias", "wanted_names", "wants_alias", "with_source",
]  # fmt: skip

_PAIRS = tuple(first + second for first in LETTERS for second in "_qxz")


def written_bytes(names: Words) -> int:
    """The most bytes that one of some names has, in quotes."""
    return 2 + max((len(name) + name.count(b'"') for name in names.sorted), default=0)


@asked("item")
def _is_fresh(query: Query) -> bool:
    """Was nothing of the column read?"""
    return query.item is Item.FRESH


def read_atom(query: Query, name: str | None = None, taint: Taint = Taint.NONE, qualifier: str = "") -> Query:
    """The query behind an operand; ``name`` is the column's when it is one, with its ``qualifier``."""
    item: str | Item
    if query.clause is Clause.SELECT or (query.clause is Clause.GROUP and query.laws.selected_first):
        is_fresh = _is_fresh(query)
        if query.laws.selected_first and is_fresh:
            query = query._replace(item_of=qualifier)
        # The number of a row has the name of the primary key, where that is the same.
        is_named = name is not None and name not in ROW_NAMES
        item = name if is_named and name is not None and is_fresh else Item.COMPLEX
        taint = max(query.taint, taint, key=lambda one: one.value)
        query = query._replace(item=item, taint=taint)
    return query._replace(alone=False, name="", is_mixed=False, values=None, held=None)


@gathered("outputs", False)
def has_taint(output: Output, taints: tuple[Taint, ...]) -> bool:
    """Holds a column of the result any of these?"""
    return output.taint in taints


def recursive(query: Query) -> dict[str, Relation]:
    """The common table expression that is being defined, where it may be used: once, in no aggregate query."""
    found = query.recursion
    if found is None or found.relation is None or found.is_used or query.parent is None:
        return {}
    if has_taint(query, (Taint.AGGREGATE, Taint.WINDOW)):
        return {}
    return {found.name: found.relation}


def relation_of(query: Query, catalog: Catalog, name: str) -> Relation | None:
    """The relation of a name: a common table expression's, or the database's."""
    within = recursive(query).get(name)
    if within is not None:
        return within
    for known, relation in query.tables:
        if known == name:
            return relation
    return catalog.relations.get(name)


def _is_bound(query: Query, name: str) -> bool:
    """Has a source that is there a column which needs no qualifier?"""
    at: Query | None = query
    while at is not None and (at.bound or at.clause is not Clause.SELECT):
        bare = bare_names(at, at is not query)
        if name in bare.unique or name in bare.ambiguous:
            return True
        at = None if is_local(at) else at.outside
    return False


class BareColumn:
    """A column without a qualifier, or an alias where the clause knows these."""

    label = "a column"
    price = 1

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self._apart = ROW_NAMES | catalog.lost_names

    def allowed(self, query: Query) -> Names:
        """Those that are in scope; before FROM all that a FROM can bind."""
        if query.clause is Clause.COMPOUND_ORDER:
            if not query.laws.selected_first:
                return Names(words_of(query.terms))
            result = query.result or ()
            return Names(words_of(name for name in result if name is not None and result.count(name) == 1))
        found: set[str] = set()
        hidden: set[str] = set()
        every: Words | None = None
        at: Query | None = query
        free = False
        while at is not None:
            if limits.is_leaf(at) and not at.bound and at.clause is Clause.SELECT:
                pass
            elif not at.bound and at.clause is Clause.SELECT and is_full(at, None):
                found |= {name for name in waiting_names(at) if name != EVERY} - hidden
            elif not at.bound and at.clause is Clause.SELECT:
                known = {name for _, relation in at.tables for name in relation.names}
                known |= self.catalog.row_names if at is query else frozenset()
                known.update(name for relation in recursive(at).values() for name in relation.names)
                barred = barred_by_star(at)
                if hidden or barred:
                    found |= (known | self.catalog.awaited.members) - hidden - barred
                else:
                    # Thousands of names, which are not copied for each place.
                    found |= known
                    every = self.catalog.awaited
                free = self.catalog.forward
            else:
                bare = bare_names(at, at is not query)
                found |= bare.unique - hidden
                hidden |= bare.unique | bare.ambiguous
                if at is query and not at.laws.selected_first:
                    found |= self._aliases(at) - bare.ambiguous
            at = None if is_local(at) else at.outside
        listed = words_of(found)
        if every is None:
            return Names(listed, free, self._apart)
        return Names(union(frozenset((listed, every))) if found - every.members else every, free, self._apart)

    def _aliases(self, query: Query) -> frozenset[str]:
        """Names of the result that may be used; what holds an aggregate only where aggregates may be."""
        if query.clause in (Clause.ON, Clause.FROM, Clause.WINDOW):
            return frozenset()
        late = query.clause in (Clause.HAVING, Clause.ORDER) and not is_local(query)
        limit = Taint.WINDOW if query.clause is Clause.ORDER and late else Taint.AGGREGATE if late else Taint.NONE
        return aliases(query, limit)

    def after(self, query: Query, name: str) -> Query | None:
        """The query in which it was used."""
        if query.clause is Clause.COMPOUND_ORDER:
            return read_atom(query)
        bare = bare_names(query)
        if query.bound and name not in bare.unique and not query.laws.selected_first and name in self._aliases(query):
            return None if name in bare.ambiguous else read_atom(query)
        if name in self.catalog.lost_names and not _is_bound(query, name):
            return None
        changed = refer(query, Pending(None, name, is_local(query)))
        if changed is None:
            return None
        after = read_atom(changed, name)._replace(is_whole=must_be_whole(query, name))
        return read_column(query, after, "", name)

    def suggested(self, query: Query) -> Iterable[str]:
        """None: a number is shorter."""
        return ()


class Qualifier:
    """The name of a source before a dot, and before a ``column`` of it if there must be one."""

    label = "a table or alias"
    price = 1

    def __init__(self, catalog: Catalog, column: QualifiedColumn | None = None) -> None:
        self.catalog = catalog
        self.column = column

    def allowed(self, query: Query) -> Names:
        """The sources in scope; before FROM tables and names that FROM can introduce."""
        found: set[str] = set()
        sure: Words | None = None
        at: Query | None = query
        free = False
        while at is not None:
            if limits.is_leaf(at) and not at.bound and at.clause is Clause.SELECT:
                pass
            elif not at.bound and at.clause is Clause.SELECT and is_full(at, ""):
                found.update(pending.qualifier for pending in at.pending if pending.qualifier is not None)
            elif not at.bound and at.clause is Clause.SELECT:
                if at is query and not at.tables and not barred_by_star(at):
                    # Each stands for itself, so it need not be tried whether it has a column.
                    sure = self.catalog.tables if self.column is None else self.catalog.with_columns
                else:
                    found |= self.catalog.tables.members
                found.update(name for name, _ in at.tables)
                free = True
            else:
                found.update(at.own_names - {""})
            at = None if is_local(at) else at.outside
        listed = words_of(name for name in found if self.after(query, name) is not None)
        return Names(listed if sure is None else union(frozenset((listed, sure))) if len(listed) else sure, free)

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the qualifier noted; None where it has no column that can be named."""
        noted = query._replace(name=name)
        if self.column is None:
            return noted
        return noted if self.column.is_any(query, name) else None

    def suggested(self, query: Query) -> Iterable[str]:
        """None: a number is shorter."""
        return ()


_OF_COLUMN = (
    "sources", "bound", "clause", "pending", "parent", "sees_parent", "laws", "chain", "plain", "outputs",
    "tables", "recursion", "barred", "is_distinct", "nesting", "calls",
)  # fmt: skip
"""Fields that tell which columns a qualifier has."""


class QualifiedColumn:
    """A column behind a qualifier and a dot."""

    label = "a column of that table"

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.price = written_bytes(catalog.columns)
        self.named = asked(*_OF_COLUMN)(self._named)
        self.is_any = asked(*_OF_COLUMN)(self._is_any)

    def _is_any(self, query: Query, name: str) -> bool:
        """Has a qualifier a column?"""
        columns = self._named(query, name)
        return columns.free or bool(len(columns.words))

    def allowed(self, query: Query) -> Names:
        """The columns of the source; of one that FROM is to introduce those of relations that have all used so far."""
        return self.named(query, query.name)

    def _named(self, query: Query, name: str) -> Names:
        """The columns of a qualifier."""
        at: Query | None = query
        while at is not None:
            source = at.source(name)
            if source is not None:
                return Names(words_of(column for column in source.relation.named if knows(at, name, column)))
            if not at.bound and at.clause is Clause.SELECT and is_full(at, name):
                there = {pending.column for pending in at.pending if pending.qualifier == name}
                return Names(words_of(there - {EVERY}))
            if not at.bound and at.clause is Clause.SELECT:
                later, barred = self._later(at, name), barred_by_star(at)
                if barred:
                    return Names(words_of(later.words.members - barred), later.free, later.apart)
                return later
            at = at.outside
        return Names(words_of(()))

    def _later(self, query: Query, name: str) -> Names:
        relation = relation_of(query, self.catalog, name)
        if relation is not None:
            return Names(words_of(relation.named))
        outside = query.outside
        while outside is not None:
            source = outside.source(name)
            if source is not None:
                return Names(words_of(source.relation.named))
            outside = outside.outside
        used = used_of(query, name) - {EVERY}
        relations = [*recursive(query).values(), *(relation for _, relation in query.tables)]
        fitting = words_of(column for one in relations if used <= one.names for column in one.names)
        fitting = union(frozenset((fitting, self.catalog.columns_beside(used))))
        return Names(fitting, self.catalog.forward, self.catalog.lost_names)

    def after(self, query: Query, name: str) -> Query | None:
        """The query in which it was used."""
        if name in self.catalog.lost_names and name not in self.named(query, query.name).words:
            return None
        changed = refer(query, Pending(query.name, name, is_local(query)))
        if changed is None:
            return None
        return read_column(query, read_atom(changed, name, qualifier=query.name), query.name, name)

    def suggested(self, query: Query) -> Iterable[str]:
        """The shortest columns."""
        names = self.allowed(query)
        short = sorted(names.words.members, key=lambda name: (len(name), name))[:4]
        return short or (LETTERS[:1] if names.free else ())


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
        self.price = written_bytes(catalog.tables)

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
            if self.joining is Joining.USING and query.is_distinct and has_output_of_all(query):
                # USING would have to name all that is shared: a sub-query is shorter.
                columns = bare_columns(query.sources)
                shared = columns.unique | columns.ambiguous
                names = frozenset(name for name in names if not self._relation(query, name).names & shared)
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


def may_be_named(query: Query, name: str) -> bool:
    """May the next column of the result have a name?"""
    if query.barred and name in query.barred:
        return False
    if not query.is_distinct:
        return True
    # A column that goes by its text, which has a bracket, is not told from one with the same name in quotes.
    others = [output.name for output in query.outputs if output.star is None]
    return not (name in others or ("(" in name and None in others))


class AliasOfColumn:
    """The name of a column of the result."""

    label = "a name for the column"
    price = 1

    def __init__(self, catalog: Catalog, excluded: frozenset[str] = frozenset()) -> None:
        self.catalog = catalog
        self.excluded = excluded

    def allowed(self, query: Query) -> Names:
        """Any but keywords, which are named."""
        return Names(words_of(()), True, self.excluded)

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the name noted."""
        if name in self.excluded or not name or not may_be_named(query, name):
            return None
        if query.is_distinct and has_star(query):
            # It must not be a column of any source that is still to come.
            known = self.catalog.columns.members.union(*(relation.names for _, relation in query.tables))
            if name in known or any(name == pending.column for pending in query.pending):
                return None
        return query._replace(item=name, named=True)

    def suggested(self, query: Query) -> Iterable[str]:
        """What the query around waits for, else a letter."""
        wanted = sorted(wanted_names(query))[:1]
        return wanted or ((*LETTERS, *_PAIRS) if query.is_distinct or query.barred else ("a",))


def wanted_names(query: Query) -> frozenset[str]:
    """Names that the query around waits for, which a sub-query in its FROM should define: all of one source."""
    around = query.parent
    if around is None or around.bound or around.clause is not Clause.FROM or query.sees_parent:
        return frozenset()
    missing = unbound(around)
    if not missing:
        return frozenset()
    # Those with a qualifier first: what is defined for the others would be in the way of its source.
    qualifier = min((pending.qualifier for pending in missing), key=lambda name: (name is None, name or ""))
    names = {pending.column for pending in missing if pending.qualifier == qualifier} - {EVERY}
    if query.is_distinct and any(output.star is not None for output in query.outputs):
        # Its other columns must have names that nothing else has.
        return frozenset()
    return frozenset(names - {output.name for output in query.outputs})


class MergedColumn:
    """A column of USING: one that both sides have, and the left side once."""

    label = "a column of both tables"

    def __init__(self, catalog: Catalog) -> None:
        self.price = written_bytes(catalog.columns)

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
