"""Schema objects of OpenAPI to JSON Schema 2020-12, with the schemas that they refer to as ``$defs``.

Version 3.0 has keywords of its own, and another reading of some that JSON Schema has; 3.1 has JSON Schema's.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any
from urllib.parse import quote

from guided.errors import GrammarError, UnsupportedError
from guided.grammar.json_schema.reading.document import ONE_SCHEMA, SCHEMA_LISTS, SCHEMA_MAPS
from guided.grammar.openapi.document import OpenApi, Version, escape

__all__ = ["Direction", "Schemas"]


class Direction(Enum):
    """Who writes a value: in 3.0, members that are only read or only written are not in the other's."""

    REQUEST = "readOnly"
    RESPONSE = "writeOnly"


_COMPONENTS = "#/components/schemas/"
_KEYWORDS_OF_30 = {
    "title", "multipleOf", "maximum", "exclusiveMaximum", "minimum", "exclusiveMinimum", "maxLength", "minLength",
    "pattern", "maxItems", "minItems", "uniqueItems", "maxProperties", "minProperties", "required", "enum", "type",
    "allOf", "oneOf", "anyOf", "not", "items", "properties", "additionalProperties", "description", "format",
    "default", "nullable", "discriminator", "readOnly", "writeOnly", "xml", "externalDocs", "example", "deprecated",
}  # fmt: skip
"""The schema object of OpenAPI 3.0.3 may have no others, but for extensions."""
_ANNOTATIONS = frozenset(("discriminator", "xml", "externalDocs", "example", "nullable"))
"""Keywords of OpenAPI that say nothing more of which values are valid, once the others are read.

A discriminator "MUST NOT change the validation outcome" (3.1.1); 3.0.3 calls it a hint.
"""
_IDENTIFIERS = ("$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef", "$recursiveAnchor")


