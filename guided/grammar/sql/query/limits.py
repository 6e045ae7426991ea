"""The limits of engines, counted while a query is read, so that no text of the language comes to one.

SQLite's parser has a stack of 100 entries for all that is open (YYSTACKDEPTH, up to 3.45; https://sqlite.org/compile.html),
and its expressions, results, joins and set operations have the bounds of https://sqlite.org/limits.html.  They are the
least of all engines here.  What the rules of SQLite's grammar hold on the stack is counted from above.
"""

from __future__ import annotations

from collections.abc import Callable

from guided.grammar.attributed.watched import asked
from guided.grammar.sql.query.nesting import Around, Binding, Nesting
from guided.grammar.sql.query.scope import Clause, Query, has_star, is_part

__all__ = [
    "CALL", "CASE", "CAST", "FILTER", "LIMIT", "MEMBERS", "MOST_CHAINED", "MOST_ITEMS", "MOST_SOURCES", "MOST_STARS",
    "TABLE", "WINDOW", "begun", "binds", "clause_fits", "closed", "fits_columns", "fits_item", "fits_source",
    "has_room", "is_leaf", "may_define", "may_enter", "nested", "opened", "part_fits", "used", "window_fits",
    "window_opened",
]  # fmt: skip

PARSER_STACK = 100
"""Entries of the stack of SQLite's parser."""
_OPERAND = 8
"""Entries of an operand that opens nothing, as ``main.t.c``, with its sign."""
_BRACKET = 2
"""Entries of the bracket of a query and of EXISTS before it."""
_QUERY = 24
"""Entries of a query that binds all its names: a WITH and a set operation around, and a sub-query in its FROM."""
_EXPRESSION = 20
"""Entries of an expression of all precedences."""
TABLE = 7
"""Entries of a common table expression before its query, beside those of SELECT."""
CALL, CASE, CAST, MEMBERS, FILTER, WINDOW, LIMIT = 5, 6, 2, 3, 8, 15, 10
"""Entries of what is open within brackets, or between CASE and END, before an expression there."""
MOST_CHAINED = 400
"""Operators in a row of one precedence; expressions are at most 1,000 deep (SQLITE_MAX_EXPR_DEPTH)."""
MOST_ITEMS = 200
"""Columns that are written in a list; results have at most 2,000 (SQLITE_MAX_COLUMN)."""
MOST_STARS = 2
MOST_COLUMNS = 2000
"""Columns of a result (SQLITE_MAX_COLUMN)."""
_PENDING_COLUMNS = 800
"""Those of them that a sub-query may have to define for pending names, for each ``*`` once."""
MOST_SOURCES = 32
"""Sources beside those that names wait for; a join has at most 64 tables."""
MOST_TABLES = 40
"""Common table expressions in scope: engines write each out where it is used."""
MOST_PARTS = 100
"""Queries of a set operation; 500 is the most (SQLITE_MAX_COMPOUND_SELECT)."""

_CLAUSES = {
    Clause.SELECT: 3,
    Clause.FROM: 5,
    Clause.ON: 10,
    Clause.WHERE: 5,
    Clause.VALUES: 5,
    Clause.GROUP: 9,
    Clause.HAVING: 7,
    Clause.WINDOW: 13,
    Clause.ORDER: 12,
    Clause.COMPOUND_ORDER: 12,
}
"""Entries of a SELECT up to an expression of the clause."""
_WITH, _COMPOUND = 3, 2
_OPERATORS = {Binding.OR: 2, Binding.AND: 2, Binding.NOT: 1, Binding.RANGE: 7, Binding.COMPARISON: 4, Binding.VALUE: 8}
"""Entries of a left operand and what joins it, all precedences of comparisons and of values together."""


def used(query: Query) -> int:
    """Entries of the parser's stack that are in use before an operand."""
    nesting = query.nesting
    found = nesting.around + _CLAUSES[query.clause] + nesting.held + _COMPOUND * is_part(query)
    return found + _WITH * _has_with(query) + sum(_OPERATORS[binding] for binding in nesting.operators)


@asked("parent", "tables")
def _has_with(query: Query) -> bool:
    """May a WITH be open?"""
    return query.parent is None or len(query.tables) > len(query.parent.tables)


def has_room(query: Query, cost: int) -> bool:
    """May something be opened that holds so many entries while an expression is read?"""
    return used(query) + cost + _EXPRESSION + _OPERAND <= PARSER_STACK


@asked("nesting")
def is_leaf(query: Query) -> bool:
    """Is there no room for a sub-query in FROM?  No name may then wait for one."""
    return query.nesting.around + _QUERY > PARSER_STACK


