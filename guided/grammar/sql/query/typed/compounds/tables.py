"""TABLE t, which is SELECT * FROM t."""

from __future__ import annotations

from guided.grammar.attributed.nodes import Action, Name, Node, Sign, choice, seq, words
from guided.grammar.sql.query.typed import clauses
from guided.grammar.sql.query.typed.changes import Change
from guided.grammar.sql.query.typed.columns.catalog import Catalog
from guided.grammar.sql.query.typed.scope import Query
from guided.grammar.sql.query.typed.sourcing.tables import SchemaName, TableName, without_alias
from guided.grammar.sql.query.typed.types import settling

__all__ = ["has_whole_table", "whole_table"]


def has_whole_table(catalog: Catalog) -> Change:
    """Is there a table whose columns are those that are demanded, where no expressions can be?"""
    name = TableName(catalog, joined=False)
    schema = SchemaName(name)

    def change(query: Query) -> Query | None:
        if clauses.may_be_written(tuple(settling(query.system, goal) for goal in query.goals or ())):
            return query
        begun = clauses.all_columns(query)
        return query if begun is not None and _some(begun, name, schema) else None

    return change


def _some(begun: Query, name: TableName, schema: SchemaName) -> bool:
    """May some table follow?"""
    return bool(len(name.allowed(begun).words) or len(schema.allowed(begun).words))


def whole_table(catalog: Catalog) -> Node:
    """TABLE and the name of a relation."""
    name = TableName(catalog, joined=False)
    schema = SchemaName(name)
    named = choice(Name(name), seq(Name(schema), Sign("."), Name(name)))

    def begin(query: Query) -> Query | None:
        begun = clauses.all_columns(query)
        return begun if begun is not None and _some(begun, name, schema) else None

    return seq(
        Action(begin), words("TABLE"), Action(clauses.begin_from), named, Action(without_alias), Action(clauses.bound)
    )
