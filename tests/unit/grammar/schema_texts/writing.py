"""Writes values in the style of each format, as docs/SCHEMA_TEXTS.md has it: what the languages must hold."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping
from typing import Any
from xml.sax.saxutils import escape

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
_PLAIN = re.compile(r"[A-Za-z]([A-Za-z ,.'/()é-]*[A-Za-z.)é])?\Z")
_RESERVED = {"yes", "no", "true", "false", "on", "off", "null", "y", "n"}
_LINES = re.compile(r"\S[^\n]*(\n([ ]*\S[^\n]*)?)*\n?\Z")


def write(rng: random.Random, format: str, value: Any, schema: Mapping[str, Any]) -> str | None:
    """The text of a value, None where the format has none."""
    match format:
        case "json5":
            return json5(rng, value)
        case "yaml":
            return yaml(rng, value, 0).removeprefix(" ") + "\n"
        case "toml":
            return None if _holds_null(value) or not isinstance(value, dict) else toml(value, schema, "")
        case "csv":
            return table(rng, value, schema)
        case _:
            return "<root>" + element(value, "root")


def _holds_null(value: Any) -> bool:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return value is None or any(map(_holds_null, parts))


def _quoted(text: str) -> str:
    return (
        json.dumps(text, ensure_ascii=False)
        .replace("\x7f", "\\u007f")
        .replace("\u2028", "\\u2028")
        .replace("\x85", "\\u0085")
    )


def json5(rng: random.Random, value: Any) -> str:
    gap = rng.choice(["", " ", "\n  ", "\n  // so\n  ", " /* it is */ "])
    last = rng.choice(["", f",{gap}"])
    if isinstance(value, dict) and value:
        names = [
            name if _NAME.match(name) and "-" not in name and rng.random() < 0.7 else _quoted(name) for name in value
        ]
        members = [f"{name}: {json5(rng, of)}{gap}" for name, of in zip(names, value.values(), strict=True)]
        return f"{{{gap}{f',{gap}'.join(members)}{last}}}"
    if isinstance(value, list) and value:
        return f"[{gap}{f',{gap}'.join(json5(rng, item) + gap for item in value)}{last}]"
    if isinstance(value, str):
        text = _quoted(value)
        return text if rng.random() < 0.5 else "'" + text[1:-1].replace('\\"', '"').replace("'", "\\'") + "'"
    return json.dumps(value)


def yaml(rng: random.Random, value: Any, depth: int) -> str:
    """What stands behind a colon or a dash, without the line break at its end."""
    margin = "  " * depth
    lines = []
    if isinstance(value, dict):
        lines = [f"{margin}{_yaml_name(name)}:{yaml(rng, of, depth + 1)}" for name, of in value.items()]
    elif isinstance(value, list):
        for item in value:
            text = yaml(rng, item, depth + 1)
            lines.append(f"{margin}-{text}" if text[0] == " " else f"{margin}- {text[1 + 2 * (depth + 1) :]}")
    if not lines:
        return " " + _yaml_scalar(rng, value, depth)
    return ("\n" if depth else "") + "\n".join(lines)


def _yaml_name(name: str) -> str:
    return name if _NAME.match(name) and name not in _RESERVED else _quoted(name)


def _yaml_scalar(rng: random.Random, value: Any, depth: int) -> str:
    if not isinstance(value, str):
        return json.dumps(value)
    ways = [_quoted(value)]
    if _PLAIN.match(value) and value.lower() not in _RESERVED:
        ways.append(value)
    if value.isprintable():
        ways.append("'" + value.replace("'", "''") + "'")
    if depth and "\n" in value and _LINES.match(value) and value.replace("\n", "").isprintable():
        margin = "  " * depth
        lines = "\n".join(margin + line if line else "" for line in value.removesuffix("\n").split("\n"))
        if not value.endswith("\n"):
            ways = [f"|-\n{lines}"]
        elif not value.endswith("\n\n"):
            ways = [f"|\n{lines}"]
    return rng.choice(ways)


def toml(value: Mapping[str, Any], schema: Mapping[str, Any], path: str) -> str:
    lines, tables = "", ""
    for name, of in value.items():
        inside = schema.get("properties", {}).get(name, {})
        key = name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _quoted(name)
        at = f"{path}.{key}" if path else key
        if isinstance(of, dict) and inside.get("type") == "object":
            tables += f"[{at}]\n{toml(of, inside, at)}"
        elif (
            isinstance(of, list)
            and inside.get("minItems")
            and inside["items"].get("type") == "object"
            and all(isinstance(item, dict) for item in of)
        ):
            tables += "".join(f"[[{at}]]\n{toml(item, inside['items'], at)}" for item in of)
        else:
            lines += f"{key} = {_inline(of)}\n"
    return lines + tables


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{name if _NAME.match(name) else _quoted(name)} = {_inline(of)}" for name, of in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(_inline, value)) + "]"
    return _quoted(value) if isinstance(value, str) else json.dumps(value)


def table(rng: random.Random, rows: Any, schema: Mapping[str, Any]) -> str | None:
    names = list(schema["items"]["properties"])
    if not isinstance(rows, list) or any(not isinstance(row, dict) or set(row) - set(names) for row in rows):
        return None
    lines = [names, *[["" if row.get(name) is None else _text(row[name]) for name in names] for row in rows]]
    return "".join(",".join(_cell(rng, cell, len(names) == 1) for cell in line) + "\n" for line in lines)


def _cell(rng: random.Random, text: str, alone: bool) -> str:
    special = re.search('[",\x00-\x1f\x7f\x85\u2028]', text) or (alone and not text)
    return '"' + text.replace('"', '""') + '"' if special else text


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def element(value: Any, name: str) -> str:
    """What stands behind an opening tag, with the closing one."""
    if isinstance(value, dict):
        inside = ""
        for key, of in value.items():
            items = of if isinstance(of, list) else [of]
            inside += "".join(f"<{key}>{element(item, key)}" for item in items)
        return f"{inside}</{name}>"
    if isinstance(value, list):
        return "".join(f"<item>{element(item, 'item')}" for item in value) + f"</{name}>"
    text = "" if value is None else _text(value)
    return escape(text, {"\r": "&#13;"}) + f"</{name}>"
