"""Texts of a schema in JSON5, YAML, TOML, CSV and XML: a JSON Schema goes in, the grammar of such texts comes out.

A text is in the language just if what its format's parser makes of it is an instance of the schema; each format is
written in one bounded style, as plain JSON is (docs/SCHEMA_TEXTS.md says which).  What a format cannot say is not
written (TOML has no null), and what cannot be exact is refused by its place in the schema.

Reading order: `lowering` (what they share), `escaping` (how characters are spelled), and a file for each format.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from enum import Enum
from typing import Any

from guided.errors import GrammarError
from guided.grammar.ir import Grammar
from guided.grammar.json_schema import refusals
from guided.grammar.json_schema.keywords.formats import Formats
from guided.grammar.json_schema.keywords.report import dropped
from guided.grammar.json_schema.layout import Order
from guided.grammar.json_schema.reading.document import Objects
from guided.grammar.json_schema.reading.source import read
from guided.grammar.json_schema.schema_graph import graph_of
from guided.grammar.schema_texts.lowering import TextLowering

__all__ = ["TextFormat", "schema_text"]


class TextFormat(Enum):
    """In which format the texts are."""

    JSON5 = "json5"
    YAML = "yaml"
    TOML = "toml"
    CSV = "csv"
    XML = "xml"


def schema_text(
    schema: dict[str, Any] | bool | str | type | Callable[..., Any],
    format: TextFormat | str,
    *,
    order: str = "schema",
    strict: bool | None = None,
    root: str = "root",
) -> Grammar:
    """The grammar of the texts in a format that are read as values valid against a schema.

    ``schema``, ``order`` and ``strict`` are those of `guided.json_schema`, but for ``strict=None``, which closes
    objects that declare members: names that are not declared can be written in JSON5 alone.  ``root`` is the name of
    the outermost element in XML.  Raises what `guided.json_schema` does, and `UnsupportedError` for what cannot be
    written exactly in the format.

    >>> schema_text({"type": "object", "properties": {"name": {"type": "string"}}}, "yaml")
    <Grammar 'YAML text': 3 rules, lexing none>
    """
    try:
        asked = TextFormat(format)
    except ValueError:
        names = ", ".join(repr(known.value) for known in TextFormat)
        raise GrammarError(f"there is no text format {format!r}", remedy=f"Use one of {names}.") from None
    try:
        in_order = Order(order)
    except ValueError:
        raise GrammarError(f"there is no order {order!r}", remedy='Use "schema" or "any".') from None
    source = read(schema)
    text = json.dumps(source)
    objects = Objects.CLOSED if strict is None else Objects.STRICT if strict else Objects.OPEN
    try:
        document, graph = graph_of(source, text, objects, in_order, None, Formats.DEFAULT)
        lowering = _lowering(asked, root)(graph, in_order)
        rules = lowering.run()
    except RecursionError:
        raise refusals.NESTING.at("#") from None
    options = {"order": order, "strict": strict, "root": root}
    said = repr(("schema_text", asked.value, text, options))
    return Grammar(
        rules=rules,
        start=0,
        rebuild=(schema_text, (source, asked.value), options),
        key=hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest(),
        notes=(*document.notes, *dropped(document, Formats.DEFAULT, text), *lowering.notes),
    )


def _lowering(asked: TextFormat, root: str) -> Callable[..., TextLowering]:
    match asked:
        case TextFormat.JSON5:
            from guided.grammar.schema_texts.json5_text import Json5Lowering

            return Json5Lowering
        case TextFormat.YAML:
            from guided.grammar.schema_texts.yaml_text import YamlLowering

            return YamlLowering
        case TextFormat.TOML:
            from guided.grammar.schema_texts.toml_text import TomlLowering

            return TomlLowering
        case TextFormat.CSV:
            from guided.grammar.schema_texts.csv_text import CsvLowering

            return CsvLowering
        case TextFormat.XML:
            from guided.grammar.schema_texts.xml_text import XmlLowering

            return lambda graph, order: XmlLowering(graph, order, root)
