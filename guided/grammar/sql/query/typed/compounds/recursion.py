"""WITH RECURSIVE: the last part of a UNION may read what its first parts give, once, outside of other queries.

The engine wants the types of the first parts to be those of the whole, to the digits of a number and the size of a
text.  These are known of columns alone of stored tables.  Where another column may have some, the table does not read
itself, and it does so only behind the sources of the columns that must have the same.
Source: https://www.postgresql.org/docs/current/queries-with.html#QUERIES-WITH-RECURSIVE.
"""

from __future__ import annotations

from functools import cache

from guided.grammar.sql.query.typed.relations import Relation
from guided.grammar.sql.query.typed.scope import Query, Recursion, size_of
from guided.grammar.sql.query.typed.system import TypeSystem
from guided.grammar.sql.query.typed.types import OTHER, bits_of, common, settled
from guided.grammar.sql.query.typed.undecided import is_undecided

__all__ = ["next_recursion", "same"]

_SIZED = ("varchar", "bpchar", "numeric", "numeric2", "numeric3", "numeric4")


def next_recursion(query: Query, operator: str) -> Recursion | None:
    """What the next part of a set operation may read."""
    own = query.recursion
    if own is None:
        return None
    own = own._replace(
        relation=None, sized=(), unites=operator == "union", is_closed=own.is_closed or operator != "union"
    )
    if own.is_closed:
        return own
    columns, sized = [], []
    for place, output in enumerate(query.outputs):
        kind = settled(query.system, output.type)
        name = own.names[place] if own.names else output.name if query.result is None else query.result[place][0]
        if query.result is not None and query.result[place][1] != output.type:
            return own
        if kind == OTHER or is_undecided(kind):
            return own
        if kind.removeprefix("_") in _SIZED and (output.loose or output.trace is None):
            size = size_of(query, place) if query.result is None else None
            if size is None:
                return own
            if size:
                sized.append((place, size))
        columns.append((name, kind))
    return own._replace(relation=Relation(tuple(columns)), sized=tuple(sized))


@cache
def same(system: TypeSystem, name: str) -> int:
    """The types that have no other common type with one than that."""
    return sum(bit for other, bit in bits_of(system) if common(system, name, other) == name)
