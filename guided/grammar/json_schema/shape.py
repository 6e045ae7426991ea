"""The normal form: what one schema allows, type by type, as a union of simple conjunctions per type.

A `Shape` is closed under intersection and union (and, where `guided.grammar.json_schema.negation` says so, under
complement).  It says everything about the value itself and nothing yet about the values inside it: those are named by
a `Need`, a conjunction of atoms that is expanded only when it is reached, which is how recursive schemas stay finite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, TypeAlias

from guided.errors import LimitError
from guided.grammar.json_schema import numbers, strings
from guided.grammar.json_schema.document import Located
from guided.grammar.json_schema.numbers import ANY_NUMBER, NumberRange
from guided.grammar.json_schema.strings import ANY_STRING, CONTENT, StringSet, canonical
from guided.grammar.regular.derivative import inhabited, matches
from guided.grammar.regular.expr import Expr, intersection

MAX_ALTERNATIVES = 4096
"""Alternatives of one type in one union; products of many anyOf under one allOf grow beyond it."""


@dataclass(frozen=True, slots=True)
class Constant:
    """The atom of exactly one JSON value; ``value`` is hashable (see `guided.grammar.json_schema.values`)."""

    value: Any
    pointer: str


@dataclass(frozen=True, slots=True)
class Not:
    """The atom of every value that the need inside does not allow."""

    need: Need
    pointer: str


Atom: TypeAlias = "Located | Constant | Not"
Need: TypeAlias = "frozenset[Atom]"

TRUE: Need = frozenset()
"""Any value."""
FALSE: Need = frozenset((Located(False, "", None),))  # type: ignore[arg-type]
"""No value."""


@dataclass(frozen=True, slots=True, eq=False)
class ArrayShape:
    """Arrays of ``low`` to ``high`` items: each of ``prefix`` in turn, then any number of ``rest``."""

    prefix: tuple[Need, ...] = ()
    rest: Need = TRUE
    low: int = 0
    high: int | None = None

    def item(self, index: int) -> Need:
        """What the item at an index must be."""
        return self.prefix[index] if index < len(self.prefix) else self.rest


@dataclass(frozen=True, slots=True, eq=False)
class ObjectShape:
    """Objects with ``low`` to ``high`` members, all of ``required`` among them.

    ``declared`` says what the member of that name must be.  Every other name is in exactly one of the disjoint
    languages in ``classes`` (over the inside of a JSON string; together they are all strings), each with its need.
    ``declared`` keeps the order of the schema; ``required`` names are always declared.
    """

    declared: Mapping[str, Need]
    classes: tuple[tuple[Expr, Need], ...] = ((CONTENT, TRUE),)
    required: frozenset[str] = frozenset()
    low: int = 0
    high: int | None = None

    def member(self, name: str) -> Need:
        """What the member of a name must be."""
        found = self.declared.get(name)
        return class_need(self.classes, name) if found is None else found


def class_need(classes: tuple[tuple[Expr, Need], ...], name: str) -> Need:
    """The need of the one class that holds an undeclared name."""
    if len(classes) == 1:
        return classes[0][1]
    text = canonical(name)
    for language, need in classes:
        if matches(language, text):
            return need
    return FALSE


ANY_ARRAY = ArrayShape()
ANY_OBJECT = ObjectShape({})


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """A set of JSON values: the union over all types of what each field allows."""

    null: bool = False
    true: bool = False
    false: bool = False
    numbers: tuple[NumberRange, ...] = ()
    strings: tuple[StringSet, ...] = ()
    arrays: tuple[ArrayShape, ...] = ()
    objects: tuple[ObjectShape, ...] = ()

    def is_empty(self) -> bool:
        """No alternative at all?  (The needs inside the alternatives may still be empty.)"""
        return not (self.null or self.true or self.false or self.numbers or self.strings or self.arrays or self.objects)

    def has_scalar(self) -> bool:
        """Is there surely a value, whatever the needs inside?"""
        return bool(self.null or self.true or self.false or self.numbers or self.strings)


NOTHING = Shape()
ANYTHING = Shape(True, True, True, (ANY_NUMBER,), (ANY_STRING,), (ANY_ARRAY,), (ANY_OBJECT,))


def intersect(a: Shape, b: Shape, pointer: str) -> Shape:
    """The values in both; `LimitError` when the product of alternatives grows too large."""
    if a is ANYTHING:
        return b
    if b is ANYTHING:
        return a
    return Shape(
        a.null and b.null,
        a.true and b.true,
        a.false and b.false,
        _product(a.numbers, b.numbers, numbers.intersect, ANY_NUMBER, pointer),
        _product(a.strings, b.strings, strings.intersect, ANY_STRING, pointer),
        _product(a.arrays, b.arrays, intersect_arrays, ANY_ARRAY, pointer),
        _product(a.objects, b.objects, intersect_objects, ANY_OBJECT, pointer),
    )


def _product(
    left: tuple[Any, ...], right: tuple[Any, ...], both: Callable[[Any, Any], Any], top: Any, pointer: str
) -> tuple[Any, ...]:
    if not left or not right:
        return ()
    if len(left) == 1 and left[0] is top:
        return right
    if len(right) == 1 and right[0] is top:
        return left
    if len(left) * len(right) > MAX_ALTERNATIVES:
        raise LimitError(
            f"the combination of alternatives has more than {MAX_ALTERNATIVES} cases",
            where=pointer,
            remedy="Write the combined alternatives out, or use fewer anyOf or oneOf under one schema.",
        )
    found = (both(x, y) for x, y in product(left, right))
    return tuple(dict.fromkeys(item for item in found if item is not None))


def unite(shapes: Iterable[Shape]) -> Shape:
    """The values in any of the shapes."""
    shapes = list(shapes)
    if len(shapes) == 1:
        return shapes[0]
    return Shape(
        any(shape.null for shape in shapes),
        any(shape.true for shape in shapes),
        any(shape.false for shape in shapes),
        _union([shape.numbers for shape in shapes], ANY_NUMBER),
        _union_strings([shape.strings for shape in shapes]),
        _union([shape.arrays for shape in shapes], ANY_ARRAY),
        _union([shape.objects for shape in shapes], ANY_OBJECT),
    )


def _union(parts: list[tuple[Any, ...]], top: Any) -> tuple[Any, ...]:
    found = dict.fromkeys(item for part in parts for item in part)
    return (top,) if top in found else tuple(found)


def _union_strings(parts: list[tuple[StringSet, ...]]) -> tuple[StringSet, ...]:
    found = _union(parts, ANY_STRING)
    finite = [item for item in found if item.words is not None]
    if len(finite) < 2:
        return found
    joined = StringSet(frozenset().union(*(item.words for item in finite)))
    return (joined, *(item for item in found if item.words is None))


def intersect_arrays(a: ArrayShape, b: ArrayShape) -> ArrayShape | None:
    """The arrays in both, or None when the lengths alone exclude each other."""
    if a is b or b is ANY_ARRAY:
        return a
    if a is ANY_ARRAY:
        return b
    low = max(a.low, b.low)
    high = a.high if b.high is None else b.high if a.high is None else min(a.high, b.high)
    if high is not None and high < low:
        return None
    size = max(len(a.prefix), len(b.prefix))
    return ArrayShape(tuple(a.item(i) | b.item(i) for i in range(size)), a.rest | b.rest, low, high)


def intersect_objects(a: ObjectShape, b: ObjectShape) -> ObjectShape | None:
    """The objects in both, or None when the counts alone exclude each other."""
    if a is b or b is ANY_OBJECT:
        return a
    if a is ANY_OBJECT:
        return b
    low = max(a.low, b.low)
    high = a.high if b.high is None else b.high if a.high is None else min(a.high, b.high)
    required = a.required | b.required
    if high is not None and high < max(low, len(required)):
        return None
    declared = {name: need | b.member(name) for name, need in a.declared.items()}
    for name, need in b.declared.items():
        if name not in declared:
            declared[name] = class_need(a.classes, name) | need
    return ObjectShape(declared, intersect_classes(a.classes, b.classes), required, low, high)


Classes: TypeAlias = "tuple[tuple[Expr, Need], ...]"


def intersect_classes(a: Classes, b: Classes) -> Classes:
    """The common refinement of two partitions of all names."""
    if len(b) == 1:
        extra = b[0][1]
        return a if not extra else tuple((language, need | extra) for language, need in a)
    if len(a) == 1:
        return intersect_classes(b, a)
    cells = []
    for (left, left_need), (right, right_need) in product(a, b):
        both = intersection((left, right))
        if inhabited(both):
            cells.append((both, left_need | right_need))
    return tuple(cells)
