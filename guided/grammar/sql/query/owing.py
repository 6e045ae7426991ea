"""What a query owes to its end: bytes that are enough for what it demands beside its clauses."""

from __future__ import annotations

from collections.abc import Callable

from guided.grammar.attributed.pricing import Rise
from guided.grammar.sql.query.relations import bare_columns
from guided.grammar.sql.query.scope import Clause, Query, conflicts, has_star, unbound, waiting_names

__all__ = ["named", "owed", "rises"]


def owed(query: Query) -> int:
    """Bytes that are enough for what a query and those around it demand beside their clauses.

    Each source that is still missing may be a sub-query that defines what waits for it, joined with USING.
    """
    # Where no number may be, since it would be a position, a string is a byte longer.
    found = 1
    at: Query | None = query
    while at is not None:
        found += sum(2 * max(0, call.low - call.given) for call in at.calls)
        if at.width is not None and not (at.bound and at.is_starred):
            found += 2 * max(0, at.width - len(at.outputs))
        if at.clause is Clause.VALUES and at.cells:
            found += 2 * (len(at.outputs) - at.cells)
        found += 2 * at.row
        if not at.bound:
            found += _sources_owed(at)
        found += sum(_OWED_WINDOW + 2 * len(use.name) for use in at.uses)
        if at.is_distinct or at.barred:
            found += _OWED_NAME
        at = at.parent
    if query.name and query.clause is not Clause.FROM and query.source(query.name) is None:
        # A qualifier, whose column is still to be named; a query around may have to bind it.
        found += _OWED_SOURCE + 2 * len(query.name) + 2 * _OWED_NAME
    return found


_OWED_SOURCE, _OWED_NAME = 30, 9
"""Bytes of a sub-query as a source, and of a name in it beside its own two times.

`` JOIN(SELECT )"" USING()`` has 24 beside its name; ``1 "",`` and ``"",`` around a column have 8.
"""


_OWED_WINDOW = 56
"""Bytes of the definition of a window beside its name."""


_CALLED = 16
"""Bytes of the arguments that a function must have: no more than eight."""


def named(query: Query) -> int:
    """Bytes that a query may owe besides when one more name is read.

    That is a source which has it, or the definition of a window, or arguments; and a table in FROM may have the names
    that wait once more, so that USING must make them one.
    """
    waits = 0
    is_open = False
    at: Query | None = query
    while at is not None:
        if not at.bound:
            is_open = True
            waits += sum(_OWED_NAME + len(name) for name in waiting_names(at))
        at = at.parent
    return waits + (max(_OWED_SOURCE + 2 * _OWED_NAME, _OWED_WINDOW) if is_open else _CALLED)


_BEGUN = 13
"""Bytes of a name in a sub-query and one more column or value, in the result or in a row."""


def rises(widest: int) -> Callable[[Query], Rise]:
    """Bytes that queries may owe besides, in a database of which no relation has more columns.

    A name adds a source with a column, the definition of a window, or arguments; a keyword begins a query that may be
    ``*``, for which FROM must have a source.  With a sign or keyword a query or row may begin that must have as many
    columns as another: one that is there already, or one that began with ``*`` and whose FROM is read meanwhile.  Each
    name that waits may be in the way of a relation that is being read, and of one that was.
    """

    def found(query: Query) -> Rise:
        columns = once = 0
        at: Query | None = query
        while at is not None:
            columns = max(columns, len(at.outputs), at.width or 0, at.row, len(at.result or ()))
            if at.relation is not None:
                columns = max(columns, len(at.relation.columns))
            if at.sources and has_star(at):
                columns = max(columns, sum(len(source.relation.columns) for source in at.sources))
            columns = max([columns, *(len(relation.columns) for _, relation in at.tables)])
            if not at.bound:
                once += 2 * sum(_OWED_NAME + len(name) for name in waiting_names(at))
            if at.clause is Clause.SELECT and not at.needs_from:
                once += _OWED_SOURCE
            at = at.parent
        sign = _BEGUN + 2 * columns
        return Rise(sign, max(_OWED_SOURCE + 3 * _OWED_NAME, _OWED_WINDOW, sign + _OWED_SOURCE), once, 2 * widest)

    return found


def _sources_owed(query: Query) -> int:
    missing = unbound(query)
    groups = {pending.qualifier for pending in missing}
    found = sum(_OWED_SOURCE + 2 * len(group or "") for group in groups)
    found += sum(_OWED_NAME + 2 * len(pending.column) for pending in missing)
    found += sum(_OWED_NAME + len(name) for name in conflicts(query))
    if query.relation is not None and query.clause is Clause.FROM:
        # USING must make one what the relation that was read has as well.
        bare = bare_columns(query.sources)
        both = waiting_names(query) & query.relation.names & (bare.unique | bare.ambiguous)
        found += sum(_OWED_NAME + len(name) for name in both)
    if (query.needs_from and not query.sources) or query.missing_columns:
        found += _OWED_SOURCE
    if query.relation is not None and query.clause is Clause.SELECT:
        found += 2 * len(query.relation.columns)
    return found
