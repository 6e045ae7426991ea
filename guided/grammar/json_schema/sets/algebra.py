"""Intersection and union of shapes: ``allOf``, ``anyOf`` and everything that stands side by side in one schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product
from typing import Any, TypeVar

from guided.grammar.json_schema import refusals
from guided.grammar.json_schema.numbers import ranges as numbers
from guided.grammar.json_schema.numbers.ranges import ANY_NUMBER
from guided.grammar.json_schema.sets import strings
from guided.grammar.json_schema.sets.shape import (
    ANY_ARRAY,
    ANY_OBJECT,
    ANYTHING,
    TRUE,
    ArrayShape,
    Classes,
    Constant,
    Count,
    Need,
    ObjectShape,
    Shape,
    class_need,
    is_false,
    negate,
)
from guided.grammar.json_schema.sets.strings import ANY_STRING, StringSet
from guided.grammar.regular.derivative import inhabited
from guided.grammar.regular.expr import alternation, intersection
from guided.grammar.regular.texts import holds_word

MAX_ALTERNATIVES = 4096
"""Alternatives of one type in one union; products of many anyOf under one allOf grow beyond it."""
MAX_SCALARS = 1 << 16
"""The same for numbers and strings, which are quickly combined."""

MAX_PATTERNS = 2
"""String languages that stay apart in a union, where engines recognise simple ones; more are one language."""

Part = TypeVar("Part")


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
        _union_of_strings([_product(a.strings, b.strings, strings.intersect, ANY_STRING, pointer)]),
        _product_of_many(a.arrays, b.arrays, intersect_arrays, ANY_ARRAY, pointer),
        _product_of_many(a.objects, b.objects, intersect_objects, ANY_OBJECT, pointer),
    )


def _product(
    left: tuple[Part, ...], right: tuple[Part, ...], both: Callable[[Part, Part], Part | None], top: Part, pointer: str
) -> tuple[Part, ...]:
    if not left or not right:
        return ()

    def many(x: Part, y: Part) -> list[Part]:
        found = both(x, y)
        return [] if found is None else [found]

    return _product_of_many(left, right, many, top, pointer, MAX_SCALARS)


def _product_of_many(
    left: tuple[Part, ...],
    right: tuple[Part, ...],
    both: Callable[[Part, Part], list[Part]],
    top: Part,
    pointer: str,
    limit: int = MAX_ALTERNATIVES,
) -> tuple[Part, ...]:
    if not left or not right:
        return ()
    if len(left) == 1 and left[0] is top:
        return right
    if len(right) == 1 and right[0] is top:
        return left
    check_alternatives(len(left) * len(right), pointer, limit)
    found = dict.fromkeys(item for x, y in product(left, right) for item in both(x, y))
    return (top,) if top in found else tuple(found)


def check_alternatives(count: int, pointer: str, limit: int = MAX_ALTERNATIVES) -> None:
    """`LimitError` when there are too many alternatives."""
    if count > limit:
        raise refusals.ALTERNATIVES.at(pointer, limit=limit)


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
        _union_of_strings([shape.strings for shape in shapes]),
        _union([shape.arrays for shape in shapes], ANY_ARRAY),
        _union([shape.objects for shape in shapes], ANY_OBJECT),
    )


def _union(parts: list[tuple[Part, ...]], top: Part) -> tuple[Part, ...]:
    found = dict.fromkeys(item for part in parts for item in part)
    return (top,) if top in found else tuple(found)


def _union_of_strings(parts: list[tuple[StringSet, ...]]) -> tuple[StringSet, ...]:
    """One set for all words, and one for all patterns if they are many: languages need no case distinction."""
    found = _union(parts, ANY_STRING)
    if len(found) < 2:
        return found
    finite = [item.words for item in found if item.words is not None]
    exact = [item.regex is None and item.host is None and item.hostname is None for item in found]
    others = [item for item, one in zip(found, exact, strict=True) if one and item.words is None]
    if len(others) > MAX_PATTERNS:
        others = [StringSet(None, alternation([item.content() for item in others]))]
    return (
        *([StringSet(frozenset().union(*finite))] if finite else ()),
        *others,
        *(item for item, one in zip(found, exact, strict=True) if not one),
    )


def intersect_arrays(a: ArrayShape, b: ArrayShape) -> list[ArrayShape]:
    """The arrays in both, as a union; none when the lengths alone exclude each other."""
    if a is b or b is ANY_ARRAY:
        return [a]
    if a is ANY_ARRAY:
        return [b]
    low = max(a.low, b.low)
    high = a.high if b.high is None else b.high if a.high is None else min(a.high, b.high)
    if high is not None and high < low:
        return []
    size = max(len(a.prefix), len(b.prefix))
    prefix = tuple(a.item(i) | b.item(i) for i in range(size))
    unique = a.unique if b.unique is None else b.unique
    if a.unique is not None and unique is not a.unique:
        return []
    rest = a.rest | b.rest
    if not a.counts and not b.counts and unique is None:
        return [ArrayShape(prefix, rest, low, high)]
    return arranged(ArrayShape(prefix, rest, low, high, a.counts + b.counts, unique))


def arranged(array: ArrayShape) -> list[ArrayShape]:
    """The same arrays with simple conditions said without counting; none when conditions contradict each other."""
    low, high = array.low, array.high
    prefix, rest = list(array.prefix), array.rest
    bounds: dict[tuple[int, Need], tuple[int, int | None]] = {}
    for count in array.counts:
        key = (count.start, count.need)
        least, most = bounds.get(key, (0, None))
        least = max(least, count.low)
        bounds[key] = least, count.high if most is None else most if count.high is None else min(most, count.high)
    counts = []
    for (start, need), (least, most) in bounds.items():
        if most is not None and most < least:
            return []
        if need == TRUE:
            low = max(low, start + least if least else 0)
            high = high if most is None else start + most if high is None else min(high, start + most)
        elif is_false(need):
            if least:
                return []
        elif most == 0:
            opposite = negate(need, _pointer(need))
            prefix += [rest] * (start - len(prefix))
            prefix[start:] = [item | opposite for item in prefix[start:]]
            rest = rest | opposite
        elif least or most is not None:
            counts.append(Count(need, start, least, most))
            if least:
                low = max(low, start + least)
    unique = array.unique
    if unique is False:
        low = max(low, 2)
    elif unique is True and high is not None and high < 2:
        unique = None
    if high is not None and high < low:
        return []
    if unique is not None and high is not None and high <= len(prefix) and high == low:
        distinct = _distinct(prefix[:high])
        if distinct is not None:
            if distinct is not unique:
                return []
            unique = None
    return [ArrayShape(tuple(prefix), rest, low, high, tuple(counts), unique)]


def _pointer(need: Need) -> str:
    return min(atom.pointer for atom in need)


def _distinct(items: list[Need]) -> bool | None:
    """Are the items distinct values?  None when some item is not a constant."""
    values = set()
    for need in items:
        constant = next((atom for atom in need if isinstance(atom, Constant)), None)
        if constant is None:
            return None
        values.add(unordered(constant.value))
    return len(values) == len(items)


def unordered(value: Any) -> Any:
    """A frozen value (see `guided.grammar.json_schema.sets.values`) so that equality ignores the order of members."""
    kind, content = value
    if kind == "array":
        return (kind, tuple(map(unordered, content)))
    if kind == "object":
        return (kind, frozenset((name, unordered(item)) for name, item in content))
    return value


def intersect_objects(a: ObjectShape, b: ObjectShape) -> list[ObjectShape]:
    """The objects in both, as a union; none when the counts alone exclude each other."""
    if a is b or b is ANY_OBJECT:
        return [a]
    if a is ANY_OBJECT:
        return [b]
    low = max(a.low, b.low)
    high = a.high if b.high is None else b.high if a.high is None else min(a.high, b.high)
    required = a.required | b.required
    if high is not None and high < max(low, len(required)):
        return []
    declared = {name: need | b.member(name) for name, need in a.declared.items()}
    for name, need in b.declared.items():
        if name not in declared:
            declared[name] = class_need(a.classes, name) | need
    clauses = a.clauses if not b.clauses else tuple(dict.fromkeys((*a.clauses, *b.clauses)))
    plain = ObjectShape(declared, intersect_classes(a.classes, b.classes), required, low, high, (), clauses)
    if not a.some and not b.some:
        return [plain]
    result = [plain]
    for side, other in ((a, b), (b, a)):
        for pair in side.some:
            # A name that only the other side declares may be the one asked for.
            names = [n for n in other.declared if n not in side.declared and holds_word(pair[0], n)]
            found = []
            for shape in result:
                for name in names:
                    members = {**shape.declared, name: shape.declared[name] | pair[1]}
                    found.append(replace(shape, declared=members, required=shape.required | {name}))
                found.append(replace(shape, some=tuple(dict.fromkeys((*shape.some, pair)))))
            result = found
    return [shape for shape in result if shape.high is None or len(shape.required) <= shape.high]


def intersect_classes(a: Classes, b: Classes) -> Classes:
    """The common refinement of two partitions of all names."""
    if len(b) == 1:
        extra = b[0][1]
        return a if not extra else tuple((language, need | extra) for language, need in a)
    if len(a) == 1:
        return intersect_classes(b, a)
    cells = []
    for (left, left_need), (right, right_need) in product(a, b):
        both = left if left is right else intersection((left, right))
        if inhabited(both):
            cells.append((both, left_need | right_need))
    return tuple(cells)
