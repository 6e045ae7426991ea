"""`Request`: what a server's user asked for, a kind and a text, as a grammar.

Servers agree on the kinds and on little else: what their options are called is their packages' matter.  This is the
edge where texts from outside become grammars, so every error here is the user's and says what to do.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import Any

from guided.errors import GrammarError, UnsupportedError
from guided.grammar.choice import choice
from guided.grammar.ebnf import ebnf
from guided.grammar.ir import Grammar
from guided.grammar.json_schema import closed_json_schema, json_schema
from guided.grammar.notations import read_as_written
from guided.grammar.regex import regex
from guided.grammar.structural_tag import structural_tag
from guided.serving.named import name_in, named
from guided.vocab.vocabulary import Vocabulary

__all__ = ["Request", "RequestKind"]


class RequestKind(Enum):
    """What the text of a request is.

    >>> from guided.serving import Request, RequestKind
    >>> requests = [Request(RequestKind.REGEX, "[0-9]+"), Request(RequestKind.CHOICE, '["yes", "no"]')]
    >>> [request.kind.value for request in requests]
    ['regex', 'choice']
    """

    JSON_SCHEMA = "json_schema"
    JSON_OBJECT = "json_object"
    """Any JSON object; the text says nothing."""
    REGEX = "regex"
    GRAMMAR = "grammar"
    """In a notation that `guided.grammar.notations` tells by its looks."""
    EBNF = "ebnf"
    """A grammar in XGrammar's EBNF, whatever it looks like."""
    CHOICE = "choice"
    """A JSON array of texts."""
    STRUCTURAL_TAG = "structural_tag"
    NAMED = "named"
    """The name of what the server's operator has named (`guided.serving.named`)."""

    __hash__ = object.__hash__


@dataclass(frozen=True)
class Request:
    """What was asked for; equal requests have equal languages.

    >>> Request(RequestKind.CHOICE, '["yes", "no"]').grammar()
    <Grammar "'yes' | 'no'": 1 rules, lexing none>
    """

    kind: RequestKind
    text: str
    whitespace: str | None = None
    """Of JSON, as `guided.json_schema` takes it."""
    strict: bool | None = None
    """Of JSON Schemas, as `guided.json_schema` takes it."""
    closed: bool = False
    """Whether objects of JSON Schemas that declare members hold no others, unless they say so."""
    separators: tuple[str, str] | None = None
    """Of texts of JSON Schemas, as `guided.json_schema` takes them."""
    any_order: bool = False
    """Whether members that JSON Schemas declare come in any order."""

    @classmethod
    def of_grammar(cls, text: str) -> Request:
        """What a server's user wrote as a grammar, or instead of one: ``%named`` and the name of what is there."""
        name = name_in(text)
        return cls(RequestKind.GRAMMAR, text) if name is None else cls(RequestKind.NAMED, name)

    def grammar(self, vocabulary: Vocabulary | None = None) -> Grammar:
        """The grammar of the texts that were asked for; ``vocabulary`` is for special tokens that are given by id.

        Raises `guided.GuidedError`: `GrammarError` for malformed texts, `UnsupportedError`, `UnsatisfiableError` or
        `LimitError` for those that cannot be enforced.
        """
        if self.kind is RequestKind.JSON_SCHEMA:
            order = "any" if self.any_order else "schema"
            layout: dict[str, Any] = {"whitespace": self.whitespace, "separators": self.separators, "order": order}
            if self.closed:
                return closed_json_schema(self.text, **layout)
            return json_schema(self.text, strict=self.strict, **layout)
        if self.kind is RequestKind.JSON_OBJECT:
            return json_schema({"type": "object"}, whitespace=self.whitespace)
        if self.kind is RequestKind.REGEX:
            return regex(self.text)
        if self.kind is RequestKind.CHOICE:
            return choice(_texts(self.text))
        if self.kind is RequestKind.NAMED:
            return self._named()
        special = None if vocabulary is None else vocabulary.special_tokens
        if self.kind is RequestKind.GRAMMAR:
            return read_as_written(self.text, special)
        if self.kind is RequestKind.EBNF:
            return ebnf(self.text, special_tokens=special)
        return structural_tag(self.text, special_tokens=special, strict=self.strict, whitespace=self.whitespace)

    @property
    def is_made_of_prompts(self) -> bool:
        """Whether it names constraints that are made for each request, of its prompt; raises as `grammar`."""
        return self.kind is RequestKind.NAMED and not isinstance(named(self.text), Grammar)

    def _named(self) -> Grammar:
        found = named(self.text)
        if not isinstance(found, Grammar):
            raise UnsupportedError(
                f"what is named {self.text!r} is made of each request's prompt, and no grammar",
                remedy="Ask for it in a request to vLLM, without beams.",
            )
        return found


def _texts(text: str) -> list[str]:
    try:
        found: Any = json.loads(text)
    except ValueError as error:
        raise GrammarError(f"the choices are not JSON: {error}", remedy="Give a JSON array of texts.") from None
    if not isinstance(found, list) or not all(isinstance(each, str) for each in found):
        raise GrammarError("the choices are not a JSON array of texts", remedy='Write them as ["yes", "no"].')
    return found
