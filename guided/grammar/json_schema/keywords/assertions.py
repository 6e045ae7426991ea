"""The assertions of one schema, type by type: what its own keywords say about numbers, strings, arrays, objects.

Keywords that apply other schemas to the same value are in `guided.grammar.json_schema.keywords.normalise`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from guided.errors import GrammarError
from guided.grammar.json_schema.keywords import patterns
from guided.grammar.json_schema.keywords.formats import (
    Formats,
    asserts_format,
    format_language,
    format_note,
    format_numbers,
)
from guided.grammar.json_schema.numbers import ranges as numbers
from guided.grammar.json_schema.numbers.ranges import ANY_NUMBER, NumberRange, exact
from guided.grammar.json_schema.reading.document import Document, Located, Objects, Standing, kind_name
from guided.grammar.json_schema.sets import strings
from guided.grammar.json_schema.sets.algebra import arranged, intersect_objects
from guided.grammar.json_schema.sets.shape import (
    ANY_ARRAY,
    ANY_OBJECT,
    FALSE,
    TRUE,
    ArrayShape,
    Classes,
    Count,
    Need,
    ObjectShape,
    Shape,
    class_need,
    is_false,
)
from guided.grammar.json_schema.sets.strings import ANY_STRING, StringSet
from guided.grammar.regular.expr import Expr, alternation
from guided.grammar.regular.texts import CONTENT

_TYPES = frozenset(("null", "boolean", "number", "integer", "string", "array", "object"))
_NUMERIC = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "format"))
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
VALIDATION = (
    frozenset(("type", "enum", "const", "required", "dependentRequired", "minContains", "maxContains", "uniqueItems"))
    | frozenset(("minItems", "maxItems", "minLength", "maxLength", "pattern", "minProperties", "maxProperties"))
    | (_NUMERIC - {"format"})
)
"""The keywords of the validation vocabulary, which a meta-schema may leave out."""
IN_PLACE = frozenset(
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
        "unevaluatedItems",
        "unevaluatedProperties",
    )
)
APPLICATORS = IN_PLACE - {"enum", "const"}
REFERENCES = (("$ref", 4), ("$recursiveRef", 2019), ("$dynamicRef", 2020))
"""Keywords that refer, and the draft from which on they do; ``$recursiveRef`` is of 2019-09 alone."""
ASSERTING = IN_PLACE | VALIDATION | _STRINGS | _ARRAYS | _OBJECTS
"""Every keyword that can make a difference to what is valid."""


class Assertions(ABC):
    """Reads the assertion keywords of a schema; needs of subschemas come from the class below."""

    def __init__(self, document: Document, formats: Formats) -> None:
        self.document = document
        self._formats = formats
        self._narrowed_names: str | None = None
        """Where ``propertyNames`` asks for host names, of which not all are told."""

    @abstractmethod
    def need(self, at: Located) -> Need:
        """What a place asks for, references followed."""

    @abstractmethod
    def under(self, at: Located, keyword: str, name: str | int | None = None) -> Need:
        """What the subschema under a keyword asks for, or that under a name or index below it."""

    @abstractmethod
    def shape(self, need: Need) -> Shape:
        """The values that all atoms of a need allow."""

    def assertions(self, at: Located, schema: dict[str, Any]) -> Shape:
        """The values that the schema's own assertions allow, ``enum`` and ``const`` apart."""
        types = self._type(at, schema)
        if types == ("object",):
            return Shape(objects=(ANY_OBJECT,) if _OBJECTS.isdisjoint(schema) else self._object(at, schema))
        if types == ("string",):
            return Shape(strings=(ANY_STRING,) if _STRINGS.isdisjoint(schema) else self._string(at, schema))
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
        if isinstance(names, str) and names in _TYPES:
            return (names,)
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
            if isinstance(flag, bool) and (at.resource.dialect.order == 4 or self.document.has_forms_of_old):
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
        if "format" in schema:
            form = format_numbers(schema["format"])
            if form is not None and asserts_format(self._formats, self.document, at, schema):
                result = result and numbers.intersect(result, form)
        return result

    def _string(self, at: Located, schema: dict[str, Any]) -> tuple[StringSet, ...]:
        low = self.count(at, schema, "minLength") or 0
        high = self.count(at, schema, "maxLength")
        result: StringSet | None = StringSet(None, None, low, high) if low or high is not None else ANY_STRING
        if "pattern" in schema:
            pointer = f"{at.pointer}/pattern"
            language = patterns.pattern_language(schema["pattern"], pointer)
            result = result and strings.intersect(result, StringSet(None, language))
        if "format" in schema and asserts_format(self._formats, self.document, at, schema):
            form = format_language(schema["format"], at.resource.dialect.order)
            note = format_note(schema["format"])
            if note and note not in self.document.notes:
                self.document.notes.append(note)
            if form is not None:
                result = result and strings.intersect(result, StringSet(None, form))
            elif schema["format"] == "hostname":
                result = result and strings.intersect(result, StringSet(hostname=True))
            elif schema["format"] == "regex":
                result = result and strings.intersect(result, StringSet(regex=True))
            elif schema["format"] == "idn-hostname":
                result = result and strings.intersect(result, StringSet(host=True))
        return () if result is None or result.is_surely_empty() else (result,)

    def _array(self, at: Located, schema: dict[str, Any]) -> tuple[ArrayShape, ...]:
        dialect = at.resource.dialect
        child = self.document.child
        prefix: tuple[Need, ...] = ()
        rest = TRUE
        items = schema.get("items", True)
        legacy = dialect.order <= 2019 or self.document.has_forms_of_old
        if isinstance(items, list) and legacy:
            prefix = tuple(self.under(at, "items", i) for i in range(len(items)))
            if "additionalItems" in schema:
                rest = self.under(at, "additionalItems")
        elif "items" in schema:
            if isinstance(items, list):
                raise GrammarError(
                    "items must be a schema; a list is how older drafts wrote prefixItems",
                    where=f"{at.pointer}/items",
                    remedy="Use prefixItems, or say an older draft in $schema.",
                )
            rest = self.under(at, "items")
        if "prefixItems" in schema and dialect.order >= 2020:
            found = schema["prefixItems"]
            if not isinstance(found, list):
                raise GrammarError("prefixItems must be a list of schemas", where=f"{at.pointer}/prefixItems")
            prefix = tuple(self.under(at, "prefixItems", i) for i in range(len(found)))
        low = self.count(at, schema, "minItems") or 0
        high = self.count(at, schema, "maxItems")
        if high is not None and high < low:
            return ()
        unique = schema.get("uniqueItems") is True or None
        counts: tuple[Count, ...] = ()
        if "contains" in schema and dialect.order >= 6:
            counted = dialect.order >= 2019
            least = self.count(at, schema, "minContains") if counted else None
            most = self.count(at, schema, "maxContains") if counted else None
            counts = (Count(self.need(child(at, "contains")), 0, 1 if least is None else least, most),)
        if not counts and unique is None:
            return (ArrayShape(prefix, rest, low, high),)
        return tuple(arranged(ArrayShape(prefix, rest, low, high, counts, unique)))

    def _object(self, at: Located, schema: dict[str, Any]) -> tuple[ObjectShape, ...]:
        dialect = at.resource.dialect
        child = self.document.child
        declared: dict[str, Need] = {}
        classes: Classes = ((CONTENT, TRUE),)
        if "additionalProperties" in schema:
            classes = ((CONTENT, self.under(at, "additionalProperties")),)
        elif at.standing is Standing.WHOLE and _closes_itself(schema):
            classes = ((CONTENT, FALSE),)
        found: list[tuple[Expr, Need]] = []
        if "patternProperties" in schema:
            for pattern in self.mapping(at, schema, "patternProperties"):
                place = child(at, "patternProperties", pattern)
                found.append((patterns.pattern_language(pattern, place.pointer), self.need(place)))
            classes = patterns.partition(found, classes[0][1], f"{at.pointer}/patternProperties")
        if "properties" in schema:
            for name in self.mapping(at, schema, "properties"):
                need = self.under(at, "properties", name)
                for language, more in found:
                    if patterns.has_name(language, name):
                        need = need | more
                declared[name] = need
        required = self._required(at, schema)
        if self.document.objects is Objects.STRICT and at.standing is not Standing.LETTER:
            possible = [name for name, need in declared.items() if not is_false(need)]
            required = list(dict.fromkeys((*required, *possible)))
        for name in required:
            if name not in declared:
                declared[name] = class_need(classes, name)
        low = self.count(at, schema, "minProperties") or 0
        high = self.count(at, schema, "maxProperties")
        if high is not None and high < max(low, len(required)):
            return ()
        result = ObjectShape(declared, classes, frozenset(required), low, high)
        names = self._names(at) if "propertyNames" in schema and dialect.order >= 6 else None
        return (result,) if names is None else tuple(intersect_objects(result, names))

    def _names(self, at: Located) -> ObjectShape | None:
        """``propertyNames`` as the objects whose every name is in its strings; None when that is all names."""
        found = self.shape(self.need(self.document.child(at, "propertyNames"))).strings
        # The checker knows of values, not of names: for those the format ``regex`` is an annotation.
        allowed = [item if item.regex is None else replace(item, regex=None) for item in found]
        if ANY_STRING in allowed:
            return None
        if any(item.host is not None or item.hostname is not None for item in allowed):
            self._narrowed_names = f"{at.pointer}/propertyNames"
        if len(allowed) == 1 and allowed[0].words is not None:
            return ObjectShape(dict.fromkeys(sorted(allowed[0].words), TRUE), ((CONTENT, FALSE),))
        language = alternation([item.content() for item in allowed])
        return ObjectShape({}, patterns.partition([(language, TRUE)], FALSE, f"{at.pointer}/propertyNames"))

    def _required(self, at: Located, schema: dict[str, Any]) -> list[str]:
        names = schema.get("required", [])
        if isinstance(names, bool):
            return []  # draft 3's, of which the report and a note tell
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise GrammarError(
                "required must be a list of property names",
                where=f"{at.pointer}/required",
                remedy="List the names in the schema of the object.",
            )
        return names

    def count(self, at: Located, schema: dict[str, Any], keyword: str) -> int | None:
        """The value of a keyword that counts, or None when it is absent.

        Raises `GrammarError` for what is no whole number of at least 0.
        """
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

    def mapping(self, at: Located, schema: dict[str, Any], keyword: str) -> Iterable[str]:
        """The names in a keyword that maps names to schemas.  Raises `GrammarError` for what is no object."""
        value = schema[keyword]
        if not isinstance(value, dict):
            raise GrammarError(
                f"{keyword} must be an object of schemas, not {kind_name(value)}", where=f"{at.pointer}/{keyword}"
            )
        return value


def _closes_itself(schema: dict[str, Any]) -> bool:
    """Does a schema declare members, with no others applied to the same value that might declare more?"""
    return ("properties" in schema or "patternProperties" in schema) and APPLICATORS.isdisjoint(schema)
