"""The GRAMMAR argument of `guided check`: a file, standard input or a ready grammar's name, in any notation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guided.cli.inputs import STDIN, located, parse_json, read_text, shown_name
from guided.errors import GuidedError

if TYPE_CHECKING:
    from guided.grammar.ir import Grammar

__all__ = ["Format", "ReadGrammar", "format_of", "read_grammar", "read_schema"]


class Format(str, Enum):
    """The notations that a grammar may be written in; the values are those of ``--format``."""

    JSON_SCHEMA = "json-schema"
    LARK = "lark"
    GBNF = "gbnf"
    EBNF = "ebnf"
    LLGUIDANCE = "llguidance"
    XGRAMMAR_LARK = "xgrammar-lark"
    ISO_EBNF = "iso-ebnf"
    W3C_EBNF = "w3c-ebnf"
    REGEX = "regex"


_SUFFIXES = {
    ".json": Format.JSON_SCHEMA,
    ".schema": Format.JSON_SCHEMA,
    ".lark": Format.LARK,
    ".gbnf": Format.GBNF,
    ".ebnf": Format.EBNF,
    ".regex": Format.REGEX,
    ".re": Format.REGEX,
}


@dataclass(frozen=True)
class ReadGrammar:
    """A grammar and how it came here; ``schema`` is the data of a JSON Schema, else None."""

    name: str
    format: str
    grammar: Grammar
    schema: Any = None


def format_of(path: str) -> Format | None:
    """The notation that a file's suffix stands for; None where it says nothing."""
    return _SUFFIXES.get(Path(path).suffix)


def read_schema(path: str, wanted: Format | None, option: str) -> Any:
    """The data of a JSON Schema, not compiled; ``option`` is what asks for one.

    Raises `GuidedError` for a file of another notation, and `GrammarError` for what is no JSON.
    """
    if (wanted or format_of(path)) is not Format.JSON_SCHEMA:
        raise GuidedError(
            f"{option} is for JSON Schemas, and {shown_name(path)} does not look like one",
            remedy="Pass --format json-schema if it is one.",
        )
    text = read_text(path, "schema")
    with located(path):
        return parse_json(text, "schema")


def read_grammar(argument: str, wanted: Format | None, *, start: str | None, **options: Any) -> ReadGrammar:
    """Read a grammar; a file comes before a ready grammar of the same name.  ``options`` are those of JSON Schemas.

    Raises `GuidedError` with the name of the input before the place in it.
    """
    looks_like_path = "/" in argument or "\\" in argument or "." in argument
    if argument != STDIN and not looks_like_path and not Path(argument).exists():
        from guided.grammar.library import grammar, names

        if argument not in names():
            raise GuidedError(
                f"{argument!r} is neither a file nor a ready grammar",
                remedy=f"The ready grammars are: {', '.join(names())}.",
            )
        return ReadGrammar(argument, "ready grammar", grammar(argument, start=start))
    text = read_text(argument, "grammar")
    kind = wanted or format_of(argument)
    if kind is None:
        raise GuidedError(
            f"the format of {shown_name(argument)} cannot be told from its name",
            remedy=f"Pass --format {'|'.join(one.value for one in Format)}.",
        )
    with located(argument):
        return _parse(text, argument, kind, start, options)


def _parse(text: str, path: str, kind: Format, start: str | None, options: dict[str, Any]) -> ReadGrammar:
    import guided

    name = shown_name(path)
    if kind is Format.JSON_SCHEMA:
        schema = parse_json(text, "schema")
        grammar = guided.json_schema(schema, **options)
        return ReadGrammar(name, "JSON Schema", grammar, schema)
    if kind is Format.LARK:
        folder = () if path == STDIN else (str(Path(path).parent),)
        return ReadGrammar(name, "Lark", guided.lark(text, start=start or "start", import_paths=folder))
    if kind is Format.GBNF:
        return ReadGrammar(name, "GBNF", guided.gbnf(text, start=start or "root"))
    if kind in (Format.LLGUIDANCE, Format.XGRAMMAR_LARK):
        dialect = "llguidance" if kind is Format.LLGUIDANCE else "xgrammar"
        return ReadGrammar(name, f"{dialect}'s Lark", guided.lark(text, start=start or "start", dialect=dialect))
    if kind is Format.EBNF:
        return ReadGrammar(name, "XGrammar's EBNF", guided.ebnf(text, start=start or "root"))
    if kind in (Format.ISO_EBNF, Format.W3C_EBNF):
        dialect = kind.value.removesuffix("-ebnf")
        label = "EBNF of ISO 14977" if dialect == "iso" else "W3C's EBNF"
        return ReadGrammar(name, label, guided.ebnf(text, dialect=dialect, start=start))
    # A file ends with a newline that nobody means as part of the pattern.
    return ReadGrammar(name, "regular expression", guided.regex(text.removesuffix("\n").removesuffix("\r")))
