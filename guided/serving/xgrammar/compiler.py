"""`GrammarCompiler` as XGrammar 0.2 has it: what engines call to compile a request, with our languages.

Objects of a JSON Schema that declare members hold no others under ``strict_mode``, unless they say so.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from guided.constraint.protocol import Constrains
from guided.errors import GuidedError, UnsupportedError
from guided.grammar.named import NamedRules, named_rules
from guided.serving.compilation import Compiler, compiler_for
from guided.serving.requests import Request, RequestKind

__all__ = ["TOKENIZER", "CompiledGrammar", "Grammar", "GrammarCompiler", "RefusedError"]

TOKENIZER = "guided_tokenizer"
"""The attribute of a ``TokenizerInfo`` that holds its tokenizer: its own bytes take special tokens for text."""


class RefusedError(RuntimeError):
    """A grammar that guided refuses, as engines expect it of XGrammar: a RuntimeError."""


@dataclass(frozen=True)
class Grammar:
    """A grammar that was asked for, before a vocabulary is known; made by its class methods, as XGrammar's are."""

    request: Request

    @classmethod
    def from_json_schema(cls, schema: Any, *, strict_mode: bool = True, **layout: Any) -> Grammar:
        """Of a JSON Schema; see `GrammarCompiler.compile_json_schema`."""
        return cls(_schema(schema, strict_mode, layout)).checked()

    @classmethod
    def from_regex(cls, regex_string: str) -> Grammar:
        """Of a regular expression that the whole text matches."""
        return cls(Request(RequestKind.REGEX, regex_string)).checked()

    @classmethod
    def from_ebnf(cls, ebnf_string: str, *, root_rule_name: str = "root") -> Grammar:
        """Of a grammar in XGrammar's EBNF."""
        if root_rule_name != "root":
            raise RefusedError(str(_other_root(root_rule_name)))
        return cls(Request(RequestKind.EBNF, ebnf_string)).checked()

    @classmethod
    def from_structural_tag(cls, structural_tag: Any) -> Grammar:
        """Of a structural tag, as text, data, or XGrammar's own class."""
        return cls(Request(RequestKind.STRUCTURAL_TAG, _text(structural_tag))).checked()

    @classmethod
    def builtin_json_grammar(cls) -> Grammar:
        """Of any JSON text."""
        return cls(Request(RequestKind.JSON_SCHEMA, "true"))

    def checked(self) -> Grammar:
        """Itself; raises `RefusedError` where it is refused whatever the vocabulary."""
        try:
            self.request.grammar()
        except GuidedError as error:
            raise RefusedError(str(error)) from error
        return self

    def __str__(self) -> str:
        return self.request.text


@dataclass(frozen=True)
class CompiledGrammar:
    """A grammar compiled for a tokenizer."""

    grammar: Grammar
    tokenizer_info: Any
    compiler: Compiler

    def constraint(self, stop_tokens: list[int] | None = None) -> Constrains:
        """What matchers run; with ``stop_tokens`` these end a text, instead of the tokenizer's own."""
        try:
            return self.compiler.constraint(self.grammar.request, stop_tokens)
        except GuidedError as error:
            raise RefusedError(str(error)) from error

    @cached_property
    def named_rules(self) -> NamedRules | None:
        """The rules that name parts of texts; None where the request's notation has none."""
        return named_rules(self.grammar.request.grammar(self.constraint().vocabulary))

    @property
    def memory_size_bytes(self) -> int:
        """0: tables are made as texts are read, and shared by all grammars of a vocabulary."""
        return 0


