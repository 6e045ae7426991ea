"""`grammar_of`: what users pass as a grammar, as a `Grammar`; `reader_of`: how its texts are read back.

A type stands for the JSON texts of its values, and so does a schema given as data.
"""

from __future__ import annotations

import inspect
import json
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from guided.grammar.ir import Grammar

__all__ = ["grammar_of", "is_grammar", "reader_of"]


def is_grammar(given: object) -> bool:
    """Whether this is a `Grammar`, or stands for one: a type, a function, a JSON Schema as data."""
    return isinstance(given, (Grammar, Mapping)) or _is_type(given) or inspect.isroutine(given)


def grammar_of(given: Any) -> Grammar:
    """The grammar, or that of a type's, a function's or a schema's JSON texts, as `guided.json_schema` reads it.

    Raises TypeError for anything else, a text among it: whether that is a schema, a pattern or a grammar is not known.
    """
    if isinstance(given, Grammar):
        return given
    if is_grammar(given):
        from guided.grammar.json_schema import json_schema

        return json_schema(dict(given) if isinstance(given, Mapping) else given)
    raise TypeError(
        f"{given!r:.60} is no grammar: pass guided.json_schema(...), guided.regex(...), guided.lark(...), ..., a type,"
        " or a compiled constraint"
    )


def reader_of(given: object) -> Callable[[str], Any]:
    """From a whole text to what it says: the value of a type, validated by it, the data of a schema, else the text."""
    grammar = given if is_grammar(given) else getattr(given, "grammar", None)
    if grammar is not None and not isinstance(grammar, (Grammar, Mapping)):
        return TypeReader(grammar)
    if isinstance(grammar, Mapping) or type(grammar).__name__ == "JsonSchemaGrammar":
        return json.loads
    return str


@dataclass(frozen=True)
class TypeReader:
    """Reads JSON texts as values of a type; of a function, as its arguments by name."""

    source: Any

    def __call__(self, text: str) -> Any:
        """The value; raises what the type's validation raises."""
        from guided.grammar.json_schema.reading.types import adapter_of

        return adapter_of(self.source).validate_json(text)


def _is_type(given: object) -> bool:
    """Whether it is a class, or what `typing` makes of classes."""
    return (
        isinstance(given, (type, types.UnionType, typing.NewType))
        or typing.get_origin(given) is not None
        or type(given).__name__ in ("TypeAdapter", "TypeAliasType")
    )
