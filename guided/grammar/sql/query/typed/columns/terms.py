"""Columns as terms where no expression may stand: of ORDER BY behind DISTINCT, DISTINCT ON and GROUPING SETS.

No cast mends a column there that has no order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from guided.grammar.attributed.nodes import Action, Name, NameKind, Names, Node, Sign, choice, seq
from guided.grammar.attributed.words import words_of
from guided.grammar.sql.query.typed.changes import Change
from guided.grammar.sql.query.typed.clauses import is_sortable
from guided.grammar.sql.query.typed.columns.catalog import MOST_VARIANTS, Catalog
from guided.grammar.sql.query.typed.columns.references import (
    BareColumn,
    QualifiedColumn,
    Qualifier,
)
from guided.grammar.sql.query.typed.relations import bare_columns, is_named
from guided.grammar.sql.query.typed.scope import Column, Query, queries_in_scope, remaining

__all__ = ["TermColumn", "TermQualifier", "nameable", "sole_column"]


def _columns(query: Query) -> set[Column]:
    """Those of DISTINCT ON that have not come yet, else the columns of a DISTINCT result."""
    if query.result is not None:
        return set()
    if query.distinct_on:
        return set(remaining(query))
    if not query.distinct:
        return set()
    return {output.column for output in query.outputs if output.column is not None and is_sortable(output.type)}


def _bare(query: Query) -> dict[str, Column]:
    """Those that need no qualifier, and that are no other column of the result by that name."""
    unique = bare_columns(query.sources).unique
    found: dict[str, Column] = {}
    for where, name in _columns(query):
        others = {output.column for output in query.outputs if output.name == name}
        if name in unique and unique[name][0] == where and others <= {(where, name)}:
            found[name] = (where, name)
    return found


def nameable(query: Query) -> bool:
    """Can ORDER BY begin with all columns of DISTINCT ON?"""
    return all((where and is_named(where)) or name in _bare(query) for where, name in remaining(query))


class TermQualifier:
    """The source of such a column, or of another of those that ``columns`` gives."""

    label = "a table or alias"
    price = 64

    def __init__(self, columns: Callable[[Query], Collection[Column]] = _columns) -> None:
        self._columns = columns

    def allowed(self, query: Query) -> Names:
        """Those that have one."""
        return Names(words_of(where for where, _ in self._columns(query) if where and is_named(where)))

    def after(self, query: Query, name: str) -> Query:
        """The query with the qualifier noted."""
        return query._replace(name=name)

    def suggested(self, query: Query) -> Iterable[str]:
        """Any of them."""
        return sorted(self.allowed(query).words.members)


class TermColumn:
    """Such a column, behind its source or by itself."""

    label = "a column of the result"
    price = 64

    def __init__(self, *, qualified: bool) -> None:
        self.qualified = qualified

    def allowed(self, query: Query) -> Names:
        """Those of the source, or that need none."""
        if self.qualified:
            return Names(words_of(name for where, name in _columns(query) if where == query.name))
        return Names(words_of(_bare(query)))

    def after(self, query: Query, name: str) -> Query:
        """The query behind it."""
        column: Column = (query.name, name) if self.qualified else _bare(query)[name]
        return query._replace(name="", ordered=query.ordered | {column})

    def suggested(self, query: Query) -> Iterable[str]:
        """Any of them."""
        return sorted(self.allowed(query).words.members)


def sole_column(catalog: Catalog, begin: Change, end: Change) -> tuple[Node, Change]:
    """A column between what is done before and behind it, and where there is one."""
    variants = range(1, MOST_VARIANTS + 1)
    bare = [_Sole(catalog, BareColumn(catalog, variant), end) for variant in variants]
    behind = [_Sole(catalog, QualifiedColumn(catalog, variant), end) for variant in variants]
    qualifier = _Sole(catalog, Qualifier(catalog, _AnyOf(behind)))

    every = _AnyOf([*bare, qualifier])

    def there_is(query: Query) -> Query | None:
        begun = begin(query)
        return query if begun and not _is_nothing(every.allowed(begun)) else None

    qualified = seq(Name(qualifier), Sign("."), choice(*map(Name, behind)))
    return seq(Action(there_is), Action(begin), choice(*map(Name, bare), qualified), Action(end)), there_is


def _is_nothing(names: Names) -> bool:
    return not names.free and not len(names.words)


class _AnyOf:
    """The first names of several kinds that there are."""

    variant = 1

    def __init__(self, kinds: Sequence[NameKind]) -> None:
        self._kinds = kinds

    def allowed(self, query: Query) -> Names:
        found = (names for kind in self._kinds if not _is_nothing(names := kind.allowed(query)))
        return next(found, Names(words_of(())))


class _Sole:
    """The names of a kind behind which the text may go on."""

    def __init__(self, catalog: Catalog, kind: NameKind, end: Change | None = None) -> None:
        self.label = kind.label
        self.price = catalog.longest
        self._catalog = catalog
        self._kind = kind
        self._end = end

    def allowed(self, query: Query) -> Names:
        """Those that have an order."""
        names = self._kind.allowed(query)
        if self._end is None:
            # Any other source is like one whose name no one writes.
            return replace(names, free=names.free and self.after(query, "?") is not None)
        unsorted = [name for name in _unsorted(self._catalog, query) if name in names.words]
        barred = {name for name in unsorted if self.after(query, name) is None}
        return replace(names, words=words_of(names.words.members - barred)) if barred else names

    def after(self, query: Query, name: str) -> Query | None:
        """The query behind it, where what must follow may."""
        found: Query | None = self._kind.after(query, name)
        return None if found is None or (self._end is not None and self._end(found) is None) else found

    def suggested(self, query: Query) -> Iterable[str]:
        """What the kind suggests, else the shortest."""
        found = [name for name in self._kind.suggested(query) if self.after(query, name) is not None]
        if found:
            return found
        names = self.allowed(query)
        short = sorted(names.words.members, key=lambda name: (len(name), name))[:4]
        return short or ("a" if names.free else ())


def _unsorted(catalog: Catalog, query: Query) -> set[str]:
    """Names of columns that may have no order."""
    found = set(catalog.unsorted)
    for at in queries_in_scope(query):
        for relation in (*(one for _, one in at.named_tables), *(source.relation for source in at.sources)):
            found |= relation.unsorted
    return found