class GrammarCompiler:
    """Compiles requests for one tokenizer; what was compiled is remembered by `guided.serving.Compiler`.

    ``tokenizer_info`` is XGrammar's, made by ``TokenizerInfo.from_huggingface`` after `install`.  The other arguments
    are those of XGrammar, and say nothing here.
    """

    def __init__(
        self,
        tokenizer_info: Any,
        *,
        max_threads: int = 8,
        cache_enabled: bool = True,
        cache_limit_bytes: int = -1,
    ) -> None:
        self.tokenizer_info = tokenizer_info
        self.cache_limit_bytes = cache_limit_bytes
        tokenizer = getattr(tokenizer_info, TOKENIZER, None)
        if tokenizer is None:
            raise RefusedError(
                "guided needs the tokenizer itself: special tokens are not told apart from text in this TokenizerInfo."
                " Make it by TokenizerInfo.from_huggingface, after guided.serving.xgrammar.install()."
            )
        self._compiler = compiler_for(tokenizer, tokenizer_info.vocab_size)

    def compile_json_schema(self, schema: Any, *, strict_mode: bool = True, **layout: Any) -> CompiledGrammar:
        """Of a JSON Schema: text, data, or a Pydantic model.

        White space is free, as with XGrammar's own default; ``any_whitespace=False`` asks for ``separators`` to the
        letter, ``any_order=True`` takes members in every order.  ``indent`` and ``max_whitespace_cnt`` are refused.
        """
        return self._compiled(Grammar(_schema(schema, strict_mode, layout)))

    def compile_builtin_json_grammar(self) -> CompiledGrammar:
        """Of any JSON text."""
        return self._compiled(Grammar.builtin_json_grammar())

    def compile_regex(self, regex: str) -> CompiledGrammar:
        """Of a regular expression that the whole text matches."""
        return self._compiled(Grammar(Request(RequestKind.REGEX, regex)))

    def compile_grammar(self, grammar: str | Grammar, *, root_rule_name: str = "root") -> CompiledGrammar:
        """Of a grammar in XGrammar's EBNF, or of one that is read already."""
        if not isinstance(grammar, str):
            return self._compiled(grammar)
        if root_rule_name != "root":
            raise RefusedError(str(_other_root(root_rule_name)))
        return self._compiled(Grammar(Request(RequestKind.EBNF, grammar)))

    def compile_structural_tag(self, structural_tag: Any) -> CompiledGrammar:
        """Of a structural tag, as text, data, or XGrammar's own class."""
        return self._compiled(Grammar(Request(RequestKind.STRUCTURAL_TAG, _text(structural_tag))))

    def clear_cache(self) -> None:
        """Nothing to do: the most recent are kept, and no more."""

    def get_cache_size_bytes(self) -> int:
        """0: see `CompiledGrammar.memory_size_bytes`."""
        return 0

    def _compiled(self, grammar: Grammar) -> CompiledGrammar:
        compiled = CompiledGrammar(grammar, self.tokenizer_info, self._compiler)
        compiled.constraint()
        return compiled


def _schema(schema: Any, strict: bool, layout: Mapping[str, Any]) -> Request:
    refused = [name for name in ("indent", "max_whitespace_cnt") if layout.get(name) is not None]
    if refused:
        error = UnsupportedError(f"{', '.join(refused)}: such a layout is not enforced", remedy="Leave it out.")
        raise RefusedError(str(error))
    exact = layout.get("any_whitespace") is False
    separators = tuple(layout.get("separators") or (", ", ": ")) if exact else None
    any_order = bool(layout.get("any_order"))
    return Request(RequestKind.JSON_SCHEMA, _text(schema), closed=strict, separators=separators, any_order=any_order)


def _text(source: Any) -> str:
    """JSON text of what XGrammar takes as such: text, data, a Pydantic model (its schema) or an object of one."""
    if isinstance(source, str):
        return source
    if isinstance(source, type) and hasattr(source, "model_json_schema"):
        return json.dumps(source.model_json_schema())
    if hasattr(source, "model_dump_json"):
        return str(source.model_dump_json())
    return json.dumps(source)


def _other_root(name: str) -> GuidedError:
    return UnsupportedError(f"the root is {name!r}", remedy='Call the first rule "root".')
