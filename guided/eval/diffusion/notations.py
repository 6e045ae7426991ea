"""The records of a JSON Schema in two other notations: a regex of all of them, and a GBNF grammar.

Of the keywords that the tasks' schemas have: objects whose fields come in their order, strings, dates, numbers,
booleans, null, enumerations and lists.  White space is one space or none behind a comma or a colon.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from guided.errors import UnsupportedError

__all__ = ["gbnf_of", "regex_of"]

_PATTERNS = {
    "string": r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-f]{4})*"',
    "date": r'"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"',
    "integer": r"-?(?:0|[1-9][0-9]*)",
    "number": r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?",
    "boolean": r"(?:true|false)",
    "null": r"null",
}

_RULES = r"""
string ::= "\"" ([^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" [0-9a-f] [0-9a-f] [0-9a-f] [0-9a-f]))* "\""
date ::= "\"" [0-9] [0-9] [0-9] [0-9] "-" ("0" [1-9] | "1" [0-2]) "-" ("0" [1-9] | [12] [0-9] | "3" [01]) "\""
integer ::= "-"? ("0" | [1-9] [0-9]*)
number ::= integer ("." [0-9]+)?
boolean ::= "true" | "false"
null ::= "null"
"""


@dataclass(frozen=True)
class _Notation:
    """How a notation writes what both have."""

    literal: Callable[[str], str]
    kind: Callable[[str], str]
    """A string, a number and so on."""
    group: str
    """What opens a group."""
    between: str
    """What stands between parts that follow each other."""

    def row(self, *parts: str) -> str:
        return self.between.join(part for part in parts if part)

    def repeated(self, sign: str, *parts: str) -> str:
        """The parts as a group with a sign behind it: ``?``, ``*`` or none."""
        return f"{self.group}{self.row(*parts)}){sign}"

    def any_of(self, choices: list[str]) -> str:
        return f"{self.group}{f'{self.between}|{self.between}'.join(choices)})"

    def space(self) -> str:
        return self.repeated("?", self.literal(" "))

    def value(self, schema: Any) -> str:
        """All values of a schema."""
        if "enum" in schema:
            return self.any_of([self.literal(json.dumps(value, ensure_ascii=False)) for value in schema["enum"]])
        kinds = schema["type"]
        if isinstance(kinds, list):
            return self.any_of([self.value({**schema, "type": kind}) for kind in kinds])
        if kinds == "object":
            return self.fields(schema["properties"], schema.get("required", []))
        if kinds == "array":
            item = self.value(schema["items"])
            more = self.repeated("*", self.literal(","), self.space(), item)
            return self.row(self.literal("["), self.repeated("?", item, more), self.literal("]"))
        if kinds == "string" and schema.get("format") == "date":
            return self.kind("date")
        return self.kind(kinds)

    def fields(self, properties: dict[str, Any], required: list[str]) -> str:
        """An object; the comma of a field that may be left out stands on the side of the first that may not be."""
        if not required:
            raise UnsupportedError("an object without a required field has no notation here")
        parts, passed = [], False
        for name, schema in properties.items():
            field = self.row(self.literal(f"{json.dumps(name)}:"), self.space(), self.value(schema))
            comma = (self.literal(","), self.space())
            if name not in required:
                parts.append(self.repeated("?", *((*comma, field) if passed else (field, *comma))))
            else:
                parts.append(self.row(*comma, field) if passed else field)
                passed = True
        return self.row(self.literal("{"), *parts, self.literal("}"))


_REGEX = _Notation(re.escape, lambda kind: f"(?:{_PATTERNS[kind]})", "(?:", "")
_GBNF = _Notation(json.dumps, lambda kind: kind, "(", " ")


def regex_of(schema: Any) -> str:
    """A regex of the schema's records.

    >>> schema = {"type": "object", "properties": {"a": {"enum": ["x", "y"]}}, "required": ["a"]}
    >>> bool(re.fullmatch(regex_of(schema), '{"a": "x"}')), bool(re.fullmatch(regex_of(schema), '{"a": "z"}'))
    (True, False)
    """
    return _REGEX.value(schema)


def gbnf_of(schema: Any) -> str:
    """A GBNF grammar of the same records.

    >>> print(gbnf_of({"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"]}).splitlines()[0])
    root ::= "{" "\\"a\\":" (" ")? null "}"
    """
    return f"root ::= {_GBNF.value(schema)}\n{_RULES.lstrip()}"
