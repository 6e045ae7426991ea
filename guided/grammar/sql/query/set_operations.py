"""Set operations: the next query, and the columns of the result."""

from __future__ import annotations

from guided.grammar.attributed.watched import deferred, later
from guided.grammar.sql.query import limits
from guided.grammar.sql.query.nesting import Nesting
from guided.grammar.sql.query.relations import Relation, bare_columns, starred
from guided.grammar.sql.query.scope import Clause, Query, has_star

__all__ = ["next_intersected", "next_part", "next_united", "relation_of", "result_of", "terms_of"]


def relation_of(query: Query, columns: tuple[str | None, ...]) -> Relation:
    """The columns of a query as those of a source."""
    lost = query.laws.lost_names
    if lost.isdisjoint(columns):
        return Relation(columns)
    return Relation(tuple(f"column{place + 1}" if name in lost else name for place, name in enumerate(columns)))


def result_of(query: Query) -> tuple[str | None, ...]:
    """The columns of a query that is whole: of a set operation those of its first part."""
    return query.result if query.result is not None else query.columns


def next_part(query: Query) -> Query | None:
    """The next query of a set operation; none behind one that is recursive."""
    recursion = query.recursion
    if (recursion is not None and recursion.is_used) or not limits.part_fits(query):
        return None
    if query.no_star and has_star(query):
        return None
    nesting = Nesting(query.nesting.around, chained=query.nesting.chained)
    part = query._replace(**_NEXT, nesting=nesting, parts=query.parts + 1, recursion=recursion)
    return deferred(
        part,
        result=later(query, _RESULT, result_of),
        terms=later(query, _RESULT, _all_terms),
        width=later(query, _RESULT, _width_of),
    )


_RESULT = frozenset(("outputs", "sources", "result", "terms", "clause", "sees_parent"))
"""What the columns of a query are told from."""
_KEPT = frozenset((
    "parent", "sees_parent", "tables", "result", "terms", "width", "nesting", "parts", "laws", "no_limit", "no_star",
    "mixture", "recursion",
))  # fmt: skip
_NEXT = {name: value for name, value in Query._field_defaults.items() if name not in _KEPT}
"""What the next query of a set operation begins with."""


def _width_of(query: Query) -> int:
    return len(result_of(query))


def _all_terms(query: Query) -> frozenset[str]:
    return query.terms | terms_of(query)


def next_intersected(query: Query) -> Query | None:
    """The next query behind INTERSECT; with the one before it MariaDB makes it a table, which sees no query around."""
    return None if query.sees_parent and query.parts > 1 else next_part(query)


def next_united(query: Query) -> Query | None:
    """The next query behind UNION, which may be recursive."""
    part = next_part(query)
    if part is None or part.recursion is None or part.recursion.relation is not None:
        return part
    around = part.parent
    assert around is not None
    relation = around.relation if around.relation is not None else relation_of(part, part.result or ())
    return part._replace(recursion=part.recursion._replace(relation=relation))


def terms_of(query: Query) -> frozenset[str]:
    """The names by which ORDER BY of a set operation finds columns of one of its queries.

    Beside aliases these are names that mean the column itself, not one of a query around or of the other side of USING.
    """
    if query.clause is Clause.VALUES:
        return frozenset()
    merged = frozenset().union(*(source.merged for source in query.sources))
    plain = frozenset() if query.sees_parent else bare_columns(query.sources).unique - merged
    return frozenset(
        output.name for output in query.outputs if output.name is not None and (output.is_alias or output.name in plain)
    ).union(*(_starred_names(query) if output.star == "" else () for output in query.outputs))


def _starred_names(query: Query) -> frozenset[str]:
    return frozenset(name for name in starred(query.sources) if name is not None)
