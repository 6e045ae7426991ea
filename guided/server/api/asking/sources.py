"""`Source`: the language that a request asks for, by content: equal sources have equal languages.

Sources are plain data: they can be compared, remembered and sent to another process.  What only the server knows, such
as databases, is in `Known`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import guided
from guided.errors import GuidedError
from guided.grammar.ir import Grammar
from guided.grammar.notations import read_as
from guided.grammar.sql import DatabaseSchema
from guided.grammar.tags import Tag, ToolChoice, ToolStyle, tags, think, tool_calls
from guided.server.api.shapes.languages import Language
from guided.serving import Request

__all__ = ["Asked", "Known", "Reasoned", "Source", "ToolCalls", "Written"]


@dataclass(frozen=True)
class Known:
    """What languages may refer to and no request can bring."""

    special_tokens: Mapping[str, int]
    databases: Mapping[str, DatabaseSchema]


class Source(Protocol):
    """A language by content; hashable."""

    def grammar(self, known: Known) -> Grammar:
        """The grammar; raises `GuidedError` for what is malformed or cannot be enforced."""


@dataclass(frozen=True)
class Asked:
    """A schema or grammar as other servers ask for one too."""

    request: Request

    def grammar(self, known: Known) -> Grammar:
        """See `Source`."""
        return self.request.grammar()


@dataclass(frozen=True)
class Written:
    """A `Language` of a request, as its JSON text."""

    text: str

    @classmethod
    def of(cls, language: Language) -> Written:
        """The source of a language."""
        return cls(language.model_dump_json(by_alias=True))

    def grammar(self, known: Known) -> Grammar:
        """See `Source`."""
        return _grammar(json.loads(self.text), known)


def _grammar(language: Mapping[str, Any], known: Known) -> Grammar:
    match language["type"]:
        case "regex":
            return guided.regex(language["text"])
        case "choice":
            return guided.choice(language["choices"])
        case "json_schema":
            options = {name: language[name] for name in ("strict", "order", "spelling", "whitespace")}
            return guided.json_schema(language["schema"], **options)
        case "sql":
            return guided.sql(_database(language["database"], known))
        case "structural_tag":
            return guided.structural_tag(json.dumps(language["format"]), special_tokens=known.special_tokens)
        case "tags":
            each = [
                Tag(
                    tag["begin"],
                    None if tag["content"] is None else _grammar(tag["content"], known),
                    tag["end"],
                    tag["max_tokens"],
                )
                for tag in language["tags"]
            ]
            options = {
                name: language[name]
                for name in ("triggers", "free_text", "at_least_one", "stop_after_first", "excludes")
            }
            return tags(each, **options)
        case notation:
            return read_as(language["text"], notation, known.special_tokens)


def _database(name: str, known: Known) -> DatabaseSchema:
    if name not in known.databases:
        names = ", ".join(map(repr, known.databases)) or "none"
        raise GuidedError(
            f"there is no database {name!r}",
            where="database",
            remedy=f"The server was configured with {names}.",
        )
    return known.databases[name]


@dataclass(frozen=True)
class ToolCalls:
    """Text with calls of functions."""

    tools: str
    """Specifications, as a JSON array."""
    style: ToolStyle
    choice: ToolChoice
    function: str | None
    parallel: bool
    whitespace: str | None = None

    def grammar(self, known: Known) -> Grammar:
        """See `Source`."""
        return tool_calls(
            json.loads(self.tools), style=self.style, choice=self.choice, function=self.function,
            parallel=self.parallel, special_tokens=known.special_tokens, whitespace=self.whitespace,
        )  # fmt: skip


@dataclass(frozen=True)
class Reasoned:
    """Reasoning, and then a text of another language."""

    answer: Source
    begin: str | None
    """None: the prompt has begun it."""
    end: str
    max_tokens: int | None = None

    def grammar(self, known: Known) -> Grammar:
        """See `Source`."""

        def delimiter(text: str) -> Any:
            return guided.special_token(text) if text in known.special_tokens else text

        begin = None if self.begin is None else delimiter(self.begin)
        return think(self.answer.grammar(known), begin=begin, end=delimiter(self.end), max_tokens=self.max_tokens)
