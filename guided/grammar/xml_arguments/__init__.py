"""The arguments of a call as elements, by a JSON Schema: ``<parameter=city>Rome</parameter>``.

`notation` has the styles of model families, `lowering` makes rules of a schema.  What is not here: the text around the
arguments, which is `guided.tool_calls`' and `guided.structural_tag`'s.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from guided.errors import GrammarError, UnsupportedError
from guided.grammar.ir import Grammar
from guided.grammar.json_schema import refusals
from guided.grammar.json_schema.keywords.formats import Formats
from guided.grammar.json_schema.keywords.report import dropped
from guided.grammar.json_schema.layout import Order, Spelling
from guided.grammar.json_schema.reading.document import Objects
from guided.grammar.json_schema.reading.source import read
from guided.grammar.json_schema.schema_graph import graph_of
from guided.grammar.json_schema.white_space import layout_of
from guided.grammar.regular.expr import Expr, concat, literal
from guided.grammar.special import SpecialNames
from guided.grammar.xml_arguments.lowering import ArgumentsLowering
from guided.grammar.xml_arguments.notation import NOTATIONS, ArgumentStyle
from guided.special_bytes import special_bytes

__all__ = ["ArgumentStyle", "xml_arguments"]


def xml_arguments(
    schema: Any,
    style: ArgumentStyle,
    *,
    special_tokens: Iterable[str] = (),
    order: str = "schema",
    spelling: str = "plain",
    strict: bool | None = None,
    whitespace: str | None = None,
    excludes: Sequence[str] = (),
) -> Grammar:
    """The arguments of a call, an object that is valid against ``schema``, in the ``style`` of a model family.

    Each member of the object is an element.  A string stands as it is, without what ends the element; white space
    around it is no part of it where the schema restricts it.  Other values are JSON.  Objects are closed unless they
    say otherwise; ``order`` and the others are those of `guided.json_schema`.  ``special_tokens`` are those of the
    tokenizer: the notation's texts that are names of such are these tokens.

    No string, in an element or in JSON, and no name is written with one of ``excludes`` in it; these begin and end with
    no white space, since that may stand around a string.

    Names that are not declared hold neither markup nor white space, and may be written twice, which a note says.
    Raises what `guided.json_schema` does, and `UnsupportedError` for names that the notation cannot tell from the text
    around them, for formats that only a checker knows, and for counts of undeclared names.

    >>> xml_arguments({"type": "object", "properties": {"city": {"type": "string"}}}, ArgumentStyle.QWEN)
    <Grammar 'arguments': 4 rules, lexing none>
    """
    style = ArgumentStyle(style)
    objects = Objects.CLOSED if strict is None else Objects.STRICT if strict else Objects.OPEN
    source = read(schema)
    text = json.dumps(source)
    names = tuple(sorted(set(special_tokens)))
    cut = SpecialNames(names).cut
    used: set[str] = set()

    def spelled(part: str) -> Expr:
        pieces = cut(part)
        used.update(piece for piece, special in pieces if special)
        return concat(*(literal(special_bytes(piece) if special else piece.encode()) for piece, special in pieces))

    excludes = tuple(sorted(set(excludes)))
    for word in excludes:
        if not word or word.strip(" \t\n\r") != word:
            raise UnsupportedError(
                f"the excluded text {word!r} begins or ends with white space, or is none",
                remedy="Leave that out of it.",
            )
    try:
        layout = layout_of(Order(order), Spelling(spelling), whitespace)
    except ValueError as error:
        raise GrammarError(str(error), remedy="Use the options of guided.json_schema.") from None
    try:
        document, graph = graph_of(source, text, objects, layout.order, None, Formats.DEFAULT)
        lowering = ArgumentsLowering(graph, layout, frozenset(document.fractional), NOTATIONS[style], spelled, excludes)
        rules, start = lowering.arguments()
    except RecursionError:
        raise refusals.NESTING.at("#") from None
    options = {
        "special_tokens": names, "order": order, "spelling": spelling, "strict": strict, "whitespace": whitespace,
        "excludes": excludes,
    }  # fmt: skip
    said = repr(("xml_arguments", style.value, text, options))
    return Grammar(
        rules=rules,
        start=start,
        rebuild=(xml_arguments, (source, style), options),
        key=hashlib.sha256(said.encode("utf-8", "surrogatepass")).hexdigest(),
        notes=(*document.notes, *dropped(document, Formats.DEFAULT, text), *lowering.notes),
        special_tokens=tuple(sorted(used)),
    )
