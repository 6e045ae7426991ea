"""What differs between the SQL of engines, as data."""

from __future__ import annotations

from dataclasses import dataclass

from guided.grammar.attributed.lexis import Lexis
from guided.grammar.sql.query.catalog import Function
from guided.grammar.sql.query.laws import SQLITE_LAWS, Laws

__all__ = ["Dialect", "TableFunction"]


@dataclass(frozen=True)
class TableFunction:
    """A function that is a source in FROM, with one argument or two."""

    name: str
    columns: tuple[str, ...]
    hidden: tuple[str, ...]
    """Its arguments, which can be named as well."""


@dataclass(frozen=True)
class Dialect:
    """An engine's spelling, operators, words and functions; names are in lower case, keywords as they are written."""

    name: str
    lexis: Lexis
    keywords: frozenset[str]
    """Words that are no alias unless AS stands before them."""
    comparisons: tuple[str, ...]
    patterns: tuple[str, ...]
    """Keywords of operators that match a pattern, beside LIKE."""
    operators: tuple[str, ...]
    prefixes: tuple[str, ...]
    constants: tuple[str, ...]
    collations: tuple[str, ...]
    types: tuple[str, ...]
    functions: tuple[Function, ...]
    attached: frozenset[str] = frozenset()
    """Functions whose bracket must stand right behind their names."""
    laws: Laws = SQLITE_LAWS
    names_queries: bool = True
    """Must a sub-query in FROM be given a name?"""
    has_rows: bool = False
    """Are there rows of values in conditions?"""
    table_functions: tuple[TableFunction, ...] = ()
