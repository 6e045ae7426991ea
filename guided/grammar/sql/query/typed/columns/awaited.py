"""As which types a column is read whose FROM, which will tell the type, is still to come."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache

from guided.grammar.sql.query.typed import frames
from guided.grammar.sql.query.typed.columns.read import Readings
from guided.grammar.sql.query.typed.frames import CONDITION
from guided.grammar.sql.query.typed.scope import Query, is_open, queries_in_scope
from guided.grammar.sql.query.typed.system import TypeSystem
from guided.grammar.sql.query.typed.types import BIT, SORTABLE
from guided.grammar.sql.query.typed.undecided import ANY, is_undecided, members_of, narrower, stands_for, undecided

__all__ = ["MOST_TRIED", "guesses", "read_as", "settled_before"]

_GUESSES = (5, 2, 1)
"""How many types are tried, besides any, for the first column of a query that only a sub-query behind will define, for
the second and the third; for each of the others only one is.  A reading for each of their combinations is followed:
with three for every column six of them make 7,776, and 53 seconds for an end."""
MOST_TRIED = _GUESSES[0] + 1
"""The most types that are tried for one column."""


def settled_before(query: Query, qualifier: str | None, name: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """The type of a column that was used before, if it is still to come.

    Where it is not decided and does not fit here, those that it may be are tried: what was read is right for each.
    """
    for at in queries_in_scope(query):
        if is_open(at):
            settled = ""
            for pending in at.pending:
                if pending.qualifier == qualifier and pending.column == name:
                    settled = narrower(pending.type, settled)
            members = members_of(query.system, settled) if is_undecided(settled) else ()
            if members and not _may_wait(settled, members, frames.hopes(query.top), _goals(query)):
                kinds = (*known, *_likely(query), *members)
                return tuple(kind for kind in kinds if settled != kind and stands_for(query.system, settled, kind))[:3]
            if settled:
                return (settled,)
    return ()


def read_as(query: Query) -> Readings:
    """What columns are read as that FROM will bind, where that is not their type: undecided where that leads on.

    So a sub-query behind may give a table's name to another column, such as a sum; and columns of one name in several
    tables, whole numbers of different sizes, are read once.
    """
    return _readings(query.system, frames.hopes(query.top), _goals(query))


@lru_cache(maxsize=8192)
def _readings(system: TypeSystem, hopes: int, goals: frozenset[int]) -> Readings:
    wider = ((kind, undecided(system, kind)) for kind in system.types)
    return frozenset((kind, one) for kind, one in wider if one != kind and _may_wait(one, (kind,), hopes, goals))


def _goals(query: Query) -> frozenset[int]:
    """What each of the expressions may be that are being read."""
    return frozenset(
        [frames.goal_of(frame) for frame in (*query.around, query.frame) if isinstance(frame, frames.Operand)]
    )


def _may_wait(wider: str, members: Iterable[str], hopes: int, goals: frozenset[int]) -> bool:
    """May a column be read as of a type that is not decided, rather than as of one of its members?"""
    if wider == ANY or not hopes & BIT[wider]:
        return bool(hopes & BIT[wider])
    # An expression around that wants the very type, as an element of an array, gets it.
    wanted = sum(BIT[member] for member in members)
    return all(goal & BIT[wider] or not goal & wanted for goal in goals)


def guesses(known: Collection[str], query: Query) -> tuple[str, ...]:
    """The types to try for a column that no table has: the fewer, the more such there are."""
    guessed = {
        (pending.qualifier, pending.column)
        for at in queries_in_scope(query)
        for pending in at.pending
        if pending.type and (pending.qualifier is not None or pending.column not in known)
    }
    likely = _likely(query)
    if len(guessed) < len(_GUESSES):
        return (*likely[: _GUESSES[len(guessed)]], ANY)
    return (ANY,) if _is_sorted_or_counted(query) else tuple(likely[:1])


def _is_sorted_or_counted(query: Query) -> bool:
    """Is a column read where it does not matter what it is?"""
    if not frames.goal_of(query.top) & BIT[ANY] or query.top.waits:
        return False
    call = query.around[-1] if query.around else None
    sorted_ = query.around_term is not None and query.top.goal == SORTABLE
    return sorted_ or (isinstance(call, frames.Calling) and call.name == "count")


def _likely(query: Query) -> list[str]:
    """What a column may be that only a sub-query behind will define: first what fits here as it is."""
    goal, hopes = frames.goal_of(query.top) & ~CONDITION, frames.hopes(query.top)
    types: dict[str, None] = {}
    for name in query.system.forward_types:
        # A whole number fits behind a date and a plus, where no number does that may be another.
        fits = (one for one in (name, *members_of(query.system, name)) if goal & BIT[one])
        types[next(fits, name)] = None
    types.update(dict.fromkeys(query.system.forward_types))
    return sorted(types, key=lambda name: (not goal & BIT[name], not hopes & BIT[name]))
