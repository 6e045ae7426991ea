"""Records as the cells of a table: a column for each member that a JSON Schema declares.

Texts are cut, not parsed and written again: what a column holds as JSON stands as the model wrote it, numbers of any
size included.  Nothing here knows CSV, Arrow or a data frame.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from guided.errors import UnsupportedError
from guided.reading.json_pointer import tokens_of

__all__ = ["CellKind", "RecordColumn", "members_of", "record_columns"]

_SPACE = " \t\n\r"
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)
"""Finds where a value ends.  Numbers stay text: Python refuses to read those of thousands of digits."""


class CellKind(Enum):
    """What the cells of a column hold; the values are JSON Schema's names."""

    TEXT = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    JSON = "json"
    """A JSON text: objects, lists of objects, and members whose schema allows several types."""


@dataclass(frozen=True)
class RecordColumn:
    """A member of records; a cell without a value is a member that is null or not there."""

    name: str
    kind: CellKind
    is_list: bool = False
    """Is each cell a list of what ``kind`` says?"""

    def text(self, raw: str | None) -> str | None:
        """The cell as text, from the JSON text of the member: texts as they are, all else as JSON.

        >>> RecordColumn("age", CellKind.INTEGER).text("36"), RecordColumn("name", CellKind.TEXT).text('"Ada"')
        ('36', 'Ada')
        """
        if raw is None or raw == "null":
            return None
        if self.kind is CellKind.TEXT and not self.is_list:
            return str(json.loads(raw))
        return raw

    def value(self, raw: str | None) -> Any:
        """The cell as a value of Python; a number becomes the nearest double.

        >>> RecordColumn("sizes", CellKind.INTEGER, is_list=True).value("[1, 2.0]")
        [1, 2]
        """
        if raw is None or raw == "null":
            return None
        if self.kind is CellKind.JSON:
            return raw
        if self.is_list:
            return [None if each is None else self._scalar(each) for each in json.loads(raw)]
        return self._scalar(json.loads(raw))

    def _scalar(self, value: Any) -> Any:
        if self.kind is CellKind.INTEGER:
            return int(value)
        return float(value) if self.kind is CellKind.NUMBER else value


def members_of(text: str) -> dict[str, str]:
    """The members of a JSON object, each value as its own JSON text.

    ``text`` is an object, as a constraint has written it.

    >>> members_of('{"a": 1e400, "b": [1, {"c": null}]}')
    {'a': '1e400', 'b': '[1, {"c": null}]'}
    """
    found: dict[str, str] = {}
    at = _past_space(text, text.index("{") + 1)
    while text[at] != "}":
        name, at = _DECODER.raw_decode(text, at)
        at = _past_space(text, _past_space(text, at) + 1)
        _, end = _DECODER.raw_decode(text, at)
        found[name] = text[at:end]
        at = _past_space(text, end)
        if text[at] == ",":
            at = _past_space(text, at + 1)
    return found


def _past_space(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at


def record_columns(schema: Any, *, strict: bool = False) -> tuple[RecordColumn, ...]:
    """The columns of the records that a JSON Schema (data) describes, in its order.

    ``strict`` closes objects that do not say otherwise, as in `guided.json_schema`.  Raises `UnsupportedError`
    where a record may be no object, or may have a member that has no column.
    """
    top = _resolved(schema, schema)
    declared = top.get("properties")
    if not isinstance(declared, Mapping) or not declared or _types(top, schema) != {"object"}:
        raise UnsupportedError(
            "the schema is not that of an object with declared members, so there are no columns",
            where="#",
            remedy="Name one column for the JSON texts instead (into).",
        )
    if top.get("patternProperties") or top.get("additionalProperties", not strict) is not False:
        raise UnsupportedError(
            "the schema allows members that it does not declare, which would have no column",
            where="#",
            remedy='Say "additionalProperties": false, or ask for strict objects, or name one column for the JSON'
            " texts (into).",
        )
    return tuple(RecordColumn(name, *_kind(below, schema)) for name, below in declared.items())


_SCALARS = {kind.value: kind for kind in CellKind if kind is not CellKind.JSON}


def _kind(schema: Any, root: Any) -> tuple[CellKind, bool]:
    kind = _only_type(schema, root)
    if kind == "array":
        scalar = _SCALARS.get(_only_type(_items(schema, root), root) or "")
        return (CellKind.JSON, False) if scalar is None else (scalar, True)
    return _SCALARS.get(kind or "", CellKind.JSON), False


def _only_type(schema: Any, root: Any) -> str | None:
    """The one type of all values that are not null; None where there are several."""
    kinds = _types(schema, root) - {"null"}
    if "number" in kinds:
        kinds -= {"integer"}
    return kinds.pop() if len(kinds) == 1 else None


def _items(schema: Any, root: Any) -> Any:
    """The schema of all elements of an array; None where there is none, or first elements have others."""
    top = _resolved(schema, root)
    for branch in top.get("anyOf", ()):
        if _types(branch, root) == {"array"}:
            return _items(branch, root)
    items = top.get("items")
    return items if isinstance(items, Mapping) and "prefixItems" not in top else None


def _types(schema: Any, root: Any) -> set[str]:
    """JSON types that a schema's values may have, as far as it says so at its top; "?" where it does not."""
    top = _resolved(schema, root)
    if isinstance(kind := top.get("type"), (str, list)):
        return {kind} if isinstance(kind, str) else set(kind)
    if "const" in top:
        return {_type_of(top["const"])}
    if isinstance(values := top.get("enum"), list):
        return {_type_of(value) for value in values}
    if isinstance(branches := top.get("anyOf") or top.get("oneOf"), list):
        return set().union(*(_types(branch, root) for branch in branches))
    return {"?"}


def _type_of(value: Any) -> str:
    names = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null", list: "array"}
    return names.get(type(value), "object")


def _resolved(schema: Any, root: Any) -> Mapping[str, Any]:
    """A schema behind its local references; an empty one where a reference cannot be followed here."""
    for _ in range(32):
        if not isinstance(schema, Mapping):
            return {}
        branches = schema.get("allOf")
        if isinstance(branches, list) and len(branches) == 1 and not {"type", "properties"} & schema.keys():
            schema = branches[0]
            continue
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        if not reference.startswith("#") or reference[1:2] not in ("", "/"):
            return {}
        schema = root
        for token in tokens_of(reference[1:]):
            schema = schema.get(token) if isinstance(schema, Mapping) else None
    return {}
