"""The relation that a name stands for in FROM."""

from __future__ import annotations

from guided.grammar.sql.query.catalog import Catalog
from guided.grammar.sql.query.operands import has_taint
from guided.grammar.sql.query.relations import Relation
from guided.grammar.sql.query.scope import Query, Taint

__all__ = ["recursive", "relation_of"]


def recursive(query: Query) -> dict[str, Relation]:
    """The common table expression that is being defined, where it may be used: once, in no aggregate query."""
    found = query.recursion
    if found is None or found.relation is None or found.is_used or query.parent is None:
        return {}
    if has_taint(query, (Taint.AGGREGATE, Taint.WINDOW)):
        return {}
    return {found.name: found.relation}


def relation_of(query: Query, catalog: Catalog, name: str) -> Relation | None:
    """The relation of a name: a common table expression's, or the database's."""
    within = recursive(query).get(name)
    if within is not None:
        return within
    for known, relation in query.tables:
        if known == name:
            return relation
    return catalog.relations.get(name)
