"""The names that a query tells from others."""

from __future__ import annotations

from guided.grammar.sql.query.typed.scope import Query

__all__ = ["known_names"]


def known_names(query: Query) -> frozenset[str]:
    """The names that mean something in a query or around it."""
    found: set[str] = set()
    at: Query | None = query
    while at is not None:
        for pending in at.pending:
            found |= {pending.column, pending.qualifier or ""}
        for source in at.sources:
            found.add(source.name)
            found |= {name for name, _ in source.relation.columns if name is not None}
        found |= {output.name or "" for output in at.outputs} | {name or "" for name, _ in at.result or ()}
        for name, relation in at.named_tables:
            found.add(name)
            found |= {column for column, _ in relation.columns if column is not None}
        if at.relation is not None:
            found |= {name for name, _ in at.relation.columns if name is not None}
        found |= at.barred
        found.add(at.name)
        at = at.parent
    return frozenset(found)
