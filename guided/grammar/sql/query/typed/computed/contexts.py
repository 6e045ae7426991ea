"""Where an engine computes constants while it prepares: the rows of VALUES, and what functions in FROM are called with.

It does so if all of them are constant, and refuses the query where one cannot be computed.  So where one may fail
(`Computed.RISKY`), something that is not constant must be among them: a column, or a query, which ends may write.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from guided.grammar.attributed.kept import Last
from guided.grammar.attributed.nodes import Action, Node, seq
from guided.grammar.sql.query.typed import frames
from guided.grammar.sql.query.typed.computed.digits import UNSURE, amount_of, amount_of_cast
from guided.grammar.sql.query.typed.frames import Calling, Operand
from guided.grammar.sql.query.typed.scope import Clause, Computed, Query
from guided.grammar.sql.query.typed.system import TypeSystem
from guided.grammar.sql.query.typed.types import BIT, LISTS, LITERALS

__all__ = [
    "begin", "begin_part", "behind_operator", "called", "casting", "end", "is_part", "lacks_query", "leading",
    "leads", "leads_list", "left_part", "may_be_null", "mixing", "risky", "scaled", "unless_computed", "varied",
    "wants_query",
]  # fmt: skip

_UNTYPED = sum(BIT[name] for name in LITERALS)
Change = Callable[[Query], Query | None]


def begin(query: Query) -> Query:
    """Where such constants begin."""
    return query._replace(computed=Computed.SAFE) if query.system.computable else query


def end(query: Query) -> Query | None:
    """Behind them."""
    if not query.computed:
        return query
    return None if query.computed is Computed.RISKY else query._replace(computed=Computed.NOT)


def risky(query: Query) -> Query:
    """Behind what may fail."""
    return query._replace(computed=Computed.RISKY) if query.computed.is_whole else query


_VARIED = Last[Query](lambda _: {})
"""A place asks about all columns in turn."""


def varied(query: Query) -> Query:
    """Where what comes is no constant, and behind it."""
    if not query.computed:
        return query
    known = _VARIED.of(query)
    if not known:
        frame, *around = map(_varied, (query.frame, *query.around))
        known["query"] = query._replace(computed=Computed.NOT, frame=frame, around=tuple(around))
    found: Query = known["query"]
    return found


def _varied(frame: Any) -> Any:
    if not isinstance(frame, Operand):
        return frame
    return frame._replace(computed=False, part=-1, goal=frame.wide or frame.goal, wide=0)


def begin_part(query: Query) -> Query:
    """Where a part of an expression begins that is computed if it is constant; behind it `left_part` goes on."""
    if query.computed is Computed.PART or not query.system.computable:
        return query
    begun = query.with_top(query.top._replace(part=len(query.top.waits)))
    return begun if query.computed else begun._replace(computed=Computed.PART)


def is_part(query: Query) -> bool:
    """Is such a part read, where a query elsewhere would not help?"""
    if query.computed.is_whole:
        return any(isinstance(one, Operand) and one.part >= 0 for one in (query.frame, *query.around))
    return query.computed is Computed.PART


def left_part(query: Query) -> Query:
    """Behind such a part."""
    return query._replace(computed=Computed.NOT) if query.computed is Computed.PART else query


def behind_operator(query: Query) -> Query:
    """Behind an operator, which may be behind the right operand that was such a part."""
    top = query.top
    return left_part(query).with_top(top._replace(part=-1)) if len(top.waits) <= top.part else query


def casting(query: Query, source: str, digits: int, target: str, room: int) -> Query:
    """Behind a cast of what had so many digits; the expression is what the cast gives."""
    if not query.computed.is_whole:
        return query
    digits, fails = amount_of_cast(source, digits, target, room)
    found = query.with_top(query.top._replace(digits=digits))
    return risky(found) if fails else found


def scaled(query: Query, room: int) -> Query:
    """Behind a cast to a decimal with room for so many digits before its point."""
    return risky(query) if query.computed.is_whole and query.top.digits > room else query


def called(query: Query, frame: Calling, kind: str) -> tuple[Query, int]:
    """Behind a call, with the digits of what it gives."""
    if not query.computed.is_whole or frame.name in query.system.row_sets:
        return query, 0
    known = query.system.computable.get(frame.name)
    if known is None:
        return risky(query), UNSURE
    if known > 0:
        return query, known
    digits, fails = amount_of(kind, frame.digits - known)
    return (risky(query) if fails else query), digits


def leading(query: Query, among: int) -> Operand:
    """An expression that comes of some types, as the operand that the query reads or within that.

    A constant is of those types with which that needs no cast that may fail; of all if these are literals.
    """
    if not query.computed:
        return Operand(query.system, among)
    found = among & frames.leading(query.top)
    return Operand(query.system, found, wide=among) if found & ~_UNTYPED else Operand(query.system, among)


def unless_computed(query: Query) -> Query | None:
    """Where not all is computed that is read."""
    return None if query.computed.is_whole else query


def may_be_null(query: Query) -> Query | None:
    """Where a constant may be NULL: not in EXTRACT, whose type that would change."""
    return None if query.computed.is_whole and query.no_null else query


def leads(system: TypeSystem, name: str) -> Node:
    """Where an operand of a type needs no cast that may fail; nothing to read where no constants are computed."""
    return Action(_leads(name)) if system.computable else seq()


def _leads(name: str) -> Change:
    """Where an operand of a type needs no cast that may fail."""

    def change(query: Query) -> Query | None:
        return query if not query.computed or frames.leading(query.top) & BIT[name] else None

    return change


def leads_list(query: Query) -> Query | None:
    """Where a list may stand."""
    return query if not query.computed or frames.leading(query.top) & LISTS else None


def _is_outermost(query: Query) -> bool:
    """Is the expression one of those that must not fail, with none around it?"""
    return len(query.around) == (0 if query.clause is Clause.VALUES else 2)


def lacks_query(query: Query) -> bool:
    """Must the argument of a function go on, since it may fail?"""
    if not query.computed.is_whole or query.clause is Clause.VALUES or not _is_outermost(query):
        return False
    whole = frames.whole(query.top)
    return whole is not None and (query.computed is Computed.RISKY or whole.risky)


def mixing(query: Query) -> str:
    """The operator with which a query becomes a part of such an argument."""
    return "||" if query.top.type[:1] == "_" else "+"


def wants_query(query: Query) -> bool:
    """Does a text that ends soon have a query as the operand that comes?

    It is the first cell of a row more, or the right side of an argument.
    """
    if not query.computed.is_whole or not isinstance(query.frame, Operand) or not _is_outermost(query):
        return False
    top, may_fail = query.top, query.computed is Computed.RISKY
    if query.clause is Clause.VALUES:
        return may_fail and not top.type and not top.waits and query.distinct and query.cell == 0
    return (may_fail or top.risky) and not top.type and bool(top.waits) and top.waits[-1].operator in ("+", "||")
