"""Arguments as elements against XGrammar: the same texts are accepted and refused, where XGrammar is exact.

It is not where undeclared arguments are involved (it takes them for declared ones, and only behind those), nor where a
Kimi K3 argument has several types (it takes each type for each value): these are tested apart.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from guided.grammar.xml_arguments.notation import NOTATIONS, ArgumentStyle, JsonType
from tests.amounts import some
from tests.oracle.test_structural_tags_against_xgrammar import Format, Ours, theirs

SCHEMAS: dict[str, Any] = {
    "all types": {
        "type": "object",
        "properties": {
            "s": {"type": "string"},
            "n": {"type": "integer"},
            "e": {"enum": ["x", "y"]},
            "a": {"type": "array", "items": {"type": "integer"}},
            "o": {"type": "object", "properties": {"z": {"type": "boolean"}}, "required": ["z"]},
        },
        "required": ["n"],
    },
    "one of several": {
        "type": "object",
        "properties": {"e": {"enum": ["x", 3, None]}, "u": {"type": ["integer", "boolean"]}},
        "required": ["e"],
    },
    "strings": {
        "type": "object",
        "properties": {"p": {"type": "string", "pattern": "^[ab]+$"}, "l": {"type": "string", "maxLength": 2}},
    },
    "anything": {"type": "object", "properties": {"s": {}}, "required": ["s"]},
    "elsewhere": {"type": "object", "properties": {"s": {"$ref": "#/$defs/x"}}, "$defs": {"x": {"type": "integer"}}},
    "true": True,
    "any object": {"type": "object"},
    "nothing": {"type": "object", "properties": {}},
}  # fmt: skip
LOOSE = {"one of several", "elsewhere"}
"""Where XGrammar takes each type for each value."""
VALUES: dict[JsonType, list[str]] = {
    JsonType.STRING: ["hi", "a", "ab", "x", "y", "abc", "", " x", "3", "a</b"],
    JsonType.NUMBER: ["3", "1", "-2", "40", "1.5"],
    JsonType.BOOLEAN: ["true", "false"],
    JsonType.NULL: ["null"],
    JsonType.OBJECT: ['{"z": true}', '{"z":false}', "{}", '{"q":1}'],
    JsonType.ARRAY: ["[1, 2]", "[]", "[3]", '["a"]'],
}


def element(style: ArgumentStyle, name: str, kind: JsonType, value: str, gap: str = "") -> str:
    notation = NOTATIONS[style]
    return f"{notation.before}{name}{notation.after}{gap}{notation.openings[kind]}{value}{notation.closing}"


def arguments(style: ArgumentStyle, schema: Any, seed: random.Random) -> str:
    properties = schema["properties"] if isinstance(schema, dict) and "properties" in schema else {}
    names = [
        name for name in [*properties, "w"] if seed.random() < (0.7 if name in properties or not properties else 0.1)
    ]
    if seed.random() < 0.1:
        seed.shuffle(names)
    text = seed.choice(["", "\n", " "])
    for name in names:
        kinds = list(JsonType)
        said = properties.get(name, {}).get("type")
        if seed.random() < 0.95 and isinstance(said, str):
            kinds = [JsonType.NUMBER if said == "integer" else JsonType(said)]
        kind = seed.choice(kinds)
        around = seed.choice(["", "", "\n"])
        value = f"{around}{seed.choice(VALUES[kind])}{around}"
        text += element(style, name, kind, value, seed.choice(["", "", "", "\n"])) + seed.choice(["", "\n"])
    return text if seed.random() < 0.95 else text[:-1]


@pytest.mark.parametrize("style", ArgumentStyle)
def test_same_language(style: ArgumentStyle) -> None:
    for name, schema in SCHEMAS.items():
        if style is ArgumentStyle.KIMI_K3 and name in LOOSE:
            continue
        format = {"type": "json_schema", "json_schema": schema, "style": style.value}
        mine, other = Ours(format, spelling="any"), theirs(format)
        seed = random.Random(name)
        accepted = 0
        for _ in range(some(600, 8)):
            text = arguments(style, schema, seed)
            found = mine.accepts(text)
            assert found == other(text.encode()), f"{name}: {text!r}: {found}"
            accepted += found
        assert accepted, name


def test_the_deprecated_format() -> None:
    format: Format = {"type": "qwen_xml_parameter", "json_schema": SCHEMAS["all types"]}
    mine, other = Ours(format, spelling="any"), theirs(format)
    for text in ("<parameter=s>a<</parameter>\n<parameter=n>1</parameter>", "<parameter=n>1</parameter>", "{}"):
        assert mine.accepts(text) == other(text.encode())
