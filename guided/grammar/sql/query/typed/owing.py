"""What a query demands of the text behind it, in bytes: names that wait, columns that must be grouped, values."""

from __future__ import annotations

from guided.grammar.sql.query.typed.frames import Operand
from guided.grammar.sql.query.typed.scope import Clause, Query, conflicts, needed, unbound

__all__ = ["owed"]

_OWED_SOURCE, _OWED_NAME, _OWED_VALUE = 56, 40, 40
"""Bytes of a sub-query as a source, of a name in it beside its own two times, and of a value with its casts."""


def owed(query: Query) -> int:
    """Bytes that are enough for what a query and those around it demand beside their clauses."""
    found = 0
    at: Query | None = query
    while at is not None:
        waiting = () if at.frame is None else (*at.around, at.frame)
        found += _OWED_VALUE * (2 * len(waiting) + 1)
        found += sum(_OWED_VALUE * max(1, len(frame.waits)) for frame in waiting if isinstance(frame, Operand))
        if at.goals is not None:
            found += _OWED_VALUE * max(1, len(at.goals) - len(at.outputs))
        if not at.bound:
            found += _sources_owed(at)
        found += sum(24 + 4 * len(name) + len(where or "") for where, name in at.loose | needed(at))
        terms = [*at.terms, *(term for output in at.outputs for term in output.terms)]
        loose = [at.around_term or frozenset(), *(one.loose for one in at.outputs), *(one.loose for one in terms)]
        for part in loose:
            found += sum(24 + 4 * len(name) + len(where or "") for where, name in part)
        found += sum(_OWED_VALUE + len(name) for name in at.windows - at.defined_windows)
        found += sum(24 + 4 * len(name) + len(where or "") for where, name in at.groupings)
        if at.followed:
            found += max(sum(len(part) + 4 for part in left) for left in at.followed)
        found += sum(4 + 2 * len(name) + len(where or "") for where, name in at.distinct_on)
        at = at.parent
    return found


def _sources_owed(query: Query) -> int:
    missing = unbound(query)
    groups = {pending.qualifier for pending in missing}
    found = sum(_OWED_SOURCE + 2 * len(group or "") for group in groups)
    found += sum(_OWED_NAME + 2 * len(pending.column) for pending in missing)
    found += sum(_OWED_NAME + len(name) for name in conflicts(query))
    if query.needs_from and not query.sources:
        found += _OWED_SOURCE
    if query.name and query.clause is Clause.SELECT:
        found += _OWED_SOURCE + 2 * len(query.name) + 2 * _OWED_NAME
    return found
