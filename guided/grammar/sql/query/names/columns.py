"""Columns: with a qualifier and without, and the names that a query gives to those of its result."""

from __future__ import annotations

from collections.abc import Iterable

from guided.grammar.attributed.nodes import Names
from guided.grammar.attributed.watched import asked
from guided.grammar.attributed.words import Words, union, words_of
from guided.grammar.sql.query import limits
from guided.grammar.sql.query.catalog import Catalog, longest
from guided.grammar.sql.query.names.relations import recursive, relation_of
from guided.grammar.sql.query.operands import read_atom
from guided.grammar.sql.query.relations import EVERY, LETTERS, ROW_NAMES
from guided.grammar.sql.query.scope import (
    Clause,
    Pending,
    Query,
    Taint,
    aliases,
    bare_names,
    barred_by_star,
    has_star,
    is_full,
    is_local,
    knows,
    must_be_whole,
    refer,
    unbound,
    used_of,
    waiting_names,
)
from guided.grammar.sql.query.values import read_column

__all__ = ["AliasOfColumn", "BareColumn", "QualifiedColumn", "Qualifier", "may_be_named", "wanted_names"]

_PAIRS = tuple(first + second for first in LETTERS for second in "_qxz")


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
        self.price = longest(catalog.columns)
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
