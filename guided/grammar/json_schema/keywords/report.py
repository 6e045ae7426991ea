"""What becomes of each keyword of a schema: masked, checked beside the automaton, an annotation, or refused.

The report walks the schema from its root through everything that can apply to a value, references included; definitions
that nothing refers to are not in it.  It says how a keyword is treated where it stands, not whether it matters: that
``minLength`` beside ``"type": "array"`` never bites is not said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any

from guided.errors import GuidedError
from guided.grammar.json_schema.keywords.assertions import ASSERTING, REFERENCES, VALIDATION
from guided.grammar.json_schema.keywords.formats import (
    CHECKED_FORMATS,
    FORMATS,
    NOTES,
    NUMBER_FORMATS,
    Formats,
    asserts_format,
)
from guided.grammar.json_schema.reading.document import ONE_SCHEMA, SCHEMA_LISTS, SCHEMA_MAPS, Document, Located, escape


class Enforcement(Enum):
    """How a keyword is enforced."""

    MASKED = "masked"
    """By the automaton: no token that breaks it is ever allowed."""
    CHECKED = "checked"
    """By the checker beside the automaton, as exactly; values are compared as they are written."""
    ANNOTATION = "annotation"
    """Not at all: the keyword asserts nothing, here or in this draft."""
    REFUSED = "refused"
    """The schema is not compiled because of it."""


@dataclass(frozen=True, slots=True)
class Line:
    """One keyword: its JSON pointer, how it is enforced, and why, where that is not plain."""

    pointer: str
    enforcement: Enforcement
    why: str = ""


Report = tuple[Line, ...]

_STRUCTURE = frozenset(
    ("$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$vocabulary", "$defs", "definitions")
)
"""Keywords that only say where things are."""

_DRAFTS = {
    "const": (6, 2020),
    "contains": (6, 2020),
    "propertyNames": (6, 2020),
    "if": (7, 2020),
    "then": (7, 2020),
    "else": (7, 2020),
    "additionalItems": (4, 2019),
    "dependencies": (4, 7),
    "dependentRequired": (2019, 2020),
    "dependentSchemas": (2019, 2020),
    "minContains": (2019, 2020),
    "maxContains": (2019, 2020),
    "unevaluatedItems": (2019, 2020),
    "unevaluatedProperties": (2019, 2020),
    "$recursiveRef": (2019, 2019),
    "prefixItems": (2020, 2020),
    "$dynamicRef": (2020, 2020),
}
"""First and last draft of keywords that not all drafts have."""
_FORMS_OF_OLD = frozenset(("additionalItems", "dependencies"))
"""Read in any schema that declares no draft."""
_LEANING = {
    "minContains": ("contains",),
    "maxContains": ("contains",),
    "then": ("if",),
    "else": ("if",),
    "if": ("then", "else"),
    "additionalItems": ("items",),
}
"""Keywords that mean nothing without (one of) others."""
_NOT_OURS = {
    "nullable": 'OpenAPI\'s, without effect in JSON Schema: list "null" in type to allow it',
    "divisibleBy": "draft 3's multipleOf, without effect in later drafts",
    "disallow": "draft 3's not, without effect in later drafts",
    "extends": "draft 3's allOf, without effect in later drafts",
}
"""Keywords that are enforced elsewhere, and in no draft that is read here."""
_BOOLEAN_REQUIRED = "draft 3's, without effect in later drafts: list the name in the required of the object"
_NO_KEYWORD = "no keyword of "
_DROPPED = (_NO_KEYWORD, _BOOLEAN_REQUIRED, *_NOT_OURS.values())
"""How the reasons begin of those that somebody may have meant."""
_BOOLEAN = re.compile(r'"required"\s*:\s*(true|false)')


def lines(document: Document, formats: Formats) -> Iterator[Line]:
    """The report of a schema that compiles, in the order of the schema, references after what refers to them."""
    seen: set[tuple[int, int]] = set()
    queue = [document.root]
    for at in queue:
        key = (id(at.schema), id(at.resource))
        if key in seen or not isinstance(at.schema, dict):
            continue
        seen.add(key)
        for keyword, value in at.schema.items():
            line = _line(document, formats, at, keyword, value)
            if line is not None:
                yield line
                if line.enforcement is not Enforcement.ANNOTATION:
                    queue.extend(_parts(document, at, keyword, value))


def dropped(document: Document, formats: Formats, text: str) -> Iterator[str]:
    """Notes on keywords that assert nothing here and do elsewhere, one for each keyword and reason.

    ``text`` is the schema as JSON text, in which they are looked for first.
    """
    order = document.resource.dialect.order
    foreign = [name for name, (first, last) in _DRAFTS.items() if not first <= order <= last]
    if not any(f'"{name}"' in text for name in (*foreign, *_NOT_OURS)) and _BOOLEAN.search(text) is None:
        return
    found: dict[tuple[str, str], list[str]] = {}
    for line in lines(document, formats):
        if line.enforcement is Enforcement.ANNOTATION and line.why.startswith(_DROPPED):
            found.setdefault((line.pointer.rpartition("/")[2], line.why), []).append(line.pointer)
    for (keyword, why), places in found.items():
        more = f" and {len(places) - 1} more" if len(places) > 1 else ""
        yield f"{keyword} is dropped, at {places[0]}{more}: {why}"


def refusal(error: GuidedError) -> Line:
    """The line of what was refused."""
    return Line(error.where or "#", Enforcement.REFUSED, f"{error.what}. {error.remedy or ''}".rstrip())


def _line(document: Document, formats: Formats, at: Located, keyword: str, value: Any) -> Line | None:
    schema, dialect, pointer = at.schema, at.resource.dialect, f"{at.pointer}/{escape(keyword)}"
    assert isinstance(schema, dict)
    if keyword in _STRUCTURE or (keyword == "id" and dialect.order > 4):
        return None

    def annotation(why: str = "") -> Line:
        return Line(pointer, Enforcement.ANNOTATION, why)

    if keyword != "$ref" and "$ref" in schema and dialect.reference_stands_alone:
        return annotation(f"beside $ref, which stands alone in {dialect.name}")
    if keyword == "format":
        return _format(formats, document, at, pointer, value)
    if keyword in _NOT_OURS:
        return annotation(_NOT_OURS[keyword] if value is not False else "")
    if keyword not in ASSERTING and keyword not in ("then", "else"):
        return annotation()
    first, last = _DRAFTS.get(keyword, (4, 2020))
    old = keyword in _FORMS_OF_OLD and document.has_forms_of_old
    if not old and not first <= dialect.order <= last:
        return annotation(f"{_NO_KEYWORD}{dialect.name}")
    if keyword == "required" and isinstance(value, bool):
        return annotation(_BOOLEAN_REQUIRED if value else "")
    if keyword in VALIDATION and not dialect.asserts:
        return annotation("the meta-schema leaves the validation vocabulary out")
    if keyword in _LEANING and not any(other in schema for other in _LEANING[keyword]):
        return annotation(f"without {' or '.join(_LEANING[keyword])}")
    if keyword == "uniqueItems":
        if value is not True:
            return annotation()
        return Line(pointer, Enforcement.CHECKED, "items are compared as JSON values when they close")
    return Line(pointer, Enforcement.MASKED)


def _format(formats: Formats, document: Document, at: Located, pointer: str, value: Any) -> Line:
    assert isinstance(at.schema, dict)
    known = isinstance(value, str) and (value in FORMATS or value in NUMBER_FORMATS or value in CHECKED_FORMATS)
    if not known:
        return Line(
            pointer, Enforcement.ANNOTATION, NOTES.get(value, "no known format") if isinstance(value, str) else ""
        )
    if not asserts_format(formats, document, at, at.schema):
        return Line(pointer, Enforcement.ANNOTATION, 'not asserted here; formats="assert" changes that')
    how = Enforcement.CHECKED if value in CHECKED_FORMATS else Enforcement.MASKED
    return Line(pointer, how, NOTES.get(value, ""))


def _parts(document: Document, at: Located, keyword: str, value: Any) -> Iterator[Located]:
    """The subschemas under a keyword, and what a reference means."""
    if any(keyword == name for name, _ in REFERENCES):
        yield document.resolve(at, keyword)
    elif keyword in ONE_SCHEMA and isinstance(value, dict):
        yield document.child(at, keyword)
    elif keyword in SCHEMA_LISTS and isinstance(value, list):
        yield from (document.child(at, keyword, i) for i, part in enumerate(value) if isinstance(part, dict))
    elif keyword in SCHEMA_MAPS and isinstance(value, dict):
        yield from (document.child(at, keyword, name) for name, part in value.items() if isinstance(part, dict))
