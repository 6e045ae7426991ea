"""Columns of the sources as terms of ORDER BY where DISTINCT says which may come."""

from __future__ import annotations

from collections.abc import Iterable

from guided.grammar.attributed.nodes import Names
from guided.grammar.attributed.words import words_of
from guided.grammar.sql.query.typed.clauses import is_sortable
from guided.grammar.sql.query.typed.relations import bare_columns
from guided.grammar.sql.query.typed.scope import Column, Query, remaining

__all__ = ["TermColumn", "TermQualifier", "nameable"]


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
    return all(where or name in _bare(query) for where, name in remaining(query))


class TermQualifier:
    """The source of such a column."""

    label = "a table or alias"
    price = 1

    def allowed(self, query: Query) -> Names:
        """Those that have one."""
        return Names(words_of(where for where, _ in _columns(query) if where))

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
