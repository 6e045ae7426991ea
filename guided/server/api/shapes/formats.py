"""``response_format`` of chats and ``text.format`` of responses."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from guided.server.api.shapes.base import Asked

__all__ = ["FlatFormat", "FlatSchema", "JsonObject", "NamedSchema", "ResponseFormat", "SchemaFormat", "TextFormat"]


class TextFormat(Asked):
    """Free text."""

    type: Literal["text"]


class JsonObject(Asked):
    """Any JSON object."""

    type: Literal["json_object"]


class NamedSchema(Asked):
    """A schema with its name."""

    name: str
    description: str | None = None
    json_schema: dict[str, Any] | bool = Field(alias="schema")
    strict: bool | None = None
    """Null or true: objects that declare members hold no others, unless the schema says so, as OpenAI's strict mode
    demands of schemas; false: to the letter of the schema.  The text satisfies the schema in any case."""


class SchemaFormat(Asked):
    """JSON of a schema."""

    type: Literal["json_schema"]
    json_schema: NamedSchema


class FlatSchema(NamedSchema):
    """The same without an object in between."""

    type: Literal["json_schema"]


ResponseFormat: TypeAlias = Annotated[TextFormat | JsonObject | SchemaFormat, Field(discriminator="type")]
"""Of ``/v1/chat/completions``."""

FlatFormat: TypeAlias = Annotated[TextFormat | JsonObject | FlatSchema, Field(discriminator="type")]
"""Of ``/v1/responses``."""
