"""Expressions of one type: CASE, COALESCE, IN, ANY and ARRAY."""

from __future__ import annotations

from functools import lru_cache
from itertools import product

from guided.grammar.sql.query.typed import frames
from guided.grammar.sql.query.typed.changes import Change, asking, at_operand, end, hear, push, read, untraced
from guided.grammar.sql.query.typed.computed.contexts import begin_part, leading
from guided.grammar.sql.query.typed.frames import CONDITION, Alternatives, Asks
from guided.grammar.sql.query.typed.resolution import operator_of
from guided.grammar.sql.query.typed.scope import Query
from guided.grammar.sql.query.typed.system import TypeSystem
from guided.grammar.sql.query.typed.types import ALL, BIT, SORTABLE, bits_of, common, is_literal, settled
from guided.grammar.sql.query.typed.undecided import is_undecided, joined, members_of

__all__ = [
    "alternative", "begin_alternatives", "begin_any", "begin_element", "begin_list", "begin_nullif",
    "begin_subject", "begin_when", "compared", "compared_with", "end_alternative", "end_alternatives", "end_any",
    "end_array", "end_element", "end_list", "end_nullif", "end_subject", "negated_list", "wants_element",
]  # fmt: skip


def begin_alternatives(label: str) -> Change:
    """Before the first of expressions of one type."""

    def change(query: Query) -> Query | None:
        found = at_operand(query)
        return None if found is None else hear(found.pushed(Alternatives()), label)

    return change


def alternative(among: int = ALL, *, listed: bool = False) -> Change:
    """Before one of them, which is their value or, ``listed``, an element of it."""

    def change(query: Query) -> Query | None:
        frame = query.frame
        goal = alike(query.system, frame.type, among)
        if query.computed and not listed and goal:
            return query.pushed(leading(query.popped(), goal))
        return push(query, goal)

    return change


@lru_cache(maxsize=4096)
def alike(system: TypeSystem, name: str, among: int) -> int:
    """The types that have a common type with one."""
    if not name:
        return among
    found = 0
    for other, bit in bits_of(system):
        shared = common(system, name, other)
        if among & bit and shared is not None and among & BIT[shared]:
            found |= bit
    return found


def end_alternative(query: Query) -> Query | None:
    """Behind one of them."""
    ended = end(query)
    if ended is None:
        return None
    frame = ended.frame
    shared = common(query.system, frame.type, ended.value) if frame.type else ended.value
    return None if shared is None else ended.with_top(frame._replace(type=shared))


def end_alternatives(label: str) -> Change:
    """Behind the last of them: they are an operand of their common type."""

    def change(query: Query) -> Query | None:
        frame = query.frame
        name = label if label != "case" or query.label[1] < 2 else query.label[0]
        below = hear(query.popped(), label)
        return read(below, settled(query.system, frame.type), (name, 2 if label != "case" else 1))

    return change


def end_array(query: Query) -> Query | None:
    """Behind ARRAY[...]."""
    name = "_" + settled(query.system, query.frame.type)
    below = hear(query.popped(), "array")
    return read(below, name, ("array", 2)) if name in BIT else None


def begin_subject(query: Query) -> Query | None:
    """The operand of CASE, with which values are compared."""
    found = push(query, SORTABLE)
    return found and begin_part(found)


def end_subject(query: Query) -> Query | None:
    """Behind it."""
    ended = end(query)
    if ended is None:
        return None
    subject = settled(query.system, ended.value)
    if not frames.rights(query.system, "compare", subject, CONDITION):
        return None
    return ended.with_top(ended.frame._replace(subject=subject))


def begin_when(query: Query) -> Query | None:
    """Behind WHEN."""
    subject = query.frame.subject
    heard = hear(query, "when")
    goal = frames.rights(query.system, "compare", subject, CONDITION) if subject else CONDITION
    found = heard and push(heard, goal)
    return found and begin_part(found)


def begin_nullif(query: Query) -> Query | None:
    """Before the second argument of NULLIF, which is a CASE; the first, whose type it has, is no literal."""
    ended = end(query)
    if ended is None or is_literal(ended.value):
        return None
    frame = ended.frame._replace(type=ended.value)
    found = push(ended.with_top(frame), frames.rights(query.system, "compare", ended.value, CONDITION))
    return found and begin_part(found)


