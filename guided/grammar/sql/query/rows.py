"""Row values: several values in brackets, compared with others or with what a sub-query gives."""

from __future__ import annotations

from guided.grammar.sql.query import limits
from guided.grammar.sql.query.changes import enter, operand
from guided.grammar.sql.query.scope import Clause, Query

__all__ = [
    "begin_other",
    "begin_row",
    "end_other",
    "end_row",
    "enter_members",
    "enter_row",
    "next_of_other",
    "next_of_row",
]

MOST_VALUES = 8
"""Values of a row."""
_ROOM = 3 * limits.MEMBERS
"""Entries of the parser's stack for a row, a list of rows and a row in it."""


def begin_row(query: Query) -> Query | None:
    """The bracket of a row, in a condition; rows are not within rows."""
    condition = query.clause in (Clause.WHERE, Clause.ON, Clause.HAVING)
    if not condition or query.row or not limits.has_room(query, _ROOM):
        return None
    return operand(query)._replace(row=1)


def next_of_row(query: Query) -> Query | None:
    """One more value."""
    return query._replace(row=query.row + 1) if query.row < MOST_VALUES else None


def end_row(query: Query) -> Query:
    """Behind the comparison."""
    return query._replace(row=0)


def enter_row(query: Query) -> Query | None:
    """Begin a query of as many columns."""
    return enter(sees=True, width=query.row)(query)


def enter_members(query: Query) -> Query | None:
    """Begin a query whose rows it may be one of, without LIMIT."""
    entered = enter_row(query)
    return None if entered is None else entered._replace(no_limit=True)


def begin_other(query: Query) -> Query | None:
    """Behind the bracket of the row that it is compared with."""
    opened = limits.opened(limits.MEMBERS)(query)
    return None if opened is None else opened._replace(cells=1)


def next_of_other(query: Query) -> Query | None:
    """One more value there."""
    return limits.begun(query)._replace(cells=query.cells + 1) if query.cells < query.row else None


def end_other(query: Query) -> Query | None:
    """Behind its last value."""
    return limits.closed(query)._replace(cells=0) if query.cells == query.row else None
