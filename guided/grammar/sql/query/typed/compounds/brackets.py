"""Parts of a set operation in brackets, which have clauses of their own."""

from __future__ import annotations

from guided.grammar.attributed.nodes import Action, Node, Sign, seq
from guided.grammar.sql.query.typed.columns.catalog import Catalog
from guided.grammar.sql.query.typed.compounds.tables import has_whole_table
from guided.grammar.sql.query.typed.queries import columns_of, within
from guided.grammar.sql.query.typed.scope import Clause, Output, Query
from guided.grammar.sql.query.typed.types import settling

__all__ = ["bracketed"]


def bracketed(catalog: Catalog, query: Node) -> Node:
    """A query in brackets as a part."""
    has_table = has_whole_table(catalog)

    def may_enter(query: Query) -> Query | None:
        # What may refuse stands before the bracket, behind which something must follow.
        begun = _enter(query)
        return None if begun is None or has_table(begun) is None else query

    return seq(Action(may_enter), Sign("("), Action(_enter), query, Action(_leave), Sign(")"))


def _enter(query: Query) -> Query | None:
    """Begin it; what it may see is what its part may see."""
    part = query._replace(bound=True, clause=Clause.VALUES)
    goals = None if query.goals is None else tuple(settling(query.system, goal) for goal in query.goals)
    if goals is not None and not all(goals):
        return None
    begun = within(part, goals, sees=query.sees_parent)
    return None if begun is None else begun._replace(in_part=True)


def _leave(query: Query) -> Query:
    """Behind it: its columns are the part's, of which ORDER BY may name no others."""
    part = query.parent
    assert part is not None
    outputs = tuple(Output(name, kind) for name, kind in columns_of(query))
    return part._replace(outputs=outputs, distinct=True)