def end_nullif(query: Query) -> Query | None:
    """Behind the second: the first is what the comparison makes of it."""
    ended = end(query)
    if ended is None:
        return None
    frame = ended.frame
    kind = _compared_as(query.system, frame.type, ended.value)
    return None if kind is None else ended.with_top(frame._replace(type=kind))


@lru_cache(maxsize=4096)
def _compared_as(system: TypeSystem, left: str, right: str) -> str | None:
    """The type of the left side of a comparison; where the engine takes the cheapest it is as it was."""
    if system.cheapest:
        return left
    if is_undecided(left) or is_undecided(right):
        pairs = product(members_of(system, left), members_of(system, right))
        return joined(system, (_compared_as(system, *pair) for pair in pairs))
    found = operator_of(system, system.operators["compare"], left, right, compares=True)
    if found is None or found.parameters[0].startswith("any"):
        return left
    return found.parameters[0]


def begin_list(query: Query) -> Query | None:
    """Behind IN."""
    found = frames.before_test(query.top, "in", SORTABLE)
    if found is None or not frames.rights(query.system, "compare", found.type, CONDITION):
        return None
    return hear(query.with_top(found).pushed(Alternatives(subject=found.type)), "in")


def negated_list(query: Query) -> Query | None:
    """Behind NOT of NOT IN."""
    heard = hear(query, "not")
    return heard.with_top(heard.frame._replace(negated=True)) if heard and query.system.lists else heard


def begin_element(query: Query) -> Query | None:
    """Before an element of the list."""
    return push(query, frames.rights(query.system, "compare", query.frame.subject, CONDITION))


def end_element(query: Query) -> Query | None:
    """Behind it."""
    whole, ended = frames.whole(query.top), end(query)
    if whole is None or ended is None or not query.system.lists:
        return ended
    frame = ended.frame
    return ended.with_top(frame._replace(lone=whole.asks if frame.lone is None else Asks.NOTHING))


def wants_element(query: Query) -> bool:
    """Must another element follow, since the only one would be read as the query of IN?"""
    return query.frame.lone is Asks.ROWS


def end_list(query: Query) -> Query | None:
    """Behind the list."""
    return None if wants_element(query) else listed(query, query.frame.lone or Asks.NOTHING)


def listed(query: Query, lone: Asks) -> Query | None:
    """The condition that IN is with its list or query."""
    negated = query.frame.negated
    below = hear(query.popped(), "]")
    condition = below and below.with_top(frames.as_condition(below.top, "in"))
    return asking(condition, Asks.ROWS) if lone and not negated else condition


def begin_any(query: Query) -> Query | None:
    """Behind ANY ( as the right operand of a comparison: an array of what it may be compared with."""
    items = compared_with(query)
    goal = _arrays_of(items)
    if items & BIT["text"] and not query.system.lists:
        goal |= BIT["'array"]
    begun = untraced(query)
    pushed = begun and push(begun, goal)
    # In brackets of its own a query would be read as that of ANY, whose values are compared one by one.
    return pushed and pushed.with_top(pushed.top._replace(no_query=True))


@lru_cache(maxsize=4096)
def _arrays_of(items: int) -> int:
    """Arrays of some types."""
    return sum(bit for name, bit in BIT.items() if name[0] == "_" and items & BIT[name[1:]])


def compared_with(query: Query) -> int:
    """The types of what the comparison whose right operand comes may be compared with, one by one."""
    top = query.top
    if top.type or not top.waits or top.waits[-1].operator not in ("compare", "equal", "quantified", "like"):
        return 0
    wait = top.waits[-1]
    # LIKE has patterns.
    return (
        wait.goal
        if wait.operator == "like"
        else wait.goal & frames.rights(query.system, "compare", wait.left, CONDITION)
    )


def end_any(query: Query) -> Query | None:
    """Behind the array."""
    ended = end(query)
    return None if ended is None else compared(ended)


def compared(query: Query) -> Query:
    """The comparison is whole."""
    top = query.top
    *rest, wait = top.waits
    found = frames.as_condition(top._replace(waits=tuple(rest)), wait.operator)._replace(asks=top.asks)
    return query.with_top(found._replace(tightest=frames.QUANTIFIED) if wait.operator == "quantified" else found)
