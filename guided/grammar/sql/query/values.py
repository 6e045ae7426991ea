"""Values of columns: a string right behind ``column =`` or in ``column IN (`` is held to those that are known.

Only columns of tables in FROM have values: in SELECT it is not known yet whose column is compared.  What holds a column
among other things (``a || b``, ``lower(a)``) is compared with any string, and so is a column before LIKE or ``<``.
"""

from __future__ import annotations

from guided.grammar.sql.query.scope import Clause, Query

__all__ = [
    "EQUALITIES", "begin_list", "begin_value", "end_list", "hold", "hold_item", "mixed", "no_column", "read_column",
]  # fmt: skip

EQUALITIES = frozenset(["=", "==", "!=", "<>", "<=>"])
"""The comparisons by which strings are held."""


def begin_value(query: Query) -> Query:
    """An operand of a comparison begins."""
    return query._replace(is_mixed=False) if query.is_mixed else query


def mixed(query: Query) -> Query:
    """An operator: the operands around it are no columns alone."""
    return query._replace(is_mixed=True, values=None)


def no_column(query: Query) -> Query:
    """What was read is no column alone, or begins something else; nothing is held."""
    return query if query.values is None and query.held is None else query._replace(values=None, held=None)


def hold(query: Query) -> Query:
    """Behind an equality: the values of the column on its left hold what follows."""
    return query if query.values is None and query.held is None else query._replace(held=query.values, values=None)


def begin_list(query: Query) -> Query:
    """Behind IN and its bracket."""
    return query._replace(lists=(*query.lists, query.values), values=None)


def hold_item(query: Query) -> Query:
    """Before an item of the list."""
    return query._replace(held=query.lists[-1])


def end_list(query: Query) -> Query:
    """Before the bracket that closes it."""
    return query._replace(lists=query.lists[:-1], held=None, values=None)


def read_column(query: Query, read: Query, qualifier: str, name: str) -> Query:
    """The query behind a column that was ``read``, with the column's values where it stands alone."""
    if query.is_mixed:
        return read
    at: Query | None = query
    while at is not None and at.bound | (at.clause is not Clause.SELECT):
        for source in at.sources:
            if source.name == qualifier or (not qualifier and name in source.relation.names - source.merged):
                values = source.relation.values_of.get(name)
                return read if values is None else read._replace(values=values)
        at = at.outside
    return read
