"""A quick look at whether two shapes exclude each other: by type, and for objects by a member that tells them apart.

For unions of hundreds of branches with a discriminator; what this cannot tell is worked out by intersection.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from guided.errors import GuidedError
from guided.grammar.json_schema.numbers.ranges import NumberRange
from guided.grammar.json_schema.sets.shape import Atom, Constant, Need, ObjectShape, Shape
from guided.grammar.json_schema.sets.strings import StringSet
from guided.grammar.json_schema.sets.values import freeze

MAX_PAIRS = 64
"""Pairs of alternatives that are looked at before the question is left open."""


def surely_disjoint(a: Shape, b: Shape) -> bool:
    """Do the shapes share no value, as far as a quick look tells?"""
    if (a.null and b.null) or (a.true and b.true) or (a.false and b.false):
        return False
    if (a.numbers and b.numbers) or (a.strings and b.strings):
        if not _few(a.numbers, b.numbers) or not _few(a.strings, b.strings):
            return False
        if not all(_side_by_side(one, other) for one in a.numbers for other in b.numbers):
            return False
        if not all(_differ(one, other) for one in a.strings for other in b.strings):
            return False
    if a.arrays and b.arrays:
        return False
    if len(a.objects) * len(b.objects) > MAX_PAIRS:
        return False
    return all(_told_apart(one, other) for one in a.objects for other in b.objects)


def _few(a: tuple[object, ...], b: tuple[object, ...]) -> bool:
    return len(a) * len(b) <= MAX_PAIRS


def _side_by_side(a: NumberRange, b: NumberRange) -> bool:
    """Does one end before the other begins?"""
    return (a.high is not None and b.low is not None and a.high < b.low) or (
        b.high is not None and a.low is not None and b.high < a.low
    )


def _differ(a: StringSet, b: StringSet) -> bool:
    """Are these other words, or other lengths?"""
    if a.words is not None and b.words is not None:
        return a.words.isdisjoint(b.words)
    if a.words is not None or b.words is not None:
        return False
    return (a.high is not None and a.high < b.low) or (b.high is not None and b.high < a.low)


def _told_apart(a: ObjectShape, b: ObjectShape) -> bool:
    """Is there a member of both whose values are listed, differently?"""
    if len(b.required) < len(a.required):
        a, b = b, a
    for name in a.required:
        if name in b.required:
            left, right = listed_values(a.declared[name]), listed_values(b.declared[name])
            if left is not None and right is not None and left.isdisjoint(right):
                return True
    return False


@lru_cache(maxsize=16384)
def listed_values(need: Need) -> frozenset[Any] | None:
    """A finite set of scalars that holds all values of the need, if one is listed outright."""
    for atom in need:
        found = _listed(atom)
        if found is not None:
            return found
    return None


def _listed(atom: Atom) -> frozenset[Any] | None:
    if isinstance(atom, Constant):
        values = [atom.value]
    elif isinstance(schema := getattr(atom, "schema", None), dict) and "$ref" not in schema:
        found = schema.get("enum")
        if "const" in schema and atom.resource.dialect.order >= 6:  # type: ignore[union-attr]
            found = [schema["const"]]
        if not isinstance(found, list):
            return None
        try:
            values = [freeze(value, atom.pointer) for value in found]
        except GuidedError:
            return None
    else:
        return None
    return frozenset(values) if all(kind in ("literal", "string", "number") for kind, _ in values) else None
