"""Columns whose type has no order, such as JSON of PostgreSQL, where rows are grouped.

Such a column is no group itself, but what is made of it may be: ``payload->>'page'`` beside ``count(*)``.  Each column
of the result that uses one can be a group by its position; so there is always a GROUP BY.
"""

from __future__ import annotations

from guided.grammar.sql.query.typed.frames import UNKNOWN, Operand
from guided.grammar.sql.query.typed.scope import Clause, Column, Output, Query, needed, type_of
from guided.grammar.sql.query.typed.types import BIT, SORTABLE, cast_targets

__all__ = [
    "MOST_POSITION",
    "group_by_place",
    "has_groups",
    "nameable_groups",
    "next_group",
    "unsorted",
    "unsorted_outputs",
    "within_group",
]

MOST_POSITION = 40
"""The last position by which a term of GROUP BY names a column."""


def has_groups(query: Query) -> bool:
    """Can rows be grouped: has each column that is used an order, or can what uses it be a group?"""
    without = unsorted(query)
    if not without:
        return True
    now = query.loose.union(query.around_term or (), *(term.loose for term in query.terms))
    return not now & without and all(
        place < MOST_POSITION and _is_group(output, without)
        for place, output in enumerate(query.outputs)
        if without & output.loose.union(*(term.loose for term in output.terms))
    )


def _is_group(output: Output, without: frozenset[Column]) -> bool:
    """Can rows be grouped by a column of the result?"""
    if output.refers or output.tainted not in ("", "rows") or any(term.loose & without for term in output.terms):
        return False
    return output.type != UNKNOWN and bool(SORTABLE & BIT[output.type])


def within_group(query: Query) -> Query | None:
    """The query whose column that is read will be a group, of a type with an order; None where it cannot be."""
    outermost = query.around[0] if query.around else query.frame
    assert isinstance(outermost, Operand)
    in_column = not query.calls and query.around_term is None and query.tainted in ("", "rows")
    goal = outermost.goal & SORTABLE
    if not in_column or outermost.computed or len(query.outputs) >= MOST_POSITION:
        return None
    if not goal & cast_targets(query.system):
        return None
    narrowed = outermost._replace(goal=goal)
    return query._replace(around=(narrowed, *query.around[1:])) if query.around else query._replace(frame=narrowed)


def unsorted(query: Query) -> frozenset[Column]:
    """The columns that the result uses and that have no order; before FROM by the types as which they are used."""
    if query.bound:
        types = {one: type_of(query, (one[0] or None, one[1])) for one in query.used}
        return frozenset(one for one, kind in types.items() if kind and not SORTABLE & BIT[kind])
    every = (one for one in query.pending if one.type and not one.local and not SORTABLE & BIT[one.type])
    return frozenset((one.qualifier, one.column) for one in every)


def nameable_groups(query: Query) -> frozenset[Column]:
    """The columns that must still be grouped, but those that are no group by themselves."""
    left = needed(query)
    return left - unsorted(query) if left else left


def next_group(query: Query) -> Column | None:
    """The column that must be grouped, where a term of GROUP BY may be one."""
    if query.clause is not Clause.GROUP or query.around or query.top.waits:
        return None
    return min(nameable_groups(query), key=str, default=None)


def group_by_place(query: Query) -> int | None:
    """The place of a column of the result that must be a group since a column within it cannot be one."""
    without = needed(query) & unsorted(query)
    places = (place for place, one in enumerate(query.outputs) if without & one.loose)
    return next((place for place in places if place not in query.grouped_outputs), None)


def unsorted_outputs(query: Query) -> int:
    """How many columns of the result there are that can only be groups by their places."""
    without = unsorted(query)
    return sum(bool(without & loose) for loose in (query.loose, *(output.loose for output in query.outputs)))
