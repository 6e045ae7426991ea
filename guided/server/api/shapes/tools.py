"""Functions that a model may call, and which it must."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from guided.server.api.shapes.base import Asked

__all__ = ["AllowedTools", "AllowedToolsField", "Function", "FunctionName", "NamedFunction", "Tool", "ToolChoiceField"]


class Function(Asked):
    """A function with the schema of its arguments."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None
    """Null: no members but those that the schema declares, unless it admits others; true: all of them required as well;
    false: to the letter of the schema.  Arguments always satisfy it."""


class Tool(Asked):
    """A tool, which is a function."""

    type: Literal["function"]
    function: Function


class FunctionName(Asked):
    """A function by name."""

    name: str


class NamedFunction(Asked):
    """The one function that must be called."""

    type: Literal["function"]
    function: FunctionName


class AllowedTools(Asked):
    """Some of the tools, and whether one of them must be called."""

    mode: Literal["auto", "required"]
    tools: list[NamedFunction]


class AllowedToolsField(Asked):
    """The choice among some of the tools."""

    type: Literal["allowed_tools"]
    allowed_tools: AllowedTools


ToolChoiceField: TypeAlias = Literal["none", "auto", "required"] | NamedFunction | AllowedToolsField
"""Whether functions may, must or must not be called, and which."""
