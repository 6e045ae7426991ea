"""Messages of conversations, as requests hold them; text only."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from guided.server.api.shapes.base import Asked, only

__all__ = ["AssistantMessage", "FunctionCall", "Message", "TextMessage", "TextPart", "ToolCall", "ToolMessage"]

_IMAGES = "models here read text only"


class TextPart(Asked):
    """A part of a message."""

    type: Literal["text"]
    text: str


Content: TypeAlias = str | list[TextPart]


class TextMessage(Asked):
    """What the system, the developer or the user says."""

    role: Literal["system", "developer", "user"]
    content: Content
    name: str | None = None


class FunctionCall(Asked):
    """A function and its arguments."""

    name: str
    arguments: str
    """A JSON object."""


class ToolCall(Asked):
    """A call that the model made before."""

    id: str
    type: Literal["function"] = "function"
    function: FunctionCall


class AssistantMessage(Asked):
    """What the model said before."""

    role: Literal["assistant"]
    content: Content | None = None
    name: str | None = None
    tool_calls: list[ToolCall] | None = None
    reasoning_content: str | None = None
    """Given to the chat template as it is."""
    refusal: only(str) = None  # type: ignore[valid-type]
    audio: only(dict) = None  # type: ignore[valid-type]
    function_call: only(dict, why="functions are called tools now") = None  # type: ignore[valid-type]


class ToolMessage(Asked):
    """What a call gave."""

    role: Literal["tool"]
    content: Content
    tool_call_id: str
    name: str | None = None


Message: TypeAlias = Annotated[TextMessage | AssistantMessage | ToolMessage, Field(discriminator="role")]
"""Any of them, told apart by ``role``."""
