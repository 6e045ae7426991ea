"""What may come next in a JSON Schema that is being written: our own engine over the meta-schema of draft 7.

The meta-schema says of every text whether it can still become a schema.  Suggestions are texts from a list, those
behind which it can; names that a schema is free to choose, such as those of properties, are not suggested.
"""

from __future__ import annotations

from collections.abc import Container
from functools import lru_cache
from typing import Any

import jsonschema

import guided
from guided.constraint.constraint import Constraint
from guided.errors import TextError
from guided.reading.json_pointer import pointer_of
from guided.reading.json_stream import JsonStream
from guided.server.api.shapes.extras import CompleteAnswer, Suggestion

__all__ = ["suggested"]

KEYWORDS = (
    "type", "properties", "required", "items", "enum", "const", "additionalProperties", "description", "title",
    "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern",
    "format", "minItems", "maxItems", "uniqueItems", "contains", "minProperties", "maxProperties", "patternProperties",
    "propertyNames", "dependencies", "allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref", "$defs",
    "definitions", "default", "examples",
)  # fmt: skip
"""The commonest first, as an editor lists them."""

NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependencies", "dependentSchemas"})
"""Keywords whose members have names of the author's own."""

DATA = frozenset({"enum", "const", "default", "examples"})
"""Keywords whose values are no schemas."""

TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
FORMATS = ("date-time", "date", "time", "email", "uri", "uuid", "ipv4", "ipv6", "hostname", "regex")
PLAIN = ("true", "false", "{", "[", "0", '""')


@lru_cache(maxsize=1)
def _meta() -> Constraint:
    """The meta-schema over bytes, in any spelling and order."""
    vocabulary = guided.Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), None], eos_ids=[256])
    schema = jsonschema.Draft7Validator.META_SCHEMA
    return guided.compile(guided.json_schema(schema, spelling="any", order="any"), vocabulary)


def suggested(text: str) -> CompleteAnswer:
    """What may be put behind ``text``.

    >>> [one.insert for one in suggested('{"type": "nu').suggestions]
    ['mber"', 'll"']
    """
    meta = _meta()
    state = meta.advance_bytes(meta.start, text.encode())
    stream = JsonStream()
    try:
        stream.append(text)
    except TextError:
        return CompleteAnswer(valid=False, suggestions=[], pointer=None)
    path = stream.path
    pointer = None if path is None else pointer_of(path)
    if not state:
        return CompleteAnswer(valid=False, suggestions=[], pointer=pointer)
    begun = _open_string(text)
    base = text if begun is None else text[:begun]
    partial = "" if begun is None else text[begun:]
    before = meta.advance_bytes(meta.start, base.encode())
    found: list[Suggestion] = []

    def add(whole: str, label: str, kind: str, more: str = "") -> None:
        if not whole.startswith(partial) or whole == partial:
            return
        if meta.advance_bytes(before, (whole + more).encode()):
            found.append(Suggestion(insert=whole[len(partial) :] + more, label=label, kind=kind))  # type: ignore[arg-type]

    names = _is_name_place(meta, before)
    if names and _holds_keywords(path or ()):
        known = _members(stream.value, path or ())
        for keyword in KEYWORDS:
            if keyword not in known:
                add(f'"{keyword}"', keyword, "keyword", ": ")
    elif not names:
        last = path[-1] if path else None
        in_format = last == "format" and _holds_keywords((path or ())[:-1])
        words = FORMATS if in_format else TYPES
        for word in words:
            # Where any string may stand, types are no better than other words.
            if in_format or not meta.advance_bytes(before, b'"\x20'):
                add(f'"{word}"', word, "value")
        if not partial:
            for word in PLAIN:
                add(word, word, "value")
    if not partial:
        for mark, label in ((", ", ","), ("}", "}"), ("]", "]"), (": ", ":")):
            add(mark, label, "punctuation")
    return CompleteAnswer(valid=True, suggestions=found, pointer=pointer)


def _open_string(text: str) -> int | None:
    """Where the string begins that the text ends in; None outside of one."""
    start: int | None = None
    escaped = False
    for at, character in enumerate(text):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = start is not None
        elif character == '"':
            start = at if start is None else None
    return start


def _is_name_place(meta: Constraint, state: int) -> bool:
    """Whether a member's name comes next: a string, behind which there is a colon."""
    return bool(meta.advance_bytes(state, b'"title":'))


def _holds_keywords(path: tuple[str | int, ...]) -> bool:
    """Whether the object at a path of a schema is a schema, and no map of names or plain data."""
    is_schema = True
    for key in path:
        if isinstance(key, int):
            continue
        if is_schema and key in DATA:
            return False
        is_schema = not (is_schema and key in NAMED)
    return is_schema


def _members(value: Any, path: tuple[str | int, ...]) -> Container[str]:
    """The names that the object at a path of a value has so far."""
    for key in path:
        if isinstance(value, dict):
            value = value.get(str(key))
        else:
            value = value[key] if isinstance(value, list) and isinstance(key, int) and key < len(value) else None
    return value if isinstance(value, dict) else ()
