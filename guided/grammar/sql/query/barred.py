"""Names that sources to come may not have: they would be ambiguous, or a condition of a join has them already."""

from __future__ import annotations

from guided.grammar.sql.query.relations import bare_columns
from guided.grammar.sql.query.scope import Query, barred_by_star, waiting_among

__all__ = ["barred_below", "is_captured"]


def barred_below(query: Query, *, merging: bool) -> frozenset[str]:
    """The names that no column of one more source may have; ``merging``: may USING make equal names one?"""
    barred = barred_by_star(query)
    if query.chain and merging:
        # The sources before the last comma cannot be joined by USING.
        before, chain = bare_columns(query.sources[: query.chain]), bare_columns(query.sources[query.chain :])
        barred |= waiting_among(query, before.unique | before.ambiguous) - chain.unique
    return barred | _of_conditions(query) if query.before_outer else barred


def is_captured(query: Query) -> bool:
    """Has a source a name that a condition before it has?  SQLite takes that beside no RIGHT JOIN."""
    return not _of_conditions(query).isdisjoint(bare_columns(query.sources).unique)


def _of_conditions(query: Query) -> frozenset[str]:
    """The names in conditions of joins that no source before them has; strings in aggregates are noted alike."""
    return frozenset(pending.column for pending in query.pending if pending.local and pending.optional)
