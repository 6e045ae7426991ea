"""What the formats' own parsers make of a text, and whether that is an instance: the oracle of `test_schema_texts`."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import sys
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def is_instance(format: str, text: str, schema: dict[str, Any]) -> bool:
    """Is what the parser makes of the text an instance?  Nor is a text that it does not parse."""
    if format == "csv":
        rows = list(csv.DictReader(io.StringIO(text, newline=""), restkey="", strict=True))
        return all(is_read(ROW, row, schema["items"]) for row in rows) and _counts(len(rows), schema)
    if format == "xml":
        try:
            root = ElementTree.fromstring(text.encode())
        except ElementTree.ParseError:
            return False
        return root.tag == "root" and is_read(root, schema)
    try:
        value = READERS[format](text)
    except Exception:
        return False
    return jsonschema.Draft202012Validator(schema).is_valid(value)


def _yaml(text: str) -> Any:
    yaml = pytest.importorskip("yaml")
    ruamel = pytest.importorskip("ruamel.yaml")
    value = yaml.safe_load(text)
    assert repr(ruamel.YAML(typ="safe", pure=True).load(text)) == repr(value), text
    return value


def _json5(text: str) -> Any:
    return pytest.importorskip("json5").loads(text)


def _toml(text: str) -> Any:
    value = tomllib.loads(text)
    if any(abs(number) > 2**63 for number in _integers(value)):
        raise ValueError("integers have 64 bits, which this parser does not hold to")
    return value


def _integers(value: Any) -> list[int]:
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return [number for part in parts for number in _integers(part)]
    return [value] if isinstance(value, int) else []


READERS: dict[str, Callable[[str], Any]] = {"json5": _json5, "yaml": _yaml, "toml": _toml}

ROW = object()


def is_read(node: Any, *rest: Any) -> bool:
    """Can an element, or a row of cells, be read as an instance of a schema?"""
    if node is ROW:
        cells, schema = rest
        if set(cells) - set(schema["properties"]) or None in cells.values():
            return False
        return all(
            any(_is_scalar(value, of) for value in _scalars(cells[name]))
            or (cells[name] == "" and name not in schema.get("required", ()))
            for name, of in schema["properties"].items()
        )
    (schema,) = rest
    if "anyOf" in schema:
        return any(is_read(node, each) for each in schema["anyOf"])
    kind = schema.get("type")
    children = list(node)
    if kind == "object":
        return _blank(node) and _members(children, schema)
    if kind == "array":
        return _blank(node) and {child.tag for child in children} <= {"item"} and _items(children, schema)
    return not children and any(_is_scalar(value, schema) for value in _scalars(node.text or ""))


def _members(children: list[Any], schema: dict[str, Any]) -> bool:
    found: dict[str, list[Any]] = {}
    for child in children:
        found.setdefault(child.tag, []).append(child)
    if set(found) - set(schema["properties"]):
        return False
    for name, of in schema["properties"].items():
        elements = found.get(name, [])
        if of.get("type") == "array":
            if not elements and name not in schema.get("required", ()):
                continue
            if not _items(elements, of):
                return False
        elif (
            len(elements) > 1
            or (not elements and name in schema.get("required", ()))
            or (elements and not is_read(elements[0], of))
        ):
            return False
    return True


def _items(elements: list[Any], schema: dict[str, Any]) -> bool:
    return _counts(len(elements), schema) and all(is_read(element, schema["items"]) for element in elements)


def _counts(n: int, schema: dict[str, Any]) -> bool:
    return schema.get("minItems", 0) <= n <= schema.get("maxItems", n)


def _blank(node: Any) -> bool:
    return not "".join([node.text or "", *[child.tail or "" for child in node]]).strip()


def _scalars(text: str) -> list[Any]:
    """Everything that a text can be read as."""
    found: list[Any] = [text]
    if text == "":
        found.append(None)
    with contextlib.suppress(ValueError):
        found.append(json.loads(text))
    return found


def _is_scalar(value: Any, schema: dict[str, Any]) -> bool:
    return not isinstance(value, dict | list) and jsonschema.Draft202012Validator(schema).is_valid(value)
