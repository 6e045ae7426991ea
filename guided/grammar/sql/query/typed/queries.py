"""Queries within queries and brackets: what they may see, and what they give."""

from __future__ import annotations

from guided.grammar.sql.query.typed import frames
from guided.grammar.sql.query.typed.alternatives import alike, begin_any, compared, compared_with, listed
from guided.grammar.sql.query.typed.changes import Change, asking, at_operand, begins, end, hear, read, untraced
from guided.grammar.sql.query.typed.compounds.recursion import next_recursion, same
from guided.grammar.sql.query.typed.computed.contexts import leading, varied
from guided.grammar.sql.query.typed.frames import CONDITION, UNKNOWN, Asks, Operand
from guided.grammar.sql.query.typed.scope import Clause, Query
from guided.grammar.sql.query.typed.types import ALL, BIT, LITERALS, SORTABLE, common, is_literal, settled

__all__ = [
    "MOST_DEPTH", "begin_list", "columns_of", "deeper", "end_list", "enter", "enter_any", "enter_exists", "enter_list",
    "leave_any", "leave_array", "leave_exists", "leave_list", "leave_value", "may_be_cut", "may_list", "may_nest",
    "may_open", "may_quantify", "next_part", "not_first_of_any", "reads_itself", "shallower", "within",
]  # fmt: skip

_LITERALS = sum(BIT[name] for name in LITERALS)
MOST_DEPTH = 12
"""Queries and brackets within one another."""


def enter(goal: int) -> Change:
    """Begin a query of one column in brackets, as an operand."""

    def change(query: Query) -> Query | None:
        found = at_operand(query)
        return None if found is None else within(found, (goal,))

    return change


def within(query: Query, goals: tuple[int, ...] | None, *, sees: bool = True, most: int = MOST_DEPTH) -> Query | None:
    """The query that begins in brackets."""
    around = untraced(query)
    if around is None or query.depth >= most or _is_barred(query):
        return None
    around = varied(around)
    if query.system.aliases and query.clause is Clause.SELECT:
        around = around._replace(asked=True)
    return Query(query.system, around, sees, tables=query.tables, goals=goals, depth=query.depth + 1)


def may_nest(query: Query) -> Query | None:
    """Where one more query may stand in brackets."""
    return query if query.depth < MOST_DEPTH and not _is_barred(query) else None


def _is_barred(query: Query) -> bool:
    """Does the engine take no query here?"""
    if not query.system.lists:
        return False
    return _is_counted_in_a_list(query) or _is_lateral(query) or bool(frames.parameters(query.around))


def _is_lateral(query: Query) -> bool:
    """Is it the condition of a join with what uses the sources before?  DuckDB has no query there."""
    return query.system.lists and query.clause is Clause.ON and query.sources[-1].is_lateral


def _is_counted_in_a_list(query: Query) -> bool:
    """Is the text in an aggregate in a list behind ANY, which DuckDB reads as a query?

    A query there could not name the columns of the one around.
    """
    return query.is_local and any(
        isinstance(frame, Operand) and frame.no_query for frame in (*query.around, query.frame)
    )


def enter_list(query: Query) -> Query | None:
    """Begin the query behind IN."""
    return within(query, (frames.rights(query.system, "compare", query.frame.subject, CONDITION),))


def may_quantify(query: Query) -> Query | None:
    """Where ANY or ALL may stand: an array, of which DuckDB makes a query, or a query may follow."""
    return query if not _is_lateral(query) and (begin_any(query) or enter_any(query)) else None


def enter_any(query: Query) -> Query | None:
    """Begin the query behind ANY."""
    goal = compared_with(query)
    return within(query, (goal,)) if goal else None


def enter_exists(query: Query) -> Query | None:
    """Begin the query behind EXISTS."""
    found = at_operand(query)
    return None if found is None else within(found, None)


def columns_of(query: Query) -> tuple[tuple[str | None, str], ...]:
    """The columns of a query that is whole."""
    result = query.result
    here = tuple((output.name, output.type) for output in query.outputs)
    if result is None:
        return tuple((name, settled(query.system, kind)) for name, kind in here)
    return tuple(
        (name, settled(query.system, common(query.system, kind, other) or kind))
        for (name, kind), (_, other) in zip(result, here, strict=True)
    )


def leave_value(query: Query) -> Query | None:
    """Behind a query whose value is an operand."""
    assert query.parent is not None
    ((name, kind),) = columns_of(query)
    return asking(read(query.parent, kind, (name or "", 2 if name else 0)), Asks.VALUES)


