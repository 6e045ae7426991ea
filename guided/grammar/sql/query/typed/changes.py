"""What happens to the attribute of a query between the lexemes of an expression."""

from __future__ import annotations

from collections.abc import Callable

from guided.grammar.sql.query.typed import frames
from guided.grammar.sql.query.typed.frames import CONDITION, UNKNOWN, Operand
from guided.grammar.sql.query.typed.scope import Query
from guided.grammar.sql.query.typed.types import ALL

__all__ = [
    "Change", "at_operand", "begin", "cast", "castable", "conjunction", "end", "end_subscript", "fitting",
    "negation", "open_operand", "operand", "operator", "push", "read", "second_bound", "sign", "subscript", "test",
    "test_of_condition",
]  # fmt: skip

Change = Callable[[Query], Query | None]

MOST_PARTS = 60
"""Parts of a column by which GROUP BY may find it again."""


def hear(query: Query, text: str) -> Query:
    """The query with one more part of what its column is made of, as far as such are followed."""
    trace = query.trace
    if trace is None:
        return query
    return query._replace(trace=(*trace, text) if len(trace) < MOST_PARTS else None)


def heard(text: str) -> Change:
    """Something was read that tells expressions apart."""

    def change(query: Query) -> Query:
        return hear(query, text)

    return change


def untraced(query: Query) -> Query:
    """Something was read that is not followed: the column is like no other."""
    return query if query.trace is None else query._replace(trace=None)


def begin(goal: int = ALL) -> Change:
    """An expression that must end with one of some types."""

    def change(query: Query) -> Query:
        return query._replace(frames=(*query.frames, Operand(query.system, goal)))

    return change


def end(query: Query) -> Query | None:
    """Behind an expression."""
    found = frames.whole(query.top)
    if found is None:
        return None
    column = found.column if found.tight else None
    query = hear(query, ";")
    return query._replace(frames=query.frames[:-1], value=found.type, label=found.label, column=column, alone=False)


def push(query: Query, goal: int) -> Query | None:
    """Begin an expression, None where no type would do."""
    return query._replace(frames=(*query.frames, Operand(query.system, goal))) if goal else None


def operand(name: str, label: tuple[str, int] = ("", 0)) -> Change:
    """An operand of a type was read."""

    def change(query: Query) -> Query | None:
        return read(query, name, label)

    return change


def read(query: Query, name: str, label: tuple[str, int] = ("", 0)) -> Query | None:
    """The query behind an operand of a type."""
    found = frames.read(query.top, name, label)
    return None if found is None else query.with_top(found)._replace(alone=False)


def at_operand(query: Query) -> Query | None:
    """Where an operand begins that is no literal."""
    return query._replace(alone=False) if frames.at_operand(query.top) else None


def open_operand(query: Query) -> Query | None:
    """Where an operand begins that is no literal, as a term alone or not."""
    return query if frames.at_operand(query.top) else None


def fitting(name: str) -> Change:
    """Where a literal of a type may stand."""

    def change(query: Query) -> Query | None:
        return query if not query.alone and frames.fits(query.top, name) else None

    return change


def operator(name: str) -> Change:
    """A binary operator."""

    def change(query: Query) -> Query | None:
        found = frames.operated(query.top, name)
        return None if found is None else hear(query.with_top(found), name)

    return change


def sign(text: str) -> Change:
    """A sign before an operand."""

    def change(query: Query) -> Query | None:
        found = None if query.alone else frames.signed(query.top, text)
        return None if found is None else hear(query.with_top(found), "sign" + text)

    return change


def negation(query: Query) -> Query | None:
    """NOT."""
    found = frames.negated(query.top)
    return None if found is None else hear(query.with_top(found)._replace(alone=False), "not")


def conjunction(query: Query) -> Query | None:
    """AND between conditions."""
    return None if frames.is_between(query.top) else operator("and")(query)


def second_bound(query: Query) -> Query | None:
    """AND between the bounds of BETWEEN."""
    found = frames.between_done(query.top)
    return None if found is None else hear(query.with_top(found), "second bound")


def test(query: Query) -> Query | None:
    """IS NULL and the like, of any type."""
    found = frames.before_test(query.top, "is", ALL)
    return None if found is None else query.with_top(frames.as_condition(found, "is"))


def test_of_condition(query: Query) -> Query | None:
    """IS TRUE and the like."""
    found = frames.before_test(query.top, "is", CONDITION)
    return None if found is None else query.with_top(frames.as_condition(found, "is"))


def cast(query: Query, target: str) -> Query:
    """The query behind a cast."""
    return hear(query.with_top(frames.cast(query.top, target)), "::" + target)


def castable(query: Query) -> Query | None:
    """Where a cast may follow."""
    top = query.top
    return query if top.tight and top.type != UNKNOWN else None


def subscript(query: Query) -> Query | None:
    """Before the bracket of an element's number."""
    top = query.top
    return query if top.indexed and top.type[:1] == "_" else None


def end_subscript(query: Query) -> Query:
    """Behind it."""
    top = query.top
    return hear(query, "[]").with_top(top._replace(type=top.type[1:], column=None, bound=False, indexed=False))
