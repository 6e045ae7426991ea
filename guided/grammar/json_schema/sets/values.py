"""Single JSON values as hashable data and as shapes: what ``enum`` and ``const`` list.

Equality is JSON Schema's: ``1`` and ``1.0`` are the same number, ``true`` is not ``1``, keys have no order.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from guided.errors import GrammarError
from guided.grammar.json_schema import refusals
from guided.grammar.json_schema.numbers.ranges import NumberRange, exact
from guided.grammar.json_schema.reading.document import escape
from guided.grammar.json_schema.sets.shape import FALSE, ArrayShape, Constant, ObjectShape, Shape
from guided.grammar.json_schema.sets.strings import StringSet
from guided.grammar.regular.texts import CONTENT


def freeze(value: Any, pointer: str) -> Any:
    """The value as a tagged, hashable tuple; keys keep their order for writing.

    Raises `GrammarError` for what is no JSON value, and a refusal for lone surrogates.
    """
    if value is None or isinstance(value, bool):
        return ("literal", str(value))
    if isinstance(value, str):
        if not value.isascii() and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise refusals.SURROGATE.at(pointer)
        return ("string", value)
    if isinstance(value, int | float):
        if value != value or value in (float("inf"), float("-inf")):
            raise GrammarError(f"{value} is no JSON number", where=pointer, remedy="Use a finite number.")
        return ("number", exact(value))
    if isinstance(value, list | tuple):
        return ("array", tuple(freeze(item, f"{pointer}/{i}") for i, item in enumerate(value)))
    if isinstance(value, dict):
        return ("object", tuple((name, freeze(item, f"{pointer}/{escape(name)}")) for name, item in value.items()))
    raise GrammarError(f"{type(value).__name__} is no JSON value", where=pointer, remedy="Pass plain JSON data.")


def fractional(value: Any) -> Iterator[Fraction]:
    """The whole numbers in a value that are written with a fraction or exponent, as floats are."""
    if isinstance(value, float):
        if value.is_integer():
            yield exact(value)
    elif isinstance(value, list | tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from fractional(item)


def plain_words(values: list[Any]) -> frozenset[str] | None:
    """The values as a set of strings; None when some is no string, or may not be valid Unicode."""
    for value in values:
        if not isinstance(value, str) or not value.isascii():
            return None
    return frozenset(values) if values else None


def shape_of(frozen: list[Any], pointer: str) -> Shape:
    """Exactly these values."""
    literals: set[str] = set()
    numbers: dict[NumberRange, None] = {}
    words: set[str] = set()
    arrays: dict[Any, ArrayShape] = {}
    objects: dict[Any, ObjectShape] = {}
    for item in frozen:
        kind, value = item
        if kind == "literal":
            literals.add(value)
        elif kind == "string":
            words.add(value)
        elif kind == "number":
            numbers[NumberRange(value, False, value, False)] = None
        elif kind == "array":
            size = len(value)
            if item not in arrays:
                prefix = tuple(frozenset((Constant(part, pointer),)) for part in value)
                arrays[item] = ArrayShape(prefix, FALSE, size, size)
        else:
            same = frozenset(value)
            if same not in objects:
                members = {name: frozenset((Constant(part, pointer),)) for name, part in value}
                objects[same] = ObjectShape(
                    members, ((CONTENT, FALSE),), frozenset(members), len(members), len(members)
                )
    return Shape(
        "None" in literals,
        "True" in literals,
        "False" in literals,
        tuple(numbers),
        (StringSet(frozenset(words)),) if words else (),
        tuple(arrays.values()),
        tuple(objects.values()),
    )
