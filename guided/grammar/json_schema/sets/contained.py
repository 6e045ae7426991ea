"""Alternatives of a union that say nothing new: objects all of whose texts are texts of another alternative."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeAlias

from guided.grammar.json_schema.sets.shape import Need, ObjectShape

__all__ = ["without_contained"]

FEW = 4
"""Objects from which on they are compared: fewer cost little, and seldom is one of them contained."""

_Needs: TypeAlias = "tuple[Need | None, ...]"
"""Of the declared members in their order, then of each class of other names; None where there can be no such member."""


def without_contained(things: list[ObjectShape], alive: Collection[Need]) -> list[ObjectShape]:
    """The living objects of a union but for those that another contains, as far as names and needs tell.

    Where conditions are multiplied out, hundreds of alternatives are mostly one of a few with less in it: the same
    needs, but for members that cannot be there.  Some 5 us each.
    """
    if len(things) < FEW:
        return things
    pairs = [(_needs(thing, alive), thing) for thing in things]
    # What contains another has as many members that can be there, and as few that must.
    pairs.sort(key=lambda pair: (pair[0].count(None), len(pair[1].required)))
    kept: dict[object, list[tuple[_Needs, ObjectShape]]] = {}
    left = set()
    for needs, thing in pairs:
        alike = kept.setdefault((*thing.declared, *[names for names, _ in thing.classes]), [])
        if not any(_contains(other, those, thing, needs) for those, other in alike):
            alike.append((needs, thing))
            left.add(thing)
    return [thing for thing in things if thing in left]


def _needs(thing: ObjectShape, alive: Collection[Need]) -> _Needs:
    needs = [*thing.declared.values(), *[need for _, need in thing.classes]]
    return tuple([need if need in alive else None for need in needs])


def _contains(one: ObjectShape, has: _Needs, other: ObjectShape, asks: _Needs) -> bool:
    """Is every text of an object one of another with the same names in the same order?"""
    if (
        one.some
        or other.some
        or one.clauses
        or other.clauses
        or not one.required <= other.required
        or one.low > other.low
    ):
        return False
    if one.high is not None and (other.high is None or other.high > one.high):
        return False
    return all(need is None or need == having for need, having in zip(asks, has, strict=True))
