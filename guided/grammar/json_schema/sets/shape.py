"""The normal form: what one schema allows, type by type, as a union of simple conjunctions per type.

A `Shape` is closed under intersection, union (`guided.grammar.json_schema.sets.algebra`) and complement
(`guided.grammar.json_schema.sets.negation`).  It says everything about the value itself and nothing yet about the
values inside it: those are named by a `Need`, a conjunction of atoms that is expanded only when it is reached, which is
how recursive schemas stay finite.  This file holds data only; shapes are never changed, and not frozen since setting
the fields of a frozen one takes four times as long.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from guided.grammar.json_schema.numbers.ranges import ANY_NUMBER, INTEGER, PLAIN_INTEGER, NumberRange
from guided.grammar.json_schema.reading.document import DRAFT4, DRAFT2020, Dialect, Located, Resource
from guided.grammar.json_schema.sets.strings import ANY_STRING, StringSet
from guided.grammar.regular.expr import Expr
from guided.grammar.regular.texts import CONTENT, holds_word


@dataclass(frozen=True, slots=True)
class Constant:
    """The atom of exactly one JSON value; ``value`` is hashable (see `guided.grammar.json_schema.sets.values`)."""

    value: Any
    pointer: str


@dataclass(frozen=True, slots=True)
class Not:
    """The atom of every value that the need inside does not allow."""

    need: Need
    pointer: str = field(compare=False)


Atom: TypeAlias = "Located | Constant | Not"
Need: TypeAlias = "frozenset[Atom]"

TRUE: Need = frozenset()
"""Any value."""
FALSE: Need = frozenset((Located(False, "", None),))  # type: ignore[arg-type]
"""No value."""


ANY = "any "
"""What the pointers of needs begin with that stand at no place of the schema."""
_NAMES = ("null", "boolean", "number", "integer", "string", "array", "object")
OF_TYPE = {
    dialect: {name: frozenset((Located({"type": name}, ANY + name, Resource({}, "", dialect, "")),)) for name in _NAMES}
    for dialect in (DRAFT4, DRAFT2020)
}
"""The needs that say only a type, by dialect and name."""


def typed(name: Any, dialect: Dialect) -> Need | None:
    """The need that a schema asks for which says only ``type``, by name: one for all of its places; None for others."""
    if not isinstance(name, str) or not dialect.asserts:
        return None
    return OF_TYPE[DRAFT4 if dialect.order == 4 else DRAFT2020].get(name)


def ordered(need: Need) -> Iterable[Atom]:
    """The atoms in a fixed order: those that allow few values first, which keeps products of alternatives small."""
    return need if len(need) < 2 else sorted(need, key=_rank)


def _rank(atom: Atom) -> tuple[int, str]:
    if isinstance(atom, Located):
        schema = atom.schema
        return (1 if isinstance(schema, dict) and ("const" in schema or "enum" in schema) else 2, atom.pointer)
    return (0 if isinstance(atom, Constant) else 3, atom.pointer)


def is_false(need: Need) -> bool:
    """Does the need say outright that there is no value?"""
    for atom in need:  # noqa: SIM110 -- asked of every node, and a generator takes several times as long
        if isinstance(atom, Located) and atom.schema is False:
            return True
    return False


def negate(need: Need, pointer: str) -> Need:
    """The need of everything that ``need`` does not allow."""
    if need == TRUE:
        return FALSE
    if len(need) == 1:
        atom = next(iter(need))
        if isinstance(atom, Not):
            return atom.need
        if isinstance(atom, Located) and atom.schema is False:
            return TRUE
    return frozenset((Not(need, pointer),))


@dataclass(frozen=True, slots=True)
class Count:
    """How many items from ``start`` on meet a need: ``low`` to ``high`` (None: any number)."""

    need: Need
    start: int = 0
    low: int = 1
    high: int | None = None


@dataclass(slots=True, eq=False)
class ArrayShape:
    """Arrays of ``low`` to ``high`` items: each of ``prefix`` in turn, then any number of ``rest``.

    Every condition in ``counts`` holds too.  ``unique``: all items differ (True), two are equal (False), or either.
    """

    prefix: tuple[Need, ...] = ()
    rest: Need = TRUE
    low: int = 0
    high: int | None = None
    counts: tuple[Count, ...] = ()
    unique: bool | None = None

    def item(self, index: int) -> Need:
        """What the item at an index must be."""
        return self.prefix[index] if index < len(self.prefix) else self.rest


Classes: TypeAlias = "tuple[tuple[Expr, Need], ...]"
"""Disjoint languages of names that are together all strings, each with its need."""


@dataclass(slots=True, eq=False)
class ObjectShape:
    """Objects with ``low`` to ``high`` members, all of ``required`` among them.

    ``declared`` says what the member of that name must be.  Every other name is in exactly one of the disjoint
    languages in ``classes`` (over the inside of a JSON string; together they are all strings), each with its need.
    ``declared`` keeps the order of the schema; ``required`` names are always declared.  For each pair in ``some``, a
    member with an undeclared name of that language also meets that need.  Of each of ``clauses`` one condition holds
    (`guided.grammar.json_schema.sets.clauses`).
    """

    declared: Mapping[str, Need]
    classes: Classes = ((CONTENT, TRUE),)
    required: frozenset[str] = frozenset()
    low: int = 0
    high: int | None = None
    some: tuple[tuple[Expr, Need], ...] = ()
    clauses: tuple[Clause, ...] = ()

    def member(self, name: str) -> Need:
        """What the member of a name must be."""
        found = self.declared.get(name)
        return class_need(self.classes, name) if found is None else found


def class_need(classes: Classes, name: str) -> Need:
    """The need of the one class that holds an undeclared name."""
    if len(classes) == 1:
        return classes[0][1]
    for language, need in classes:
        if holds_word(language, name):
            return need
    return FALSE


Clause: TypeAlias = "tuple[ObjectShape, ...]"
"""Conditions, each of which says one thing: what one member is (or that it is not there), what some member is, declared
or not, or how many there are."""

ANY_ARRAY = ArrayShape()
ANY_OBJECT = ObjectShape({})


@dataclass(slots=True, eq=False)
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


def _of_types() -> dict[Need, Shape]:
    found: dict[Need, Shape] = {}
    for dialect, needs in OF_TYPE.items():
        shapes = {
            "null": Shape(null=True),
            "boolean": Shape(true=True, false=True),
            "number": Shape(numbers=(ANY_NUMBER,)),
            "integer": Shape(numbers=(PLAIN_INTEGER if dialect.order == 4 else INTEGER,)),
            "string": Shape(strings=(ANY_STRING,)),
            "array": Shape(arrays=(ANY_ARRAY,)),
            "object": Shape(objects=(ANY_OBJECT,)),
        }
        found |= {need: shapes[name] for name, need in needs.items()}
    return found


OF_TYPES = _of_types()
"""What the needs allow that say only a type."""
