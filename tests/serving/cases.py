"""Fifty requests, each a prompt and a grammar, that every engine must answer as `guided.generate` does, greedily."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import guided
from guided import Tag
from guided.nano import Column, Table, extraction_prompt, sql_prompt

BUDGET = 48
"""Tokens of every text, the end-of-text token among them."""


@dataclass(frozen=True)
class Case:
    """One request."""

    name: str
    prompt: str
    make: Callable[[], Any]
    """The grammar, or a schema as data."""


def _object(**properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_STRING, _INTEGER = {"type": "string", "maxLength": 16}, {"type": "integer"}
_PERSON = "Ann Miller is 34 years old and lives in Turin. Her code is B7."

SCHEMAS: dict[str, Any] = {
    "record": _object(name=_STRING, age=_INTEGER),
    "multiple": _object(age={"type": "integer", "multipleOf": 17}),
    "range": _object(age={"type": "integer", "minimum": 40, "maximum": 45}),
    "number": _object(score={"type": "number", "minimum": 0.5, "exclusiveMaximum": 2}),
    "enum": _object(city={"enum": ["Rome", "Turin", "Pisa"]}),
    "const": _object(kind={"const": "person"}, name=_STRING),
    "pattern": _object(code={"type": "string", "pattern": "^[A-Z][0-9]$"}),
    "look-ahead": _object(code={"type": "string", "pattern": "^(?!A)[A-C][0-9]{2}$"}),
    "date": _object(born={"type": "string", "format": "date"}),
    "boolean": _object(adult={"type": "boolean"}),
    "nullable": _object(name={"type": ["string", "null"], "maxLength": 8}),
    "list": _object(names={"type": "array", "items": _STRING, "minItems": 1, "maxItems": 2}),
    "unique": {"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "minItems": 3, "maxItems": 3},
    "contains": {"type": "array", "items": {"enum": [1, 2]}, "contains": {"const": 2}, "maxItems": 3},
    "tuple": {"type": "array", "prefixItems": [_INTEGER, _STRING], "items": False, "minItems": 2},
    "any of": {"anyOf": [_object(age=_INTEGER), _object(name=_STRING)]},
    "one of": {"oneOf": [{"type": "integer", "multipleOf": 2}, {"type": "integer", "multipleOf": 3}], "minimum": 5},
    "not": {"type": "string", "maxLength": 5, "not": {"enum": ["Ann", "A"]}},
    "unevaluated": {
        "allOf": [{"type": "object", "properties": {"age": _INTEGER}, "required": ["age"]}],
        "properties": {"name": _STRING},
        "unevaluatedProperties": False,
    },
    "nested": _object(person=_object(name=_STRING)),
    "reference": {"$ref": "#/$defs/code", "$defs": {"code": {"type": "string", "pattern": "^[A-Z][0-9]$"}}},
}

PATTERNS = {
    "digits": "[0-9]{3}",
    "word": "[a-z]{2,8}",
    "alternatives": "(yes|no|maybe)( [a-z]{3})?",
    "behind": "[0-9]{3}(?<=7)",
    "ahead": "(?=.*7)[0-9]{3}",
    "not ahead": "(?!An)[A-Z][a-z]{1,6}",
    "unicode": "[à-ü]{2}[α-ω]{1,3}",
    "e-mail": r"[a-z]{1,8}@[a-z]{1,8}\.(com|org)",
    "time": "([01][0-9]|2[0-3]):[0-5][0-9]",
    "words": r"\w+(, \w+){1,2}\.",
}

GRAMMARS = {
    "sum": 'root ::= n (" + " n){1,3}\nn ::= [1-9] [0-9]?',
    "brackets": 'root ::= "(" (root | [a-z]) ")"',
    "list": 'root ::= "- " item ("\\n- " item){1,2}\nitem ::= [A-Za-z ]{3,8}',
    "move": 'root ::= [KQRBN]? [a-h] [1-8] ("+" | "#")?',
    "chain": 'root ::= ("a" "b"?){2,6} "."',
    "pair": 'root ::= "<" [a-z]+ ">" [0-9]{1,3} "</" [a-z]+ ">"',
    "hex": 'root ::= "0x" [0-9a-f]{1,6}',
    "greeting": 'root ::= ("Hello" | "Hi" | "Good day") ", " name "!"\nname ::= [A-Z] [a-z]{1,6}',
}

QUESTIONS = {
    "how many": "How many users are there?",
    "names": "List the names of all users.",
    "older": "Which users are older than 30?",
    "average": "What is the average age?",
    "order": "List all users ordered by age.",
}


@cache
def _database() -> str:
    """A database of two tables, made once a process."""
    path = Path(mkdtemp(prefix="guided-cases-")) / "shop.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT, age INTEGER);"
            "CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER REFERENCES users (id), total REAL);"
        )
    return f"sqlite:///{path}"


_USERS = Table("users", (Column("id", "INTEGER"), Column("name", "TEXT"), Column("age", "INTEGER")))


def _tags() -> dict[str, Callable[[], Any]]:
    year = guided.regex("[0-9]{4}")
    return {
        "tags": lambda: guided.tags([Tag("<y>", year, "</y>")], at_least_one=True, stop_after_first=True),
        "two tags": lambda: guided.tags(
            [Tag("<y>", year, "</y>"), Tag("<n>", guided.choice(["Ann", "Bob"]), "</n>")],
            free_text=False, separator=" ", at_least_one=True,
        ),
        "tool calls": lambda: guided.tags(
            [Tag("<call>", guided.json_schema(_object(city=_STRING)), "</call>")],
            at_least_one=True, stop_after_first=True,
        ),
        "choice": lambda: guided.choice(["Turin", "Tunis", "Tulsa"]),
        "long choice": lambda: guided.choice([f"item {number}" for number in range(100)]),
        "type": lambda: list[bool],
    }  # fmt: skip


def _cases() -> list[Case]:
    found = [
        Case(f"schema: {name}", extraction_prompt(each, _PERSON), lambda each=each: each)
        for name, each in SCHEMAS.items()
    ]
    found += [
        Case(f"regex: {name}", "A text: ", lambda each=each: guided.regex(each)) for name, each in PATTERNS.items()
    ]
    found += [Case(f"gbnf: {name}", "A text: ", lambda each=each: guided.gbnf(each)) for name, each in GRAMMARS.items()]
    found += [Case(f"tags: {name}", "When was Ann born? ", make) for name, make in _tags().items()]
    found += [
        Case(f"sql: {name}", sql_prompt([_USERS], each), lambda: guided.sql(_database()))
        for name, each in QUESTIONS.items()
    ]
    return found


CASES = _cases()
assert len(CASES) == 50, len(CASES)