def leave_array(query: Query) -> Query | None:
    """Behind the query of ARRAY(...)."""
    assert query.parent is not None
    ((_, kind),) = columns_of(query)
    return asking(read(query.parent, "_" + kind, ("array", 2)), Asks.VALUES) if "_" + kind in BIT else None


def leave_list(query: Query) -> Query | None:
    """Behind the query of IN."""
    assert query.parent is not None
    return listed(query.parent, Asks.ROWS)


def leave_any(query: Query) -> Query:
    """Behind the query of ANY."""
    assert query.parent is not None
    return compared(query.parent)


def leave_exists(query: Query) -> Query | None:
    """Behind the query of EXISTS."""
    assert query.parent is not None
    return asking(read(query.parent, "bool", ("exists", 2)), Asks.ROWS)


def next_part(name: str, *, sorts: bool) -> Change:
    """The next query of a set operation."""

    def change(query: Query) -> Query | None:
        result = columns_of(query) if query.result is not None else tuple((o.name, o.type) for o in query.outputs)
        if reads_itself(query):
            return None
        # INTERSECT binds more tightly: mixed with others, literals would be of other types.
        mixed = bool(query.operators) and (name == "intersect") != ("intersect" in query.operators)
        if mixed and any(is_literal(kind) for _, kind in result):
            return None
        among = SORTABLE if sorts else ALL
        if not result or not all(BIT[kind] & among for _, kind in result):
            return None
        wanted = query.goals or (ALL,) * len(result)
        again = next_recursion(query, name)
        if again is not None and again.relation is not None:
            goals = tuple(same(query.system, kind) for _, kind in again.relation.columns)
        else:
            pairs = zip(result, wanted, strict=True)
            among &= ~_LITERALS if mixed else ALL
            goals = tuple(alike(query.system, kind, among & goal) for (_, kind), goal in pairs)
        if not all(goals):
            return None
        return Query(query.system, query.parent, query.sees_parent, tables=query.tables, result=result, goals=goals,
                     depth=query.depth, operators=query.operators | {name}, is_source=query.is_source,
                     in_part=query.in_part, recursion=again)  # fmt: skip

    return change


def may_be_cut(query: Query) -> Query | None:
    """Where ORDER BY or LIMIT may begin: not of a table that reads itself, or of a UNION that might."""
    own = query.recursion
    return None if own is not None and (own.read or (own.unites and not query.system.recursive_order)) else query


def reads_itself(query: Query) -> bool:
    """Has the query read the common table expression whose it is?"""
    return query.recursion is not None and query.recursion.read


def may_open(query: Query) -> Query | None:
    """Where a bracket may stand around an operand: behind it `deeper` goes on."""
    top = query.top
    # Behind IN it would be that of a list of values.
    is_listed = bool(top.waits) and top.waits[-1].operator == "among"
    return begins("(")(query) if query.depth < MOST_DEPTH and not is_listed else None


def deeper(query: Query) -> Query | None:
    """One bracket more."""
    if query.depth >= MOST_DEPTH or not frames.at_operand(query.top):
        return None
    heard = hear(query, "(")
    inner = leading(query, ALL)._replace(no_query=is_first_of_any(query))
    return heard and heard.pushed(inner)._replace(depth=query.depth + 1)


def may_list(query: Query) -> Query | None:
    """Where a list may begin: DuckDB takes time without bound for many within one another."""
    return query if query.depth < MOST_DEPTH else None


def begin_list(query: Query) -> Query | None:
    """Before the bracket of a list."""
    return query._replace(depth=query.depth + 1) if may_list(query) else None


def end_list(query: Query) -> Query:
    """Before the bracket that closes it."""
    return query._replace(depth=query.depth - 1)


def is_first_of_any(query: Query) -> bool:
    """Does the array of ANY begin here, in brackets of its own or not?"""
    return query.top.no_query and not query.top.waits


def not_first_of_any(query: Query) -> Query | None:
    """Elsewhere."""
    return None if is_first_of_any(query) else query


def shallower(query: Query) -> Query | None:
    """The bracket that closes."""
    whole, ended = frames.whole(query.top), end(query)
    if whole is None or ended is None or ended.value == UNKNOWN:
        return None
    if is_literal(ended.value) and not frames.fits(ended.top, ended.value):
        return None
    # Of a path in brackets the name is no path that goes on.
    label = (ended.label[0], min(ended.label[1], 2))
    shut = asking(read(hear(ended, ")"), ended.value, label, ended.amount), whole.asks)
    if shut is None:
        return None
    return shut.with_top(shut.top._replace(indexed=True))._replace(depth=query.depth - 1)
