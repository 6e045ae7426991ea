"""From the keywords of one schema to its `Shape`: every assertion becomes part of a set, nothing is skipped.

One method per group of keywords.  Subschemas about the same value (``allOf``, ``$ref``, ``anyOf``, ...) are expanded
here and now; subschemas about values inside become needs that are expanded when reached.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from guided.errors import GrammarError, UnsupportedError
from guided.grammar.json_schema import numbers, patterns, strings
from guided.grammar.json_schema.document import Document, Located, kind_name
from guided.grammar.json_schema.formats import format_language
from guided.grammar.json_schema.numbers import ANY_NUMBER, NumberRange, exact
from guided.grammar.json_schema.shape import (
    ANY_ARRAY,
    ANY_OBJECT,
    ANYTHING,
    NOTHING,
    TRUE,
    ArrayShape,
    Classes,
    Constant,
    Need,
    Not,
    ObjectShape,
    Shape,
    class_need,
    intersect,
    unite,
)
from guided.grammar.json_schema.strings import ANY_STRING, CONTENT, StringSet
from guided.grammar.json_schema.values import freeze, shape_of
from guided.grammar.regular.expr import Expr

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
        "dependentRequired",
        "dependentSchemas",
        "dependencies",
        "unevaluatedProperties",
    )
)
_IN_PLACE = frozenset(("$ref", "enum", "const", "allOf", "anyOf", "oneOf", "not", "if", "$dynamicRef", "$recursiveRef"))


@dataclass(frozen=True, slots=True, eq=False)
class Overlap:
    """A value that two branches of a ``oneOf`` would both allow: the schema is exact only if there is none."""

    shape: Shape
    pointer: str
    branches: tuple[int, int]


class Normaliser:
    """Expands needs to shapes, each once."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.overlaps: list[Overlap] = []
        self.notes: dict[str, None] = {}
        self._shapes: dict[Located | Constant | Not, Shape | None] = {}

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

    def expand(self, atom: Located | Constant | Not) -> Shape:
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
        if isinstance(atom, Constant):
            shape = shape_of([atom.value], atom.pointer)
        elif isinstance(atom, Not):
            raise UnsupportedError("not", where=atom.pointer)
        elif isinstance(atom.schema, bool):
            shape = ANYTHING if atom.schema else NOTHING
        else:
            shape = self._keywords(atom, atom.schema)
        self._shapes[atom] = shape
        return shape

    def _keywords(self, at: Located, schema: dict[str, Any]) -> Shape:
        if "$ref" in schema and at.resource.dialect.reference_stands_alone:
            return self.shape(self.need(at))
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
            number = numbers.INTEGER_TEXT if at.resource.dialect.order == 4 else numbers.INTEGER
            self.note("integers and multiples are written without an exponent")
        string = ANY_STRING if everything or "string" in wanted else None
        array = ANY_ARRAY if everything or "array" in wanted else None
        thing = ANY_OBJECT if everything or "object" in wanted else None
        if number is not None and not _NUMERIC.isdisjoint(schema):
            number = self._number(at, schema, number)
        found: tuple[StringSet, ...] = (string,) if string is not None else ()
        if string is not None and not _STRINGS.isdisjoint(schema):
            found = self._string(at, schema)
        if array is not None and not _ARRAYS.isdisjoint(schema):
            array = self._array(at, schema)
        if thing is not None and not _OBJECTS.isdisjoint(schema):
            thing = self._object(at, schema)
        boolean = everything or "boolean" in wanted
        return Shape(
            everything or "null" in wanted,
            boolean,
            boolean,
            () if number is None else (number,),
            found,
            () if array is None else (array,),
            () if thing is None else (thing,),
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
            if result is not None and (keyword in schema or exclusive in schema):
                self.note(
                    "numbers under a bound are written with an exponent only after a single digit before the point"
                )
        if "multipleOf" in schema:
            step = exact(self._a_number(at, schema, "multipleOf"))
            if step <= 0:
                raise GrammarError("multipleOf must be positive", where=f"{at.pointer}/multipleOf")
            result = result and numbers.intersect(result, NumberRange(step=step))
            self.note("integers and multiples are written without an exponent")
        return result

    def _string(self, at: Located, schema: dict[str, Any]) -> tuple[StringSet, ...]:
        low = self._count(at, schema, "minLength") or 0
        high = self._count(at, schema, "maxLength")
        result: StringSet | None = StringSet(None, None, low, high) if low or high is not None else ANY_STRING
        if "pattern" in schema:
            pointer = f"{at.pointer}/pattern"
            language = patterns.pattern_language(schema["pattern"], pointer)
            result = result and strings.intersect(result, StringSet(None, language))
        if "format" in schema:
            form = format_language(schema["format"])
            if form is not None:
                result = result and strings.intersect(result, StringSet(None, form))
        return () if result is None or result.is_empty() else (result,)

    def _array(self, at: Located, schema: dict[str, Any]) -> ArrayShape | None:
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
            return None
        if schema.get("uniqueItems") is True and (high is None or high > 1):
            self.refuse(at, "uniqueItems")
        if "contains" in schema and dialect.order >= 6:
            self.refuse(at, "contains")
        if "unevaluatedItems" in schema and dialect.order >= 2019:
            self.refuse(at, "unevaluatedItems")
        return ArrayShape(prefix, rest, low, high)

    def _object(self, at: Located, schema: dict[str, Any]) -> ObjectShape | None:
        dialect = at.resource.dialect
        child = self.document.child
        declared: dict[str, Need] = {}
        classes: Classes = ((CONTENT, TRUE),)
        if "additionalProperties" in schema:
            classes = ((CONTENT, self.need(child(at, "additionalProperties"))),)
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
        if dialect.order >= 6 and "propertyNames" in schema:
            self.refuse(at, "propertyNames")
        if dialect.order >= 2019:
            for keyword in ("dependentRequired", "dependentSchemas", "unevaluatedProperties"):
                if keyword in schema:
                    self.refuse(at, keyword)
        if "dependencies" in schema:
            self.refuse(at, "dependencies")
        if high is not None and high < max(low, len(required)):
            return None
        return ObjectShape(declared, classes, frozenset(required), low, high)

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
        for keyword, since in (("$recursiveRef", 2019), ("$dynamicRef", 2020), ("not", 4), ("if", 7)):
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
        return shape

    def _one_of(self, at: Located, schema: dict[str, Any], shape: Shape) -> Shape:
        pointer = f"{at.pointer}/oneOf"
        places = self._branches(at, schema, "oneOf")
        shapes = [intersect(shape, self.shape(self.need(place)), pointer) for place in places]
        for j, second in enumerate(shapes):
            for i in range(j):
                both = intersect(shapes[i], second, pointer)
                if not both.is_empty():
                    self.overlaps.append(Overlap(both, pointer, (i, j)))
        return unite(shapes)

    def _branches(self, at: Located, schema: dict[str, Any], keyword: str) -> list[Located]:
        found = schema[keyword]
        if not isinstance(found, list) or not found:
            raise GrammarError(f"{keyword} must be a list of at least one schema", where=f"{at.pointer}/{keyword}")
        return [self.document.child(at, keyword, i) for i in range(len(found))]

    # -- reading keyword values -----------------------------------------------------------------------------------

    def note(self, text: str) -> None:
        """Something the user should know; each text once."""
        self.notes[text] = None

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
