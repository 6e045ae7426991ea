"""Protobuf messages as JSON Schemas: the JSON mapping of protobuf, in the spelling that its libraries write.

What is valid against the schema is read by ``google.protobuf.json_format.Parse``, and what ``MessageToJson`` writes,
with unset fields left out or not, is valid against it.  The mapping's other spellings, which a parser takes as well,
are none of it: original field names, numbers as texts, numbers of enums, null for what is not set.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

from guided.errors import UnsupportedError

__all__ = ["message_schema"]

_INTEGERS = {
    "int32": (-(2**31), 2**31 - 1),
    "uint32": (0, 2**32 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint64": (0, 2**64 - 1),
}
"""By the type that values have in programs; encodings such as ``sint32`` and ``fixed32`` have the same."""
_LARGEST = {"float": float.fromhex("0x1.fffffep+127"), "double": float.fromhex("0x1.fffffffffffffp+1023")}
_BASE64 = r"^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$"


def message_schema(message: Any) -> dict[str, Any]:
    """The schema of a message's JSON; ``message`` is a generated class or its descriptor.

    Raises `UnsupportedError`, with the field's full name, for groups, messages that may have
    extensions, and the messages of ``google.protobuf`` that the mapping writes in ways of their own.  Parsers read
    messages inside each other up to a depth, 100 in Python, which no schema says.

    >>> from google.protobuf.source_context_pb2 import SourceContext
    >>> message_schema(SourceContext)["$defs"]["google.protobuf.SourceContext"]["properties"]
    {'fileName': {'type': 'string'}}
    """
    descriptor = getattr(message, "DESCRIPTOR", message)
    definitions: dict[str, Any] = {}
    _define(descriptor, definitions)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$ref": f"#/$defs/{descriptor.full_name}",
        "$defs": definitions,
    }


_OWN_WAYS = frozenset(
    f"google.protobuf.{name}"
    for name in (
        "Any", "BoolValue", "BytesValue", "DoubleValue", "Duration", "FieldMask", "FloatValue", "Int32Value",
        "Int64Value", "ListValue", "StringValue", "Struct", "Timestamp", "UInt32Value", "UInt64Value", "Value",
    )
)  # fmt: skip
"""Messages whose JSON is no object of their fields."""


def _define(descriptor: Any, definitions: dict[str, Any]) -> None:
    """Add the definitions of a message and of all messages in it."""
    if descriptor.full_name in _OWN_WAYS:
        raise UnsupportedError(
            f"the message {descriptor.full_name}, whose JSON is not an object of its fields",
            where=descriptor.full_name,
            remedy="Write the schema of this part by hand.",
        )
    if descriptor.is_extendable:
        raise UnsupportedError(
            "a message that may have extensions, which its descriptor does not name",
            where=descriptor.full_name,
            remedy="Leave the extension ranges out of the message.",
        )
    properties: dict[str, Any] = {}
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    definitions[descriptor.full_name] = schema
    required = [field.json_name for field in descriptor.fields if field.is_required]
    if required:
        schema["required"] = required
    apart = [
        {"not": {"required": [one.json_name, other.json_name]}}
        for group in descriptor.oneofs
        for one, other in combinations(group.fields, 2)
    ]
    if apart:
        schema["allOf"] = apart
    for field in descriptor.fields:
        properties[field.json_name] = _field(field, definitions)


def _field(field: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    if field.type == field.TYPE_GROUP:
        raise UnsupportedError("a group", where=field.full_name, remedy="Make it a message of its own.")
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        values = _value(entry.fields_by_name["value"], definitions)
        names = _key(entry.fields_by_name["key"])
        return {"type": "object", "additionalProperties": values} | ({"propertyNames": names} if names else {})
    value = _value(field, definitions)
    return {"type": "array", "items": value} if field.is_repeated else value


def _value(field: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    match _kind(field):
        case "message":
            if field.message_type.full_name not in definitions:
                _define(field.message_type, definitions)
            return {"$ref": f"#/$defs/{field.message_type.full_name}"}
        case "enum":
            if field.enum_type.full_name == "google.protobuf.NullValue":
                raise UnsupportedError(
                    "the null of google.protobuf.Value", where=field.full_name, remedy="Leave it out."
                )
            return {"enum": [value.name for value in field.enum_type.values]}
        case "string":
            return {"type": "string"}
        case "bytes":
            return {"type": "string", "pattern": _BASE64}
        case "bool":
            return {"type": "boolean"}
        case "float" | "double" as kind:
            most = _LARGEST[kind]
            finite = {"type": "number", "minimum": -most, "maximum": most}
            return {"anyOf": [finite, {"enum": ["NaN", "Infinity", "-Infinity"]}]}
        case "int32" | "uint32" as kind:
            low, high = _INTEGERS[kind]
            return {"type": "integer", "minimum": low, "maximum": high}
        case kind:
            # JSON's numbers are doubles in many programs: those of 64 bits are written as texts.
            return {"type": "string", "pattern": _integers(*_INTEGERS[kind])}


def _key(field: Any) -> dict[str, Any]:
    kind = _kind(field)
    if kind == "bool":
        return {"enum": ["true", "false"]}
    return {} if kind == "string" else {"pattern": _integers(*_INTEGERS[kind])}


def _kind(field: Any) -> str:
    """The type that values of the field have in programs."""
    kinds = {
        field.CPPTYPE_INT32: "int32", field.CPPTYPE_INT64: "int64", field.CPPTYPE_UINT32: "uint32",
        field.CPPTYPE_UINT64: "uint64", field.CPPTYPE_DOUBLE: "double", field.CPPTYPE_FLOAT: "float",
        field.CPPTYPE_BOOL: "bool", field.CPPTYPE_ENUM: "enum", field.CPPTYPE_MESSAGE: "message",
    }  # fmt: skip
    return kinds.get(field.cpp_type) or ("bytes" if field.type == field.TYPE_BYTES else "string")


def _integers(low: int, high: int) -> str:
    """A pattern of the integers from ``low``, which is 0 or less, to ``high``, as programs write them."""
    options = ["0", *_up_to(high)]
    if low < 0:
        options += [f"-{option}" for option in _up_to(-low)]
    return f"^(?:{'|'.join(options)})$"


def _up_to(most: int) -> Iterator[str]:
    """Patterns of the integers from 1 to ``most``: by the first digit that is less than that of ``most``."""
    digits = str(most)
    if len(digits) > 1:
        yield f"[1-9][0-9]{{0,{len(digits) - 2}}}"
    for place, digit in enumerate(digits):
        least = 1 if place == 0 else 0
        if int(digit) > least:
            yield f"{digits[:place]}[{least}-{int(digit) - 1}][0-9]{{{len(digits) - place - 1}}}"
    yield digits
