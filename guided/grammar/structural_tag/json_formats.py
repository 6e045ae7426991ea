"""The format ``json_schema``, which is JSON or, by its style, the arguments of a call as elements."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from guided.errors import GrammarError, UnsupportedError
from guided.grammar.excluded import excluding
from guided.grammar.ir import Grammar
from guided.grammar.json_schema import json_part
from guided.grammar.structural_tag.fields import Fields, placed
from guided.grammar.xml_arguments import ArgumentStyle, xml_arguments

__all__ = ["JsonFormats", "Writing"]

_JSON = "json"
_OTHER_STYLES = ("cohere_xml", "minimax_m3_xml")
"""Styles that write containers as elements too."""


@dataclass(frozen=True)
class Writing:
    """How JSON is written, and which objects are closed: the options of `guided.json_schema`."""

    strict: bool | None
    spelling: str
    whitespace: str | None


class JsonFormats:
    """Makes the grammars of schemas; the same for the same schema, so that its rules are there once."""

    def __init__(self, writing: Writing, special_tokens: Iterable[str]) -> None:
        self._writing = writing
        self._special_tokens = tuple(special_tokens)
        self._made: dict[tuple[Any, ...], Grammar] = {}

    def read(self, fields: Fields) -> Grammar:
        """The grammar of the format."""
        fields.only(("type", "json_schema", "style", "any_order", "max_whitespace_cnt", "excludes"))
        style = fields.text("style") if "style" in fields else _JSON
        if fields.given("type") == "qwen_xml_parameter":
            style = ArgumentStyle.QWEN.value
        excludes = tuple(sorted(set(fields.words("excludes"))))
        schema, pointer = fields.given("json_schema"), fields.at("json_schema")
        if not isinstance(schema, (bool, dict)):
            raise GrammarError(f"{schema!r:.60} is no schema", where=pointer, remedy="Write an object.")
        order = "any" if fields.flag("any_order") else "schema"
        most = fields.count("max_whitespace_cnt")
        whitespace = self._writing.whitespace
        if most is not None:
            whitespace = f"[ \\t\\n\\r]{{0,{most}}}" if most else "compact"
        if style != _JSON:
            return self._arguments(schema, pointer, _style(style, fields), order, whitespace, excludes)
        found = self.schema(schema, pointer, order, whitespace)
        return self._excluding(found, excludes, pointer) if excludes else found

    def schema(self, schema: Any, pointer: str, order: str = "schema", whitespace: str | None = None) -> Grammar:
        """The grammar of a schema's JSON."""
        writing = self._writing
        with placed(pointer):
            return json_part(
                schema, strict=writing.strict, order=order, spelling=writing.spelling, whitespace=whitespace
            )

    def _excluding(self, grammar: Grammar, excludes: tuple[str, ...], pointer: str) -> Grammar:
        key = (grammar.key, excludes)
        if key not in self._made:
            with placed(pointer):
                self._made[key] = excluding(grammar, excludes)
        return self._made[key]

    def _arguments(
        self,
        schema: Any,
        pointer: str,
        style: ArgumentStyle,
        order: str,
        whitespace: str | None,
        excludes: tuple[str, ...],
    ) -> Grammar:
        key = (json.dumps(schema), style, order, whitespace, excludes)
        if key not in self._made:
            with placed(pointer):
                self._made[key] = xml_arguments(
                    schema,
                    style,
                    special_tokens=self._special_tokens,
                    order=order,
                    spelling=self._writing.spelling,
                    strict=self._writing.strict,
                    whitespace=whitespace,
                    excludes=excludes,
                )
        return self._made[key]


def _style(name: str, fields: Fields) -> ArgumentStyle:
    known = {style.value: style for style in ArgumentStyle}
    if name in known:
        return known[name]
    kind = UnsupportedError if name in _OTHER_STYLES else GrammarError
    raise kind(
        f"there is no style {name!r} here", where=fields.at("style"), remedy=f"Use {', '.join((_JSON, *known))}."
    )
