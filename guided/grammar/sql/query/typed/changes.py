"""What happens to the attribute of a query between the lexemes of an expression."""

from __future__ import annotations

from collections.abc import Callable

from guided.grammar.sql.query.typed import frames
from guided.grammar.sql.query.typed.columns.traces import BREAK, OPERATED, WHOLE
from guided.grammar.sql.query.typed.computed.contexts import begin_part, behind_operator, left_part
from guided.grammar.sql.query.typed.computed.digits import UNSURE, digits_of
from guided.grammar.sql.query.typed.frames import CONDITION, Asks, Operand
from guided.grammar.sql.query.typed.scope import Computed, Query
from guided.grammar.sql.query.typed.types import ALL, ANY_NULL, NESTED

__all__ = [
    "Change",
    "allows_null",
    "asking",
    "at_column",
    "at_operand",
    "begin",
    "begins",
    "cast",
    "castable",
    "conjunction",
    "end",
    "end_slice",
    "end_subscript",
    "fitting",
    "hears",
    "is_heard",
    "negation",
    "next_parts",
    "null_test",
    "open_column",
    "open_operand",
    "operand",
    "operator",
    "pattern_ends",
    "push",
    "quantified",
    "read",
    "second_bound",
    "sign",
    "some",
    "subscript",
    "truth_test",
    "without_null",
]  # fmt: skip

Change = Callable[[Query], Query | None]

_PARTS = ("and", "or", "like", "~", "->>")
"""Operators whose right operand the engine computes while it prepares, if that is constant."""
MOST_PARTS = 100
"""Parts of a column by which GROUP BY may find it again."""


def hear(query: Query | None, text: str) -> Query | None:
    """The query with one more part of what its column is made of, as far as such are followed.

    None where the expression must become a group (`Query.followed`) and is another.
    """
    if query is None:
        return None
    if query.followed is not None:
        left = frozenset(one[1:] for one in query.followed if one[:1] == (text,))
        if query.trace is not None and () in left:
            return query._replace(followed=None)
        return query._replace(followed=left) if left else None
    trace = query.trace
    if trace is None or not is_heard(query):
        return query
    # The same cast again and again leads to no end.
    follows = len(trace) < MOST_PARTS and not (text[:2] == "::" and trace[-1:] == (text,))
    return query._replace(trace=(*trace, text) if follows else None)


def is_heard(query: Query) -> bool:
    """Is it noted what the column is made of?  Not of an aggregate within it."""
    return query.trace is not None and not (query.is_local and query.trace[-1:] == (BREAK,))


def next_parts(query: Query) -> tuple[str, ...]:
    """The parts that may come where the expression must become a group."""
    return () if query.followed is None else tuple(sorted({one[0] for one in query.followed if one}))


def begins(part: str) -> Change:
    """Where a part that begins so may come."""

    def change(query: Query) -> Query | None:
        fits = query.followed is None or any(one.startswith(part) for one in next_parts(query))
        return query if fits else None

    return change


def heard(text: str) -> Change:
    """Something was read that tells expressions apart."""

    def change(query: Query) -> Query | None:
        return hear(query, text)

    return change


def hears(text: str) -> Change:
    """Where this part may come."""

    def change(query: Query) -> Query | None:
        return query if query.followed is None or text in next_parts(query) else None

    return change


def untraced(query: Query) -> Query | None:
    """Something was read that is not followed: the column is like no other."""
    if query.followed is not None:
        return None
    return query if query.trace is None else query._replace(trace=None)


def begin(goal: int = ALL) -> Change:
    """An expression that must end with one of some types."""

    def change(query: Query) -> Query:
        return query.pushed(Operand(query.system, goal))

    return change


def end(query: Query) -> Query | None:
    """Behind an expression."""
    found = frames.whole(query.top)
    if found is None:
        return None
    column = found.column if found.tight else None
    heard = hear(query, WHOLE if found.tight else OPERATED)
    if heard is None:
        return None
    query = heard
    ended = query.popped()._replace(value=found.type, label=found.label, column=column, alone=False)
    if found.part >= 0:
        ended = left_part(ended)
    if query.computed.is_whole:
        risky = Computed.RISKY if found.risky else query.computed
        ended = ended._replace(amount=found.digits, computed=risky)
    return ended


def push(query: Query, goal: int) -> Query | None:
    """Begin an expression, None where no type would do."""
    return query.pushed(Operand(query.system, goal)) if goal else None


def operand(name: str, label: tuple[str, int] = ("", 0), digits: int | None = None) -> Change:
    """An operand of a type was read, of the digits of a literal where they are not told."""
    most = digits_of(name) if digits is None else digits

    def change(query: Query) -> Query | None:
        return read(query, name, label, most)

    return change


def read(query: Query | None, name: str, label: tuple[str, int] = ("", 0), digits: int = UNSURE) -> Query | None:
    """The query behind an operand of a type, of so many ``digits`` if it is a constant."""
    if query is None:
        return None
    found = frames.read(query.top, name, label)
    if query.computed.is_whole and found is not None:
        found = found._replace(digits=digits)
    return None if found is None else query.with_top(found)._replace(alone=False)


