"""Requests of each kind, and what holds for their answers."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from jsonschema import Draft202012Validator

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[A-Z][a-z]{1,8}$"},
        "age": {"type": "integer", "multipleOf": 7, "minimum": 20, "maximum": 60},
        "tags": {"type": "array", "items": {"enum": ["a", "b", "c"]}, "uniqueItems": True, "maxItems": 3},
    },
    "required": ["name", "age", "tags"],
    "unevaluatedProperties": False,
}

KINDS: dict[str, tuple[dict[str, Any], Callable[[str], bool]]] = {
    "json": ({"json": PERSON}, lambda text: valid(PERSON, text)),
    "regex": ({"regex": r"(?=[a-z]*[xyz])[a-z]{5}(?<!q)"}, lambda text: bool(re.fullmatch("[a-z]{4}[a-pr-z]", text))),
    "choice": ({"choice": ["yes", "no", "perhaps"]}, lambda text: text in ("yes", "no", "perhaps")),
    "gbnf": ({"grammar": 'root ::= ("ab" | "c")"d"'}, lambda text: text in ("abd", "cd")),
    "lark": ({"grammar": 'start: "x" /[0-9]{3}/'}, lambda text: bool(re.fullmatch("x[0-9]{3}", text))),
    "tag": (
        {
            "structural_tag": json.dumps({
                "type": "structural_tag",
                "format": {
                    "type": "tag", "begin": "<f>", "end": "</f>",
                    "content": {"type": "json_schema", "json_schema": {"type": "integer", "multipleOf": 11, "maximum": 99, "minimum": 1}},
                },
            })
        },
        lambda text: bool(match := re.fullmatch(r"<f>\s*(\d+)\s*</f>", text)) and int(match[1]) % 11 == 0,
    ),
}  # fmt: skip


def valid(schema: Any, text: str) -> bool:
    """Whether a text is JSON and valid; whatever is no JSON is not."""
    try:
        return bool(Draft202012Validator(schema).is_valid(json.loads(text)))
    except ValueError:
        return False


def numbered(n: int) -> dict[str, Any]:
    """A schema that no other number has, and whose texts are short."""
    return {
        "type": "object",
        "properties": {
            f"key{n}": {"type": "integer", "multipleOf": n + 2, "minimum": 1, "maximum": 1000},
            "kind": {"enum": [f"k{n}", f"l{n}"]},
        },
        "required": [f"key{n}", "kind"],
        "additionalProperties": False,
    }
