"""Common table expressions: their names, and those within themselves."""

from __future__ import annotations

from collections.abc import Iterable

from guided.grammar.attributed.lexis import ascii_lower
from guided.grammar.attributed.nodes import Names
from guided.grammar.attributed.words import words_of
from guided.grammar.sql.query import limits
from guided.grammar.sql.query.catalog import Catalog
from guided.grammar.sql.query.nesting import Nesting
from guided.grammar.sql.query.relations import LETTERS, NOTHING
from guided.grammar.sql.query.scope import Query, Recursion
from guided.grammar.sql.query.set_operations import relation_of, result_of

__all__ = [
    "CommonTable",
    "NewColumn",
    "begin_table",
    "begin_with",
    "enter_table",
    "leave_table",
    "not_recursive",
    "not_within_itself",
]


def _same(query: Query, one: str, other: str) -> bool:
    """Are two names of tables the same?"""
    return one == other or (query.laws.case_folded and ascii_lower(one) == ascii_lower(other))


class CommonTable:
    """The name of a common table expression that is being defined."""

    label = "a name for the table"
    price = 2

    def __init__(self, catalog: Catalog, functions: frozenset[str] = frozenset()) -> None:
        """``functions`` are those that are sources, which a table of the name would hide."""
        self.catalog = catalog
        self.functions = functions

    def allowed(self, query: Query) -> Names:
        """Any that is not taken by another; those that may be are named."""
        taken = {name for name, _ in query.tables}
        known = taken if query.may_redefine else taken | self.catalog.tables.members
        return Names(words_of(known - self.functions), True, self.functions)

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the name noted."""
        if name in self.functions or (name in self.catalog.relations and not query.may_redefine):
            return None
        if any(_same(query, name, known) for known, _ in query.tables):
            return None
        if query.laws.case_folded and any(
            name != known and _same(query, name, known) for known in self.catalog.relations
        ):
            return None
        return query._replace(name=name)

    def suggested(self, query: Query) -> Iterable[str]:
        """A letter, or two."""
        return (*LETTERS, *(first + second for first in LETTERS for second in LETTERS))


class NewColumn:
    """A column in the list behind the name of a common table expression."""

    label = "a name for the column"
    price = 1

    def allowed(self, query: Query) -> Names:
        """Any that is not in the list."""
        return Names(words_of(()), True)

    def after(self, query: Query, name: str) -> Query | None:
        """The query with the column in its list."""
        listed = query.relation.columns if query.relation is not None else ()
        return None if name in listed else query._replace(relation=relation_of(query, (*listed, name)))

    def suggested(self, query: Query) -> Iterable[str]:
        """A letter."""
        return LETTERS


def begin_with(query: Query) -> Query | None:
    """WITH: the first table may have the name of one of the database."""
    return query._replace(may_redefine=True) if limits.may_define(query) else None


def may_define_another(query: Query) -> Query | None:
    """One more table."""
    return query if limits.may_define(query) else None


def begin_table(query: Query) -> Query:
    """Before the name of a common table expression."""
    return query._replace(name="", relation=None)


def enter_table(query: Query) -> Query | None:
    """Begin its query, of as many columns as its list has."""
    if not limits.may_enter(query):
        return None
    width = None if query.relation is None else len(query.relation.columns)
    return Query(
        query,
        False,
        ((query.name, NOTHING), *query.tables),
        width=width,
        nesting=Nesting(limits.used(query) + limits.TABLE),
        laws=query.laws,
        mixture=query.mixture,
        is_distinct=query.laws.distinct_columns and width is None,
        recursion=Recursion(query.name),
    )


def not_recursive(query: Query) -> Query:
    """Begin it where it must not name itself: RECURSIVE was not written."""
    return query._replace(recursion=None)


def not_within_itself(query: Query) -> Query | None:
    """A clause that MariaDB refuses in queries that may be recursive."""
    return None if query.recursion is not None and query.recursion.relation is not None else query


def leave_table(query: Query) -> Query:
    """The query around, with the table defined."""
    around = query.parent
    assert around is not None
    relation = around.relation if around.relation is not None else relation_of(query, result_of(query))
    tables = ((around.name, relation), *around.tables)
    return around._replace(tables=tables, name="", relation=None, may_redefine=False, mixture=query.mixture)
