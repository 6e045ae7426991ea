"""The GRAMMAR argument of `guided check`: a file, standard input or a ready grammar's name, in any notation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guided.cli.inputs import STDIN, located, read_text, shown_name
from guided.cli.notations import SCHEMAS, Format, format_of, schema_in
from guided.errors import GuidedError

if TYPE_CHECKING:
    from guided.grammar.ir import Grammar

__all__ = ["ReadGrammar", "read_grammar", "read_schema"]


@dataclass(frozen=True)
class ReadGrammar:
    """A grammar and how it came here; ``schema`` is the data of a JSON Schema, else None."""

    name: str
    format: str
    grammar: Grammar
    schema: Any = None


def read_schema(path: str, wanted: Format | None, option: str, start: str | None = None) -> Any:
    """The data of a JSON Schema, not compiled; ``option`` is what asks for one, ``start`` the part that is meant.

    Raises `GuidedError` for a file of another notation, and `GrammarError` for what is malformed.
    """
    kind = wanted or format_of(path)
    if kind not in SCHEMAS:
        raise GuidedError(
            f"{option} is for JSON Schemas, and {shown_name(path)} does not look like one",
            remedy="Pass --format json-schema if it is one.",
        )
    text = read_text(path, "schema")
    with located(path):
        return schema_in(text, path, kind, start)


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
    if kind in SCHEMAS:
        schema = schema_in(text, path, kind, start)
        return ReadGrammar(name, SCHEMAS[kind], guided.json_schema(schema, **options), schema)
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
    if kind is Format.ANTLR:
        from guided.grammar.antlr import antlr

        return ReadGrammar(name, "ANTLR 4", antlr(text, start=start))
    # A file ends with a newline that nobody means as part of the pattern.
    return ReadGrammar(name, "regular expression", guided.regex(text.removesuffix("\n").removesuffix("\r")))