def asking(query: Query | None, asks: Asks) -> Query | None:
    """The query behind an operand that is a query by itself, where that matters."""
    if query is None or not query.system.lists:
        return query
    return query.with_top(query.top._replace(asks=asks))


def some(query: Query) -> Query | None:
    """Behind ANY."""
    return asking(query, Asks.ROWS)


def at_operand(query: Query) -> Query | None:
    """Where an operand begins that is no literal."""
    return query._replace(alone=False) if frames.at_operand(query.top) else None


def open_operand(query: Query) -> Query | None:
    """Where an operand begins that is no literal, as a term alone or not."""
    return query if frames.at_operand(query.top) else None


def open_column(query: Query) -> Query | None:
    """Where a column begins, as a term alone or not."""
    return query if frames.at_column(query.top) else None


def at_column(query: Query) -> Query | None:
    """Where a column begins."""
    return query._replace(alone=False) if frames.at_column(query.top) else None


def fitting(name: str) -> Change:
    """Where a literal of a type may stand."""

    def change(query: Query) -> Query | None:
        if query.alone or (query.no_null and name == ANY_NULL):
            return None
        return query if frames.fits(query.top, name) else None

    return change


def without_null(query: Query, name: str) -> Query:
    """The query where the arguments of a function begin; no NULL may be written there that would change its type."""
    if query.no_null or name not in query.system.null_matters:
        return query
    return query._replace(no_null=1 + len(query.around))


def allows_null(query: Query) -> Query:
    """Behind the arguments of a function."""
    return query._replace(no_null=0) if query.no_null and query.no_null == 1 + len(query.around) else query


def operator(name: str) -> Change:
    """A binary operator."""

    def change(query: Query) -> Query | None:
        # There a constant text beside a number may be none.
        applied = "compare" if name == "equal" and query.computed is Computed.PART else name
        found = frames.operated(query.top, applied)
        if found is None:
            return None
        after = behind_operator(query.with_top(found))
        if name in _PARTS:
            after = begin_part(after)
        return hear(after, "distinct from" if name == "is" else name)

    return change


def quantified(query: Query) -> Query | None:
    """A comparison with ANY or ALL that the engine reads as a query.

    In an aggregate, columns would be around it, and in a lambda no query may stand.
    """
    return None if query.is_local or frames.parameters(query.around) else operator("quantified")(query)


def sign(text: str) -> Change:
    """A sign before an operand."""

    def change(query: Query) -> Query | None:
        found = None if query.alone else frames.signed(query.top, text)
        if found is None:
            return None
        after = query.with_top(found)
        return hear(begin_part(after) if text == "-" else after, "sign" + text)

    return change


def negation(query: Query) -> Query | None:
    """NOT."""
    found = frames.negated(query.top)
    return None if found is None else hear(query.with_top(found)._replace(alone=False), "not")


def conjunction(query: Query) -> Query | None:
    """AND between conditions."""
    return None if frames.is_between(query.top) else operator("and")(query)


def pattern_ends(query: Query) -> Query | None:
    """Where a pattern may be whole."""
    return None if frames.escaped(query.top) is None else query


def second_bound(query: Query) -> Query | None:
    """AND between the bounds of BETWEEN."""
    found = frames.between_done(query.top)
    return None if found is None else hear(query.with_top(found), "second bound")


def null_test(query: Query) -> Query | None:
    """IS NULL and the like, of any type."""
    found = frames.before_test(query.top, "is", ALL)
    return None if found is None else hear(query.with_top(frames.as_condition(found, "is")), "is")


def truth_test(query: Query) -> Query | None:
    """IS TRUE and the like."""
    found = frames.before_test(query.top, "is", CONDITION)
    return None if found is None else hear(query.with_top(frames.as_condition(found, "is")), "is")


def cast(query: Query, target: str, written: str) -> Query | None:
    """The query behind a cast."""
    return hear(query.with_top(frames.cast(query.top, target)), "::" + written)


def castable(query: Query) -> Query | None:
    """Where a cast may follow."""
    return begins("::")(query) if frames.may_cast(query.top) else None


def subscript(query: Query) -> Query | None:
    """Before the bracket of an element's number."""
    top = query.top
    return hear(query, "[") if top.indexed and (top.type[:1] == "_" or _is_list_of_letters(query)) else None


def _is_list_of_letters(query: Query) -> bool:
    """Is a text read that has subscripts as a list has?"""
    return query.system.lists and query.top.type == "text"


def end_subscript(query: Query) -> Query | None:
    """Behind it."""
    top = query.top
    heard, kind = hear(query, "[]"), top.type.removeprefix("_")
    return (
        None
        if heard is None
        else heard.with_top(
            top._replace(type=kind, column=None, bound=False, indexed=kind in NESTED, asks=Asks.NOTHING)
        )
    )


def end_slice(query: Query) -> Query | None:
    """Behind the numbers of the elements that are taken: of a list there is a list."""
    heard = hear(query, "[:]")
    if heard is None:
        return None
    return heard.with_top(query.top._replace(column=None, bound=False, indexed=False, asks=Asks.NOTHING))