class Schemas:
    """Schemas of one document, copied together with what they refer to."""

    def __init__(self, document: OpenApi, direction: Direction) -> None:
        self._document, self._direction = document, direction
        self.definitions: dict[str, Any] = {}
        """What was referred to so far, under names that `whole` brings in as ``$defs``."""

    def whole(self, schema: Any) -> dict[str, Any]:
        """A copied schema with all that it refers to."""
        body = schema if isinstance(schema, dict) else {"allOf": [schema]}
        defined = {"$defs": self.definitions} if self.definitions else {}
        return {"$schema": "https://json-schema.org/draft/2020-12/schema", **body, **defined}

    def copy(self, schema: Any, pointer: str) -> Any:
        """A schema of the document, at ``pointer``, as JSON Schema; refused where it cannot be read as that."""
        if isinstance(schema, bool) and self._document.version is Version.V31:
            return schema
        if not isinstance(schema, Mapping):
            raise GrammarError("a schema is an object", where=pointer, remedy="Correct the document.")
        if self._document.version is Version.V31:
            return self._copy_31(schema, pointer)
        if "$ref" in schema:
            # What stands beside it "SHALL be ignored".
            return self._reference(schema["$ref"], pointer)
        return self._copy_30(schema, pointer)

    def _reference(self, reference: Any, pointer: str) -> dict[str, Any]:
        if not isinstance(reference, str):
            raise GrammarError("a reference is a text", where=f"{pointer}/$ref", remedy="Correct the document.")
        target = self._document.at(reference, f"{pointer}/$ref")
        name = reference.removeprefix(_COMPONENTS)
        if "/" in name:
            name = reference.removeprefix("#/")
        if name not in self.definitions:
            self.definitions[name] = True  # it may come back to itself
            self.definitions[name] = self.copy(target, reference)
        return {"$ref": f"#/$defs/{quote(escape(name), safe='~')}"}

    def _inside(self, schema: Mapping[str, Any], pointer: str) -> dict[str, Any]:
        """The keywords as they are, and the schemas in them copied."""
        made: dict[str, Any] = {}
        for keyword, value in schema.items():
            place = f"{pointer}/{escape(keyword)}"
            if keyword in SCHEMA_MAPS and isinstance(value, Mapping):
                # Definitions are copied where something refers to them.
                if keyword not in ("$defs", "definitions"):
                    made[keyword] = {
                        name: each if isinstance(each, list) else self.copy(each, f"{place}/{escape(name)}")
                        for name, each in value.items()
                    }
            elif keyword in SCHEMA_LISTS and isinstance(value, list) and keyword != "items":
                made[keyword] = [self.copy(each, f"{place}/{number}") for number, each in enumerate(value)]
            elif keyword in ONE_SCHEMA:
                # 3.0 has truth values in this one place.
                whole = keyword == "additionalProperties" and isinstance(value, bool)
                made[keyword] = value if whole else self.copy(value, place)
            elif keyword not in _ANNOTATIONS and not keyword.startswith("x-"):
                made[keyword] = value
        return made

    def _copy_31(self, schema: Mapping[str, Any], pointer: str) -> dict[str, Any]:
        for keyword in _IDENTIFIERS:
            if keyword in schema:
                raise UnsupportedError(
                    f"{keyword} in a schema of an OpenAPI document",
                    where=f"{pointer}/{keyword}",
                    remedy=f"Refer to schemas by {_COMPONENTS}NAME.",
                )
        dialect = schema.get("$schema", "https://json-schema.org/draft/2020-12/schema")
        if dialect != "https://json-schema.org/draft/2020-12/schema":
            raise UnsupportedError(
                f"a schema of the dialect {dialect}", where=f"{pointer}/$schema", remedy="Write it in draft 2020-12."
            )
        made = self._inside(
            {keyword: value for keyword, value in schema.items() if keyword not in ("$ref", "$schema")}, pointer
        )
        return made if "$ref" not in schema else {**self._reference(schema["$ref"], pointer), **made}

    def _copy_30(self, schema: Mapping[str, Any], pointer: str) -> dict[str, Any]:
        for keyword in schema:
            if keyword not in _KEYWORDS_OF_30 and not keyword.startswith("x-"):
                raise GrammarError(
                    f"OpenAPI 3.0 has no keyword {keyword!r}",
                    where=f"{pointer}/{escape(keyword)}",
                    remedy="Leave it out, or make the document one of version 3.1.",
                )
        kind = schema.get("type")
        if kind is not None and kind not in ("array", "boolean", "integer", "number", "object", "string"):
            raise GrammarError(
                "a type of OpenAPI 3.0 is one name, of array, boolean, integer, number, object and string",
                where=f"{pointer}/type",
                remedy='Write "nullable: true" for null, and anyOf for several types.',
            )
        made = self._inside(schema, pointer)
        if kind is not None and schema.get("nullable") is True:
            # It means nothing without a type (3.0.3), and adds no null to an enum.
            made["type"] = [kind, "null"]
        for bound in ("minimum", "maximum"):
            self._bound(made, bound, f"exclusive{bound.capitalize()}", pointer)
        self._hide(schema, made, pointer)
        return made

    def _bound(self, made: dict[str, Any], bound: str, exclusive: str, pointer: str) -> None:
        """The truth value that says whether a bound is one of the values, as draft 6 and later say it."""
        said = made.pop(exclusive, False)
        if not isinstance(said, bool):
            raise GrammarError(
                f"{exclusive} of OpenAPI 3.0 is true or false",
                where=f"{pointer}/{exclusive}",
                remedy=f'Write "{bound}: {said}" and "{exclusive}: true".',
            )
        if said and bound not in made:
            raise GrammarError(
                f"{exclusive} without {bound}", where=f"{pointer}/{exclusive}", remedy=f"Write {bound} or leave it out."
            )
        if said:
            made[exclusive] = made.pop(bound)

    def _hide(self, schema: Mapping[str, Any], made: dict[str, Any], pointer: str) -> None:
        """Take out members that the other side writes: their requirement "will take effect" on that side only."""
        hidden = []
        for name, member, place in self._document.members(schema, "properties", pointer):
            found, _ = self._document.resolved(member, place)
            if found.get(self._direction.value) is True:
                made["properties"][name] = False
                hidden.append(name)
        if hidden and "required" in made:
            made["required"] = [name for name in made["required"] if name not in hidden]
            if not made["required"]:
                del made["required"]
