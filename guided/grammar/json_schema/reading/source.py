"""What a caller may pass as a schema, turned into plain JSON data: data, JSON text, Python types, signatures."""

from __future__ import annotations

import json
from typing import Any

from guided.errors import GrammarError
from guided.grammar.json_schema.reading.document import Schema, kind_name


def is_schema(source: Any) -> bool:
    """Is this a schema itself, as data or JSON text, and no type or callable?"""
    return isinstance(source, bool | dict | str | bytes | bytearray)


def read(source: Any) -> Schema:
    """The schema as a dict or bool; ``source`` is one, JSON text of one, or a Python type or callable."""
    if isinstance(source, bool | dict):
        return source
    if isinstance(source, str | bytes | bytearray):
        return _parse(source)
    from guided.grammar.json_schema.reading.types import schema_of

    return schema_of(source)


def _parse(text: str | bytes | bytearray) -> Schema:
    if not isinstance(text, str):
        try:
            text = text.decode()
        except UnicodeDecodeError as error:
            raise GrammarError(
                "the schema is not UTF-8", where=f"byte {error.start}", remedy="Save it as UTF-8."
            ) from None
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise GrammarError(
            f"the schema is not JSON: {error.msg}",
            where=f"line {error.lineno}, column {error.colno}",
            remedy="Correct the JSON text; a schema in a file must be read first.",
        ) from None
    except RecursionError:
        raise GrammarError("the schema is nested too deeply", remedy="Use $ref.") from None
    if not isinstance(value, bool | dict):
        raise GrammarError(f"a schema must be an object or a boolean, not {kind_name(value)}", where="#")
    return value
