"""TABLE t, which is SELECT * FROM t."""

from __future__ import annotations

from guided.grammar.attributed.nodes import Action, Name, Node, Sign, choice, seq, words
from guided.grammar.sql.query.typed import clauses
from guided.grammar.sql.query.typed.columns.catalog import Catalog
from guided.grammar.sql.query.typed.scope import Query
from guided.grammar.sql.query.typed.sourcing.tables import SchemaName, TableName, without_alias

__all__ = ["whole_table"]


def whole_table(catalog: Catalog) -> Node:
    """TABLE and the name of a relation."""
    name = TableName(catalog, joined=False)
    named = choice(Name(name), seq(Name(SchemaName(name)), Sign("."), Name(name)))

    def begin(query: Query) -> Query | None:
        begun = clauses.all_columns(query)
        return begun if begun is not None and len(name.allowed(begun).words) else None

    return seq(
        Action(begin), words("TABLE"), Action(clauses.begin_from), named, Action(without_alias), Action(clauses.bound)
    )