def may_enter(query: Query) -> bool:
    """May a query begin here that binds its own names?"""
    return used(query) + _BRACKET + _QUERY <= PARSER_STACK


def may_define(query: Query) -> bool:
    """May a common table expression be defined here?"""
    return used(query) + TABLE + _QUERY <= PARSER_STACK and len(query.tables) < MOST_TABLES


def nested(query: Query, *, sees: bool) -> Nesting:
    """What is open around a query that begins here; its operators count on those around it if it is an operand."""
    return Nesting(used(query) + _BRACKET, chained=query.nesting.chained if sees else 0)


def window_fits(query: Query) -> bool:
    """May the clause WINDOW follow, with brackets that hold no more than an operand?"""
    return clause_fits(query, Clause.WINDOW) and query.nesting.around + _NAMED_WINDOW + _OPERAND <= PARSER_STACK


def window_opened(query: Query) -> Query | None:
    """Open the brackets of a window."""
    if query.clause is not Clause.WINDOW:
        return opened(WINDOW)(query)
    nesting = query.nesting
    outer = (*nesting.outer, Around(nesting.held, nesting.operators, False))
    return query._replace(nesting=nesting._replace(held=WINDOW - CALL - 3, operators=frozenset(), outer=outer))


_NAMED_WINDOW = _CLAUSES[Clause.WINDOW] + _WITH + _COMPOUND + 7
"""Entries before an expression of a window with a name."""


def opened(cost: int) -> Callable[[Query], Query | None]:
    """Open a bracket, or what has an end as well, that holds so many entries while an expression in it is read."""

    def change(query: Query) -> Query | None:
        if not has_room(query, cost):
            return None
        nesting = query.nesting
        held = nesting.held + cost + sum(_OPERATORS[binding] for binding in nesting.operators)
        outer = (*nesting.outer, Around(nesting.held, nesting.operators, cost == 1))
        return query._replace(nesting=nesting._replace(held=held, operators=frozenset(), outer=outer))

    return change


def closed(query: Query) -> Query:
    """Close what was opened last."""
    *outer, (held, operators, _) = query.nesting.outer
    nesting = query.nesting._replace(held=held, operators=operators, outer=tuple(outer))
    return query._replace(nesting=nesting)


def begun(query: Query) -> Query:
    """An expression begins beside another."""
    return query._replace(nesting=query.nesting._replace(operators=frozenset())) if query.nesting.operators else query


def binds(query: Query, binding: Binding) -> Query | None:
    """An operator behind an operand: those that bind tighter are over."""
    nesting = query.nesting
    chained = nesting.chained + (binding in nesting.operators)
    if chained > MOST_CHAINED:
        return None
    looser = {other for other in nesting.operators if other.value < binding.value}
    found = query._replace(nesting=nesting._replace(operators=frozenset({*looser, binding}), chained=chained))
    return found if used(found) + _OPERAND <= PARSER_STACK else None


@asked("parts", "nesting")
def part_fits(query: Query) -> bool:
    """May one more query follow in a set operation?"""
    return query.parts < MOST_PARTS and query.nesting.around + _CLAUSES[
        Clause.SELECT
    ] + _COMPOUND + _WITH + _OPERAND <= (PARSER_STACK)


_SPARE = 8
"""Items that a question about few of them leaves room for."""


def fits_item(query: Query) -> bool:
    """May one more column be written?"""
    return _has_few_items(query) or len(query.outputs) < MOST_ITEMS


@asked("outputs", spare=_SPARE)
def _has_few_items(query: Query) -> bool:
    return len(query.outputs) + _SPARE < MOST_ITEMS


def fits_source(query: Query) -> bool:
    """May one more source follow, though no name waits for it?"""
    return _has_few_sources(query) or len(query.sources) < MOST_SOURCES


@asked("sources", spare=_SPARE)
def _has_few_sources(query: Query) -> bool:
    return len(query.sources) + _SPARE < MOST_SOURCES


@asked("outputs", "sources", "pending")
def fits_columns(query: Query, more: int) -> bool:
    """May FROM have so many more columns?"""
    if not has_star(query):
        return True
    stars = sum(output.star is not None for output in query.outputs)
    there = sum(len(source.relation.columns) for source in query.sources)
    most = MOST_COLUMNS - _PENDING_COLUMNS if query.pending else MOST_COLUMNS
    return len(query.outputs) + stars * (there + more) <= most


def clause_fits(query: Query, clause: Clause) -> bool:
    """May a clause follow in the query?"""
    return used(query._replace(clause=clause, nesting=Nesting(query.nesting.around))) + _OPERAND <= PARSER_STACK
