"""Types that are not decided yet: of a column that SELECT uses before FROM tells its type, known to be one of some.

What is done with such a column must be right for each of its types, and gives a type that is decided or not.  So one
reading of the text stands for all of them, where a reading for each would make masks slow.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from guided.grammar.sql.query.typed.system import TypeSystem

__all__ = ["ANY", "UNDECIDED", "example", "is_undecided", "joined", "members_of", "narrower", "stands_for", "undecided"]

_WHOLE = ("int4", "int2", "int8", "int16")
_DECIMALS = ("numeric", "numeric2", "numeric3", "numeric4")
_FLOATS = ("float8", "float4")
_OTHERS = "text varchar bpchar bool date time timetz timestamp timestamptz interval jsonb uuid bytea"
ANY = "?any"
"""Any type that has an order."""
UNDECIDED: dict[str, tuple[str, ...]] = {
    "?stamp": ("timestamp", "timestamptz"),
    "?string": ("text", "varchar", "bpchar"),
    "?float": _FLOATS,
    # Each product of decimals needs one more of those that are told by their digits.
    **{f"?exact{more}": (*_WHOLE, *_DECIMALS[:more]) for more in (1, 2, 3, 4)},
    **{f"?number{more}": (*_WHOLE, *_DECIMALS[:more], *_FLOATS) for more in (1, 2, 3, 4)},
    ANY: (*_WHOLE, *_DECIMALS, *_FLOATS, *_OTHERS.split()),
}
"""What each may be, of all engines: that which a short text writes first.  A set comes before those that hold it."""


def is_undecided(name: str) -> bool:
    """Is it one of them?"""
    return name in UNDECIDED


@cache
def members_of(system: TypeSystem, name: str) -> tuple[str, ...]:
    """The types that one may be, by the engine; of a type that is decided itself."""
    if name not in UNDECIDED:
        return (name,)
    return tuple(member for member in UNDECIDED[name] if member in system.types)


def joined(system: TypeSystem, found: Iterable[str | None]) -> str | None:
    """The type of what is one of some, the fewest that hold them; None where there is none, or one of them is none."""
    members: set[str] = set()
    for one in found:
        if one is None:
            return None
        members.update(members_of(system, one))
    if len(members) == 1:
        return members.pop()
    return next((name for name in UNDECIDED if members <= set(members_of(system, name))), None)


@cache
def undecided(system: TypeSystem, name: str) -> str:
    """The first but `ANY` that holds a type, where the engine has more of it; the type itself where there is none."""
    held = (wider for wider in UNDECIDED if wider != ANY and name in members_of(system, wider))
    return next((wider for wider in held if len(members_of(system, wider)) > 1), name)


@cache
def stands_for(system: TypeSystem, wanted: str, given: str) -> bool:
    """Is a column of a type what was awaited?  The empty type awaits any."""
    if wanted in ("", given):
        return True
    return wanted in UNDECIDED and set(members_of(system, given)) <= set(members_of(system, wanted))


def narrower(one: str, other: str) -> str:
    """Of two types that a column is awaited as, one of which holds the other, the one that is held."""
    if not one or not other:
        return one or other
    return min(one, other, key=lambda name: len(UNDECIDED.get(name, (name,))))


@cache
def example(system: TypeSystem, name: str) -> str:
    """A type that one may be."""
    return members_of(system, name)[0]
