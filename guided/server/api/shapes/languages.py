"""Languages that a request may ask for by name: grammars, patterns, choices, schemas, statements, tags."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from guided.server.api.shapes.base import Asked

__all__ = ["Choices", "GrammarText", "Language", "Schema", "Statement", "StructuralTags", "TagField", "Tags"]


class GrammarText(Asked):
    """A grammar or a pattern in one of the notations."""

    type: Literal["lark", "gbnf", "ebnf", "llguidance", "xgrammar-lark", "iso-ebnf", "w3c-ebnf", "antlr", "regex"]
    text: str


class Choices(Asked):
    """One of some texts."""

    type: Literal["choice"]
    choices: list[str] = Field(min_length=1)


class Schema(Asked):
    """JSON of a schema; members and options as `guided.json_schema` has them."""

    type: Literal["json_schema"]
    json_schema: dict[str, Any] | bool = Field(alias="schema")
    strict: bool | None = None
    """As `guided.json_schema` takes it: null, to the letter of the schema."""
    order: Literal["schema", "any"] = "schema"
    spelling: Literal["plain", "any"] = "plain"
    whitespace: str | None = None


class Statement(Asked):
    """One SELECT statement over a database that the server was configured with."""

    type: Literal["sql"]
    database: str
    """Its name in ``GET /v1/models``."""


class StructuralTags(Asked):
    """Text with tagged parts, in the notation of XGrammar's and OpenAI's structural tags."""

    type: Literal["structural_tag"]
    format: dict[str, Any]


class TagField(Asked):
    """A part of a text that begins and ends with some text, and what stands between."""

    begin: str = Field(min_length=1)
    content: Language | None = None
    """Null: free text up to the end."""
    end: str
    max_tokens: int | None = Field(default=None, ge=0)
    """The tokens of free text; as `guided.Tag` takes it."""


class Tags(Asked):
    """Free text in which tags may stand, as `guided.tags` has them."""

    type: Literal["tags"]
    tags: list[TagField] = Field(min_length=1)
    triggers: list[str] | None = None
    free_text: bool = True
    at_least_one: bool = False
    stop_after_first: bool = False
    excludes: list[str] = Field(default_factory=list)


Language: TypeAlias = Annotated[
    GrammarText | Choices | Schema | Statement | StructuralTags | Tags, Field(discriminator="type")
]
"""Any of them, told apart by ``type``."""

TagField.model_rebuild()
