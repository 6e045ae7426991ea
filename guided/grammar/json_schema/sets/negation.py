"""Difference of shapes, for ``not``, ``else``, and the branches of a ``oneOf`` that overlap.

The complement of "every item is S" is "some item is not S": needs are negated by the atom `Not`, which is expanded
only when reached, like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from guided.grammar.json_schema.numbers import ranges as numbers
from guided.grammar.json_schema.sets.algebra import arranged, intersect, intersect_objects
from guided.grammar.json_schema.sets.clauses import merged
from guided.grammar.json_schema.sets.shape import (
    ANY_OBJECT,
    ANYTHING,
    NOTHING,
    TRUE,
    ArrayShape,
    Count,
    ObjectShape,
    Shape,
    negate,
)
from guided.grammar.json_schema.sets.strings import ANY_STRING, StringSet, every_word
from guided.grammar.regular.derivative import inhabited
from guided.grammar.regular.expr import Expr, difference
from guided.grammar.regular.texts import CONTENT, holds_word

MAX_POSITIONS = 64
"""Positions of one array that are negated one by one before "some item" is asked for."""


def subtract(shape: Shape, other: Shape, pointer: str, prune: Callable[[Shape], Shape]) -> Shape:
    """The values of ``shape`` that are not in ``other``; alternatives of ``other`` are taken away one after another.

    ``prune`` drops alternatives that are surely empty, which keeps the product of what remains small.
    """
    if other is ANYTHING:
        return NOTHING
    result = Shape(
        shape.null and not other.null,
        shape.true and not other.true,
        shape.false and not other.false,
        shape.numbers,
        shape.strings,
        shape.arrays,
        shape.objects,
    )
    for number in other.numbers:
        if result.numbers:
            result = intersect(result, replace(ANYTHING, numbers=tuple(numbers.complement(number))), pointer)
    for string in other.strings:
        if result.strings:
            result = intersect(result, replace(ANYTHING, strings=_strings(string)), pointer)
    for array in other.arrays:
        if result.arrays:
            result = prune(intersect(result, replace(ANYTHING, arrays=tuple(_arrays(array, pointer))), pointer))
    for thing in other.objects:
        if result.objects:
            result = prune(intersect(result, replace(ANYTHING, objects=_objects(thing, pointer)), pointer))
    return result


def _strings(string: StringSet) -> tuple[StringSet, ...]:
    found = []
    if string.words is not None:
        return (StringSet(without=string.words),) if string.words else (ANY_STRING,)
    if string.language is not None:
        found.append(StringSet(None, difference(CONTENT, string.language)))
    if string.hostname is not None:
        found.append(StringSet(hostname=not string.hostname))
    if string.host is not None:
        found.append(StringSet(host=not string.host))
    if string.regex is not None:
        found.append(StringSet(regex=not string.regex))
    if string.low:
        found.append(StringSet(None, None, 0, string.low - 1))
    if string.high is not None:
        found.append(StringSet(None, None, string.high + 1))
    if string.without:
        found.append(StringSet(string.without))
    return tuple(item for item in found if not item.is_surely_empty())


def _arrays(array: ArrayShape, pointer: str) -> list[ArrayShape]:
    found = []
    size = len(array.prefix)
    if array.low:
        found.append(ArrayShape((), TRUE, 0, array.low - 1))
    if array.high is not None:
        found.append(ArrayShape((), TRUE, array.high + 1))
    reach = size
    if array.rest != TRUE:
        if array.high is not None and array.high - size <= MAX_POSITIONS:
            reach = max(array.high, size)
        else:
            found.extend(arranged(ArrayShape(counts=(Count(negate(array.rest, pointer), size),))))
    for index in range(reach):
        if array.item(index) != TRUE:
            found.append(ArrayShape((*(TRUE,) * index, negate(array.item(index), pointer)), TRUE, index + 1))
    for count in array.counts:
        if count.low:
            found.extend(arranged(ArrayShape(counts=(replace(count, low=0, high=count.low - 1),))))
        if count.high is not None:
            found.extend(arranged(ArrayShape(counts=(replace(count, low=count.high + 1, high=None),))))
    if array.unique is not None:
        found.extend(arranged(ArrayShape(unique=not array.unique)))
    return found


def _objects(thing: ObjectShape, pointer: str) -> tuple[ObjectShape, ...]:
    found = []
    for name, need in thing.declared.items():
        if name in thing.required:
            # Absent, or there with another value: an optional member of the opposite need says both.
            found.append(ObjectShape({name: negate(need, pointer)}))
        elif need != TRUE:
            found.append(ObjectShape({name: negate(need, pointer)}, required=frozenset((name,))))
    if thing.low > len(thing.required):
        found.append(ObjectShape({}, high=thing.low - 1))
    if thing.high is not None:
        found.append(ObjectShape({}, low=thing.high + 1))
    names = dict.fromkeys(thing.declared, TRUE)
    for language, need in thing.classes:
        if need != TRUE:
            rest = without_names(language, thing)
            if inhabited(rest):
                bad = negate(need, pointer)
                found.append(ObjectShape(dict(names), some=((rest, bad),)))
    for language, need in thing.some:
        rest = without_names(language, thing)
        classes = ((rest, negate(need, pointer)), (difference(CONTENT, rest), TRUE))
        found.append(ObjectShape(dict(names), tuple(cell for cell in classes if inhabited(cell[0]))))
    for clause in thing.clauses:
        none = [ANY_OBJECT]
        for way in clause:
            none = [both for one in none for other in _objects(way, pointer) for both in intersect_objects(one, other)]
        found.extend(none)
    return merged(tuple(found))


def without_names(language: Expr, thing: ObjectShape) -> Expr:
    """The names of a language that the object does not declare."""
    names = frozenset(name for name in thing.declared if holds_word(language, name))
    return difference(language, every_word(names)) if names else language
