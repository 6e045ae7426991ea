"""Rows that are compared: (a, b) = (1, 2), (a, b) IN (SELECT ...), (a, b) OVERLAPS (c, d).

A row is no value of its own: what begins as a bracket around an expression becomes one by its comma, and then a
comparison must follow, unless COUNT(DISTINCT (a, b)) counts it.
"""

from __future__ import annotations

from typing import NamedTuple

from guided.grammar.attributed.nodes import Action, Node, Sign, Star, choice, listed, maybe, seq, words
from guided.grammar.sql.query.typed import changes as do
from guided.grammar.sql.query.typed import frames, queries
from guided.grammar.sql.query.typed.frames import CONDITION, UNKNOWN, Asks, Calling
from guided.grammar.sql.query.typed.functions import next_types
from guided.grammar.sql.query.typed.operators import COMPARISONS, LEVELS
from guided.grammar.sql.query.typed.scope import Query
from guided.grammar.sql.query.typed.types import BIT, OTHER, SORTABLE

__all__ = ["Row", "compared_row"]

_OPEN, _CLOSE, _COMMA = Sign("("), Sign(")"), Sign(",")
MOST_COLUMNS = 6
_NOTHING = -1
"""As tightly binds no operator."""


class Row(NamedTuple):
    """A row on the left, by the types of its parts, and how many of the right side were read."""

    types: tuple[str, ...]
    read: int = 0
    negated: bool = False
    asks: Asks = Asks.NOTHING
    """Is it compared with the rows of a query?"""
    overlaps: bool = False
    """Is it the left side of OVERLAPS?  Then ``types`` goes on with the right side."""


def compared_row(body: Node, query: Node) -> Node:
    """What follows the first part of a row in brackets: its other parts, and what it is compared with."""
    part = seq(Action(_begin_part), body, Action(_end_part))
    left = seq(Action(_begin), _COMMA, part, Star(seq(Action(_next_part), _COMMA, part)), _CLOSE)
    other = seq(Action(_begin_other), body, Action(_end_other))
    others = Star(seq(Action(_next_other), _COMMA, other), _wants_other)
    right = seq(_OPEN, other, others, Action(_whole), _CLOSE)
    compare = seq(choice(*map(Sign, COMPARISONS)), right)
    inside = choice(
        seq(Action(_enter), query, Action(_leave)), listed(right, _COMMA)
    )  # fmt: skip
    among = seq(maybe(words("NOT"), Action(_negated)), words("IN"), _OPEN, inside, _CLOSE)
    instant = seq(Action(_begin_instant), body, Action(_end_instant))
    overlap = seq(Action(_may_overlap), words("OVERLAPS"), _OPEN, instant, _COMMA, instant, _CLOSE)
    return seq(left, choice(seq(choice(compare, among, overlap), Action(_compared)), Action(_counted)))


def _begin(query: Query) -> Query | None:
    """At the first comma: the bracket was that of a row."""
    begun = do.untraced(query)
    ended = None if begun is None else do.end(begun)
    if ended is None or ended.value in (UNKNOWN, OTHER) or not BIT[ended.value] & SORTABLE:
        return None
    if not frames.rights(query.system, "compare", ended.value, CONDITION):
        return None
    top = ended.top
    begins = not top.type and not (top.waits and top.system.levels[top.waits[-1].operator] >= LEVELS["compare"])
    if not begins or not frames.hopes(top, LEVELS["compare"]) & BIT["bool"]:
        return None
    return ended.pushed(Row((ended.value,)))._replace(depth=ended.depth - 1)


def _row(query: Query) -> Row:
    row = query.frame
    assert isinstance(row, Row)
    return row


def _next_part(query: Query) -> Query | None:
    """Before the comma of one more part."""
    return query if len(_row(query).types) < MOST_COLUMNS else None


def _begin_part(query: Query) -> Query | None:
    return do.push(query, SORTABLE)


def _end_part(query: Query) -> Query | None:
    ended = do.end(query)
    if ended is None or ended.value == OTHER or not frames.rights(query.system, "compare", ended.value, CONDITION):
        return None
    return ended.with_top(Row((*_row(ended).types, ended.value)))


def _negated(query: Query) -> Query:
    """Behind NOT of NOT IN."""
    return query.with_top(_row(query)._replace(negated=True))


def _goal(query: Query, place: int) -> int:
    return frames.rights(query.system, "compare", _row(query).types[place], CONDITION)


def _may_overlap(query: Query) -> Query | None:
    """Where OVERLAPS may stand: between two rows of two moments, or of one and a span."""
    types = _row(query).types
    fits = "overlaps" in query.system.spelled and len(types) == 2 and next_types(query.system, "overlaps", types)
    return query.with_top(_row(query)._replace(overlaps=True)) if fits else None


def _begin_instant(query: Query) -> Query | None:
    return do.push(query, next_types(query.system, "overlaps", _row(query).types))


def _end_instant(query: Query) -> Query | None:
    ended = do.end(query)
    if ended is None:
        return None
    row = _row(ended)
    return ended.with_top(row._replace(types=(*row.types, ended.value)))


def _begin_other(query: Query) -> Query | None:
    row = _row(query)
    return do.push(query, _goal(query, row.read)) if row.read < len(row.types) else None


def _end_other(query: Query) -> Query | None:
    ended = do.end(query)
    if ended is None:
        return None
    row = _row(ended)
    return ended.with_top(row._replace(read=row.read + 1))


def _wants_other(query: Query) -> bool:
    row = _row(query)
    return row.read < len(row.types)


def _next_other(query: Query) -> Query | None:
    """Before the comma of one more part on the right, where the left has one."""
    return query if _wants_other(query) else None


def _whole(query: Query) -> Query | None:
    """Behind the last part of a row on the right; another may follow."""
    return None if _wants_other(query) else query.with_top(_row(query)._replace(read=0))


def _enter(query: Query) -> Query | None:
    """Begin the query whose rows it is compared with."""
    return queries.within(query, tuple(_goal(query, place) for place in range(len(_row(query).types))))


def _leave(query: Query) -> Query:
    """Behind it."""
    around = query.parent
    assert around is not None
    row = _row(around)
    return around if row.negated else around.with_top(row._replace(asks=Asks.ROWS))


def _counted(query: Query) -> Query | None:
    """The row is the argument of COUNT(DISTINCT ...), and no operator follows."""
    below = query.popped()._replace(alone=False)
    call = below.around[-1] if below.around else None
    is_first = isinstance(call, Calling) and call.name == "count" and call.distinct and not call.types
    if not is_first or below.top.waits or below.top.type:
        return None
    found = frames.as_condition(below.top._replace(column=None, plain=False), "compare")
    return below.with_top(found._replace(tightest=_NOTHING))


def _compared(query: Query) -> Query | None:
    """A condition was read; what follows must not bind as tightly as the comparison."""
    below = query.popped()._replace(alone=False)
    found = frames.as_condition(below.top._replace(column=None, plain=False), "compare")
    return do.asking(below.with_top(found._replace(tightest=LEVELS["is"])), _row(query).asks)
