"""From the keywords of one schema to its `Shape`: every assertion becomes part of a set, nothing is skipped.

One method per group of keywords.  Subschemas about the same value (``allOf``, ``$ref``, ``anyOf``, ...) are expanded
here and now; subschemas about values inside become needs that are expanded when reached.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from guided.errors import GrammarError, GuidedError, UnsupportedError
from guided.grammar.json_schema import numbers, patterns, strings
from guided.grammar.json_schema.algebra import intersect, intersect_objects, unite, with_some_item
from guided.grammar.json_schema.document import Document, Located, escape, kind_name
from guided.grammar.json_schema.formats import format_language
from guided.grammar.json_schema.negation import subtract
from guided.grammar.json_schema.numbers import ANY_NUMBER, NumberRange, exact
from guided.grammar.json_schema.shape import (
    ANY_ARRAY,
    ANY_OBJECT,
    ANYTHING,
    FALSE,
    NOTHING,
    TRUE,
    ArrayShape,
    Atom,
    Classes,
    Constant,
    Need,
    Not,
    ObjectShape,
    Shape,
    class_need,
)
from guided.grammar.json_schema.strings import ANY_STRING, CONTENT, StringSet
from guided.grammar.json_schema.values import freeze, shape_of
from guided.grammar.regular.expr import Expr, alternation

_TYPES = frozenset(("null", "boolean", "number", "integer", "string", "array", "object"))
_NUMERIC = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))
_STRINGS = frozenset(("minLength", "maxLength", "pattern", "format"))
_ARRAYS = frozenset(
    (
        "items",
        "prefixItems",
        "additionalItems",
        "minItems",
        "maxItems",
        "uniqueItems",
        "contains",
        "minContains",
        "maxContains",
        "unevaluatedItems",
    )
)
_OBJECTS = frozenset(
    (
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
        "minProperties",
        "maxProperties",
        "propertyNames",
        "unevaluatedProperties",
    )
)
_VALIDATION = (
    frozenset(("type", "enum", "const", "required", "dependentRequired", "minContains", "maxContains", "uniqueItems"))
    | frozenset(("minItems", "maxItems", "minLength", "maxLength", "pattern", "minProperties", "maxProperties"))
    | _NUMERIC
)
"""The keywords of the validation vocabulary, which a meta-schema may leave out."""
_IN_PLACE = frozenset(
    (
        "$ref",
        "enum",
        "const",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "$dynamicRef",
        "$recursiveRef",
        "dependentRequired",
        "dependentSchemas",
        "dependencies",
    )
)

Branches: TypeAlias = "tuple[str, int, int]"
"""Pointer of a ``oneOf`` and two of its branches."""


@dataclass(frozen=True, slots=True, eq=False)
class Overlap:
    """A value that two branches of a ``oneOf`` would both allow: the union is exact only if there is none."""

    shape: Shape
    branches: Branches


class Normaliser:
    """Expands needs to shapes, each once."""

    def __init__(
        self, document: Document, assert_formats: bool, overlapping: frozenset[Branches] = frozenset()
    ) -> None:
        self.document = document
        self._assert_formats = assert_formats
        self._overlapping = overlapping
        self.overlaps: list[Overlap] = []
        self._shapes: dict[Atom, Shape | None] = {}

    def need(self, at: Located) -> Need:
        """What a place asks for, references followed."""
        for _ in range(1000):
            schema = at.schema
            if schema is True or schema == {}:
                return TRUE
            if schema is False or "$ref" not in schema:
                return frozenset((at,))
            if len(schema) > 1 and not at.resource.dialect.reference_stands_alone:
                return frozenset((at,))
            at = self.document.resolve(at, schema["$ref"])
        raise GrammarError(
            "the reference leads back to itself", where=f"{at.pointer}/$ref", remedy="Let it end in a schema."
        )

    def shape(self, need: Need) -> Shape:
        """The values that all atoms of the need allow."""
        result = ANYTHING
        for atom in need:
            shape = self.expand(atom)
            result = shape if result is ANYTHING else intersect(result, shape, atom.pointer)
            if result is NOTHING:
                break
        return result

    def expand(self, atom: Atom) -> Shape:
        """The values that one atom allows."""
        if atom in self._shapes:
            found = self._shapes[atom]
            if found is None:
                raise UnsupportedError(
                    "the schema is defined by itself: it applies itself to the same value",
                    where=atom.pointer,
                    remedy="Remove the circle of $ref, allOf, anyOf or oneOf.",
                )
            return found
        self._shapes[atom] = None
        try:
            shape = self._shapes[atom] = self._expand(atom)
        except GuidedError as error:
            if error.where is not None:
                raise
            raise type(error)(error.what, where=atom.pointer, remedy=error.remedy) from None
        return shape

    def _expand(self, atom: Atom) -> Shape:
        if isinstance(atom, Constant):
            return shape_of([atom.value], atom.pointer)
        if isinstance(atom, Not):
            return subtract(ANYTHING, self.shape(atom.need), atom.pointer)
        if isinstance(atom.schema, bool):
            return ANYTHING if atom.schema else NOTHING
        return self._keywords(atom, atom.schema)

    def _keywords(self, at: Located, schema: dict[str, Any]) -> Shape:
        if "$ref" in schema and at.resource.dialect.reference_stands_alone:
            return self.shape(self.need(at))
        if not at.resource.dialect.asserts:
            schema = {keyword: value for keyword, value in schema.items() if keyword not in _VALIDATION}
        shape = self._by_type(at, schema)
        if not _IN_PLACE.isdisjoint(schema):
            shape = self._in_place(at, schema, shape)
        return shape

    # -- assertions, type by type ---------------------------------------------------------------------------------

    def _by_type(self, at: Located, schema: dict[str, Any]) -> Shape:
        types = self._type(at, schema)
        everything = types is None
        wanted = types or ()
        number: NumberRange | None = None
        if everything or "number" in wanted:
            number = ANY_NUMBER
        elif "integer" in wanted:
            number = numbers.PLAIN_INTEGER if at.resource.dialect.order == 4 else numbers.INTEGER
        string = ANY_STRING if everything or "string" in wanted else None
        array = ANY_ARRAY if everything or "array" in wanted else None
        thing = ANY_OBJECT if everything or "object" in wanted else None
        arrays: tuple[ArrayShape, ...] = () if array is None else (array,)
        things: tuple[ObjectShape, ...] = () if thing is None else (thing,)
        if number is not None and not _NUMERIC.isdisjoint(schema):
            number = self._number(at, schema, number)
        found: tuple[StringSet, ...] = (string,) if string is not None else ()
        if string is not None and not _STRINGS.isdisjoint(schema):
            found = self._string(at, schema)
        if array is not None and not _ARRAYS.isdisjoint(schema):
            arrays = self._array(at, schema)
        if thing is not None and not _OBJECTS.isdisjoint(schema):
            things = self._object(at, schema)
        boolean = everything or "boolean" in wanted
        return Shape(
            everything or "null" in wanted,
            boolean,
            boolean,
            () if number is None else (number,),
            found,
            arrays,
            things,
        )

    def _type(self, at: Located, schema: dict[str, Any]) -> tuple[str, ...] | None:
        names = schema.get("type")
        if names is None and "type" not in schema:
            return None
        found = (names,) if isinstance(names, str) else tuple(names) if isinstance(names, list) else ()
        for name in found:
            if not isinstance(name, str) or name not in _TYPES:
                raise GrammarError(
                    f"there is no type {name!r}",
                    where=f"{at.pointer}/type",
                    remedy="Use null, boolean, number, integer, string, array or object.",
                )
        if not isinstance(names, str | list):
            raise GrammarError(
                f"type must be a name or a list of names, not {kind_name(names)}", where=f"{at.pointer}/type"
            )
        return found

    def _number(self, at: Located, schema: dict[str, Any], base: NumberRange) -> NumberRange | None:
        result: NumberRange | None = base
        for keyword, low in (("minimum", True), ("maximum", False)):
            exclusive = "exclusiveMinimum" if low else "exclusiveMaximum"
            flag = schema.get(exclusive)
            open_end = False
            if isinstance(flag, bool) and (at.resource.dialect.order == 4 or not self.document.declared_dialect):
                open_end = flag
            elif exclusive in schema:
                bound = exact(self._a_number(at, schema, exclusive))
                limit = NumberRange(bound, True) if low else NumberRange(high=bound, high_open=True)
                result = result and numbers.intersect(result, limit)
            if keyword in schema:
                bound = exact(self._a_number(at, schema, keyword))
                limit = NumberRange(bound, open_end) if low else NumberRange(high=bound, high_open=open_end)
                result = result and numbers.intersect(result, limit)
        if "multipleOf" in schema:
            step = exact(self._a_number(at, schema, "multipleOf"))
            if step <= 0:
                raise GrammarError("multipleOf must be positive", where=f"{at.pointer}/multipleOf")
            result = result and numbers.intersect(result, NumberRange(step=step))
        return result

    def _string(self, at: Located, schema: dict[str, Any]) -> tuple[StringSet, ...]:
        low = self._count(at, schema, "minLength") or 0
        high = self._count(at, schema, "maxLength")
        result: StringSet | None = StringSet(None, None, low, high) if low or high is not None else ANY_STRING
        if "pattern" in schema:
            pointer = f"{at.pointer}/pattern"
            language = patterns.pattern_language(schema["pattern"], pointer)
            result = result and strings.intersect(result, StringSet(None, language))
        if "format" in schema and self._assert_formats:
            form = format_language(schema["format"])
            if form is not None:
                result = result and strings.intersect(result, StringSet(None, form))
        return () if result is None or result.is_empty() else (result,)

    def _array(self, at: Located, schema: dict[str, Any]) -> tuple[ArrayShape, ...]:
        dialect = at.resource.dialect
        child = self.document.child
        prefix: tuple[Need, ...] = ()
        rest = TRUE
        items = schema.get("items", True)
        legacy = dialect.order <= 2019 or not self.document.declared_dialect
        if isinstance(items, list) and legacy:
            prefix = tuple(self.need(child(at, "items", i)) for i in range(len(items)))
            if "additionalItems" in schema:
                rest = self.need(child(at, "additionalItems"))
        elif "items" in schema:
            if isinstance(items, list):
                raise GrammarError(
                    "items must be a schema; a list is how older drafts wrote prefixItems",
                    where=f"{at.pointer}/items",
                    remedy="Use prefixItems, or say an older draft in $schema.",
                )
            rest = self.need(child(at, "items"))
        if "prefixItems" in schema and dialect.order >= 2020:
            found = schema["prefixItems"]
            if not isinstance(found, list):
                raise GrammarError("prefixItems must be a list of schemas", where=f"{at.pointer}/prefixItems")
            prefix = tuple(self.need(child(at, "prefixItems", i)) for i in range(len(found)))
        low = self._count(at, schema, "minItems") or 0
        high = self._count(at, schema, "maxItems")
        if high is not None and high < low:
            return ()
        if schema.get("uniqueItems") is True and (high is None or high > 1):
            self.refuse(at, "uniqueItems")
        if "unevaluatedItems" in schema and dialect.order >= 2019:
            if not _IN_PLACE.isdisjoint(schema) or "contains" in schema:
                self.refuse(at, "unevaluatedItems")
            if "items" not in schema or (isinstance(items, list) and "additionalItems" not in schema):
                rest = self.need(child(at, "unevaluatedItems"))
        result = ArrayShape(prefix, rest, low, high)
        if "contains" in schema and dialect.order >= 6:
            counted = dialect.order >= 2019
            if counted and "maxContains" in schema:
                self.refuse(at, "maxContains")
            least = self._count(at, schema, "minContains") if counted else None
            if least is not None and least > 1:
                self.refuse(at, "minContains")
            if least != 0:
                return tuple(with_some_item(result, self.need(child(at, "contains")), 0))
        return (result,)

    def _object(self, at: Located, schema: dict[str, Any]) -> tuple[ObjectShape, ...]:
        dialect = at.resource.dialect
        child = self.document.child
        declared: dict[str, Need] = {}
        classes: Classes = ((CONTENT, TRUE),)
        if "additionalProperties" in schema:
            classes = ((CONTENT, self.need(child(at, "additionalProperties"))),)
        elif "unevaluatedProperties" in schema and dialect.order >= 2019:
            if not _IN_PLACE.isdisjoint(schema) or "dependentSchemas" in schema:
                self.refuse(at, "unevaluatedProperties")
            classes = ((CONTENT, self.need(child(at, "unevaluatedProperties"))),)
        found: list[tuple[Expr, Need]] = []
        if "patternProperties" in schema:
            for pattern in self._mapping(at, schema, "patternProperties"):
                place = child(at, "patternProperties", pattern)
                found.append((patterns.pattern_language(pattern, place.pointer), self.need(place)))
            classes = patterns.partition(found, classes[0][1], f"{at.pointer}/patternProperties")
        if "properties" in schema:
            for name in self._mapping(at, schema, "properties"):
                need = self.need(child(at, "properties", name))
                for language, more in found:
                    if patterns.has_name(language, name):
                        need = need | more
                declared[name] = need
        required = self._required(at, schema)
        for name in required:
            if name not in declared:
                declared[name] = class_need(classes, name)
        low = self._count(at, schema, "minProperties") or 0
        high = self._count(at, schema, "maxProperties")
        if high is not None and high < max(low, len(required)):
            return ()
        result = ObjectShape(declared, classes, frozenset(required), low, high)
        names = self._names(at) if "propertyNames" in schema and dialect.order >= 6 else None
        return (result,) if names is None else tuple(intersect_objects(result, names))

    def _names(self, at: Located) -> ObjectShape | None:
        """``propertyNames`` as the objects whose every name is in its strings; None when that is all names."""
        allowed = self.shape(self.need(self.document.child(at, "propertyNames"))).strings
        if allowed and allowed[0] is ANY_STRING:
            return None
        if len(allowed) == 1 and allowed[0].words is not None:
            return ObjectShape(dict.fromkeys(sorted(allowed[0].words), TRUE), ((CONTENT, FALSE),))
        language = alternation([item.content() for item in allowed])
        return ObjectShape({}, patterns.partition([(language, TRUE)], FALSE, f"{at.pointer}/propertyNames"))

    def _required(self, at: Located, schema: dict[str, Any]) -> list[str]:
        names = schema.get("required", [])
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise GrammarError(
                "required must be a list of property names",
                where=f"{at.pointer}/required",
                remedy="List the names in the schema of the object.",
            )
        return names

    # -- applicators to the same value ----------------------------------------------------------------------------

    def _in_place(self, at: Located, schema: dict[str, Any], shape: Shape) -> Shape:
        order = at.resource.dialect.order
        if "enum" in schema:
            values = schema["enum"]
            if not isinstance(values, list):
                raise GrammarError("enum must be a list of values", where=f"{at.pointer}/enum")
            frozen = [freeze(value, f"{at.pointer}/enum/{i}") for i, value in enumerate(values)]
            shape = intersect(shape, shape_of(frozen, f"{at.pointer}/enum"), at.pointer)
        if "const" in schema and order >= 6:
            frozen = [freeze(schema["const"], f"{at.pointer}/const")]
            shape = intersect(shape, shape_of(frozen, f"{at.pointer}/const"), at.pointer)
        if "$ref" in schema:
            target = self.document.resolve(at, schema["$ref"])
            shape = intersect(shape, self.shape(self.need(target)), at.pointer)
        for keyword, since in (("$recursiveRef", 2019), ("$dynamicRef", 2020)):
            if keyword in schema and order >= since:
                self.refuse(at, keyword)
        if "allOf" in schema:
            for place in self._branches(at, schema, "allOf"):
                shape = intersect(shape, self.shape(self.need(place)), place.pointer)
        if "anyOf" in schema:
            places = self._branches(at, schema, "anyOf")
            shape = intersect(shape, unite(self.shape(self.need(place)) for place in places), at.pointer)
        if "oneOf" in schema:
            shape = self._one_of(at, schema, shape)
        if "not" in schema:
            shape = self._but_not(shape, self.document.child(at, "not"))
        if "if" in schema and order >= 7 and ("then" in schema or "else" in schema):
            shape = self._conditional(at, schema, shape)
        if "dependentRequired" in schema and order >= 2019:
            shape = self._dependent(at, schema, shape, "dependentRequired")
        if "dependentSchemas" in schema and order >= 2019:
            shape = self._dependent(at, schema, shape, "dependentSchemas")
        if "dependencies" in schema and (order <= 7 or not self.document.declared_dialect):
            shape = self._dependent(at, schema, shape, "dependencies")
        return shape

    def _one_of(self, at: Located, schema: dict[str, Any], shape: Shape) -> Shape:
        """Branches that can overlap lose what the others allow; those that seem not to are checked on the graph."""
        pointer = f"{at.pointer}/oneOf"
        places = self._branches(at, schema, "oneOf")
        shapes = [intersect(shape, self.shape(self.need(place)), pointer) for place in places]
        overlapping: list[list[int]] = [[] for _ in places]
        for j, second in enumerate(shapes):
            for i in range(j):
                both = intersect(shapes[i], second, pointer)
                if both.is_empty():
                    continue
                pair = (pointer, i, j)
                if both.has_scalar() or pair in self._overlapping:
                    overlapping[i].append(j)
                    overlapping[j].append(i)
                else:
                    self.overlaps.append(Overlap(both, pair))
        parts = []
        for own, others in zip(shapes, overlapping, strict=True):
            for other in others:
                own = subtract(own, shapes[other], pointer)
            parts.append(own)
        return unite(parts)

    def _but_not(self, shape: Shape, place: Located) -> Shape:
        inner = place.schema
        if isinstance(inner, dict) and len(inner) == 1 and "not" in inner:
            twice = self.document.child(place, "not")
            return intersect(shape, self.shape(self.need(twice)), twice.pointer)
        return subtract(shape, self.shape(self.need(place)), place.pointer)

    def _conditional(self, at: Located, schema: dict[str, Any], shape: Shape) -> Shape:
        child = self.document.child
        condition = self.shape(self.need(child(at, "if")))
        held = intersect(shape, condition, f"{at.pointer}/if")
        if "then" in schema:
            held = intersect(held, self.shape(self.need(child(at, "then"))), f"{at.pointer}/then")
        failed = subtract(shape, condition, f"{at.pointer}/if")
        if "else" in schema:
            failed = intersect(failed, self.shape(self.need(child(at, "else"))), f"{at.pointer}/else")
        return unite((held, failed))

    def _dependent(self, at: Located, schema: dict[str, Any], shape: Shape, keyword: str) -> Shape:
        """What a member's presence asks of the whole object: names that must be there too, or a schema."""
        for name, asked in schema[keyword].items() if self._mapping(at, schema, keyword) else ():
            if not shape.objects:
                break
            pointer = f"{at.pointer}/{keyword}/{escape(name)}"
            absent = replace(ANYTHING, objects=(ObjectShape({name: FALSE}),))
            if isinstance(asked, list) or (isinstance(asked, str) and keyword == "dependencies"):
                needed = [name, *([asked] if isinstance(asked, str) else asked)]
                if not all(isinstance(other, str) for other in needed):
                    raise GrammarError(f"{keyword} must list property names", where=pointer)
                members = dict.fromkeys(needed, TRUE)
                present = replace(NOTHING, objects=(ObjectShape(members, required=frozenset(members)),))
            else:
                place = self.document.child(at, keyword, name)
                present = replace(NOTHING, objects=(ObjectShape({name: TRUE}, required=frozenset((name,))),))
                present = intersect(present, self.shape(self.need(place)), pointer)
            shape = intersect(shape, unite((absent, present)), pointer)
        return shape

    def _branches(self, at: Located, schema: dict[str, Any], keyword: str) -> list[Located]:
        found = schema[keyword]
        if not isinstance(found, list) or not found:
            raise GrammarError(f"{keyword} must be a list of at least one schema", where=f"{at.pointer}/{keyword}")
        return [self.document.child(at, keyword, i) for i in range(len(found))]

    # -- reading keyword values -----------------------------------------------------------------------------------

    def refuse(self, at: Located, keyword: str) -> None:
        """Refuse a keyword that cannot be enforced exactly."""
        raise UnsupportedError(
            f"the keyword {keyword!r} is not supported here",
            where=f"{at.pointer}/{keyword}",
            remedy="Remove it, or say the same with supported keywords; it is never ignored silently.",
        )

    def _count(self, at: Located, schema: dict[str, Any], keyword: str) -> int | None:
        value = schema.get(keyword)
        if value is None and keyword not in schema:
            return None
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise GrammarError(
                f"{keyword} must be a whole number of at least 0, not {value!r}", where=f"{at.pointer}/{keyword}"
            )
        return value

    def _a_number(self, at: Located, schema: dict[str, Any], keyword: str) -> int | float:
        value = schema[keyword]
        if isinstance(value, bool) or not isinstance(value, int | float) or value - value != 0:
            raise GrammarError(f"{keyword} must be a number, not {value!r}", where=f"{at.pointer}/{keyword}")
        return value

    def _mapping(self, at: Located, schema: dict[str, Any], keyword: str) -> Iterable[str]:
        value = schema[keyword]
        if not isinstance(value, dict):
            raise GrammarError(
                f"{keyword} must be an object of schemas, not {kind_name(value)}", where=f"{at.pointer}/{keyword}"
            )
        return value
