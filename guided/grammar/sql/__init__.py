"""SQL over one database: its schema, the grammar of queries over it, and running them read-only."""

from guided.grammar.sql.execute import explain_query, run_query
from guided.grammar.sql.linking import linked
from guided.grammar.sql.reflect import reflect
from guided.grammar.sql.result import QueryResult
from guided.grammar.sql.schema import Column, ColumnKind, DatabaseSchema, ForeignKey, NameCase, Table
from guided.grammar.sql.statements import sql

__all__ = [
    "Column",
    "ColumnKind",
    "DatabaseSchema",
    "ForeignKey",
    "NameCase",
    "QueryResult",
    "Table",
    "explain_query",
    "linked",
    "reflect",
    "run_query",
    "sql",
]
