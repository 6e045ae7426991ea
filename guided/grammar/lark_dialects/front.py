"""A grammar in a dialect of Lark's notation as an IR grammar: what `guided.lark` does with ``dialect=...``."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from guided.errors import GrammarError
from guided.grammar.folding import fold
from guided.grammar.ir import Grammar
from guided.grammar.json_schema import closed_json_schema, json_schema
from guided.grammar.lark_dialects.lexing import Ends
from guided.grammar.lark_dialects.llguidance import lower_llguidance
from guided.grammar.lark_dialects.reader import read
from guided.grammar.lark_dialects.rules import Inputs
from guided.grammar.lark_dialects.tree import Dialect, Document, Nested
from guided.grammar.lark_dialects.xgrammar import lower_xgrammar

__all__ = ["grammar_of_dialect"]


def grammar_of_dialect(
    text: str,
    dialect: Dialect,
    special_tokens: Mapping[str, int] | None = None,
    grammars: Mapping[str, Grammar | str] | None = None,
) -> Grammar:
    """The language that the engine of the dialect gives to ``text``, beginning at rule ``start``.

    ``special_tokens`` are a tokenizer's by name, for references by id; ``grammars`` are what ``@name`` refers to, or
    their texts in the same dialect.  The grammar cannot be pickled yet: its ``rebuild`` is the caller's.
    """
    if not isinstance(text, str):
        raise GrammarError("a Lark grammar is a str", remedy="Read the file and pass its text.")
    parts: dict[str, Grammar] = {}
    for name, given in (grammars or {}).items():
        parts[name] = given if isinstance(given, Grammar) else grammar_of_dialect(given, dialect, special_tokens, parts)
    document = read(text, dialect)
    grammar = _Lowering(text, dialect, special_tokens, parts).grammar(document)[0]
    named = sorted((name, part.key) for name, part in parts.items())
    key = None
    if all(part_key for _, part_key in named):
        source = repr((dialect.value, text, grammar.special_tokens, named))
        key = hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()
    return replace(grammar, key=key)


class _Lowering:
    def __init__(
        self,
        text: str,
        dialect: Dialect,
        special_tokens: Mapping[str, int] | None,
        grammars: Mapping[str, Grammar],
    ) -> None:
        self.text = text
        self.dialect = dialect
        self.special_tokens = special_tokens
        self.grammars = grammars

    def grammar(self, document: Document) -> tuple[Grammar, Ends]:
        inputs = Inputs(self.text, self.special_tokens, self.grammars, self.nested, self.schema)
        lower = lower_xgrammar if self.dialect is Dialect.XGRAMMAR else lower_llguidance
        lowered = lower(document, inputs)
        folded = fold(lowered.definitions, "start", self.text)
        grammar = Grammar(
            rules=folded.rules,
            start=0,
            notes=tuple(dict.fromkeys([*lowered.notes, *folded.notes])),
            special_tokens=folded.special_tokens,
            holds_sentinel=folded.holds_sentinel,
            named=lowered.named,
        )
        return grammar, lowered.ends

    def nested(self, node: Nested) -> tuple[Grammar, Ends]:
        return self.grammar(node.document)

    def schema(self, schema: Any) -> Grammar:
        return closed_json_schema(schema) if self.dialect is Dialect.XGRAMMAR else json_schema(schema)
