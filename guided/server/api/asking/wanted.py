"""`Wanted`: what all endpoints ask for alike, with what does not go together refused by the path of its field."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from guided.errors import GuidedError, UnsupportedError
from guided.grammar.tags import ToolChoice
from guided.server.api.asking.prompts import Topic
from guided.server.api.asking.sources import Asked, Reasoned, Source, ToolCalls, Written
from guided.server.api.guarding.errors import ApiError, refused
from guided.server.api.settings import Settings
from guided.server.api.shapes.extension import Guided
from guided.server.api.shapes.formats import FlatSchema, JsonObject, NamedSchema, SchemaFormat, TextFormat
from guided.server.api.shapes.languages import Schema, Statement
from guided.server.api.shapes.tools import AllowedToolsField, NamedFunction
from guided.server.scheduling.biases import Biases
from guided.serving import Request, RequestKind

__all__ = ["MOST_STOPS", "Drawing", "Goal", "Paths", "Wanted", "biases_of", "goal_of", "named", "stops_of"]

MOST_STOPS = 4
"""OpenAI's bound."""

NO_BIASES = Biases()


@dataclass(frozen=True)
class Paths:
    """Where an endpoint's fields are, for errors."""

    format: str = "response_format"
    max_tokens: str = "max_completion_tokens"


@dataclass(frozen=True)
class Goal:
    """What the text must be, and how it is read."""

    source: Source | None = None
    """None: free text."""
    param: str | None = None
    """The field that it comes from."""
    topic: Topic = None
    tools: tuple[dict[str, Any], ...] = ()
    reads_calls: bool = False
    only_calls: bool = False
    is_json: bool = False
    thinks: bool = False


@dataclass(frozen=True)
class Drawing:
    """How tokens are chosen."""

    temperature: float = 1.0
    top_p: float = 1.0
    seed: int | None = None
    stop: tuple[str, ...] = ()
    biases: Biases = NO_BIASES

    def biased(self) -> list[tuple[str, bool]]:
        """The fields of ``biases``, and whether each asks for anything."""
        found = self.biases
        return [("logit_bias", any(found.of_tokens.values())), ("presence_penalty", bool(found.presence)),
                ("frequency_penalty", bool(found.frequency))]  # fmt: skip


@dataclass(frozen=True)
class Wanted:
    """A request, whatever the endpoint."""

    goal: Goal
    drawing: Drawing
    guided: Guided
    n: int = 1
    max_tokens: int | None = None
    logprobs: int | None = None
    """How many of the likeliest tokens OpenAI's ``logprobs`` list; None: no ``logprobs``."""
    paths: Paths = Paths()

    def __post_init__(self) -> None:
        """Refuse what does not go together."""
        how, extension = self.drawing, self.guided
        whole = "guided.sampler" if extension.sampler else "guided.search" if extension.search else None
        if extension.sampler and extension.search:
            raise _apart("guided.search", "a sampler draws texts and a search compares them")
        if how.stop and self.goal.source is not None:
            raise _apart("stop", "a stop text would cut what the grammar makes whole")
        if extension.explain and not extension.alternatives:
            raise _apart("guided.explain", "reasons are given for alternatives: pass guided.alternatives")
        if extension.alternatives and not extension.tokens:
            raise _apart("guided.alternatives", "alternatives stand beside tokens: pass guided.tokens")
        if extension.whitespace is not None and not (self.goal.is_json or self.goal.tools):
            raise _apart("guided.whitespace", "there is no JSON to lay out; a schema in guided.grammar has its own")
        if extension.thinking_tokens is not None and not (self.goal.thinks and self.goal.source is not None):
            raise _apart("guided.thinking_tokens", "there is no reasoning before a grammar: see --reasoning")
        if whole is None:
            self._check_draft()
            return
        if self.goal.source is None:
            raise _apart(whole, "a sampler and a search need a grammar")
        if self.goal.reads_calls or self.goal.thinks:
            raise _apart(whole, "calls and reasoning are told apart token by token: ask for a schema instead")
        for param, asked in (("logprobs", self.logprobs is not None), ("guided.tokens", extension.tokens)):
            if asked:
                raise _apart(param, f"{whole} looks at whole texts")
        for param, asked in how.biased():
            if asked:
                raise _apart(param, f"{whole} takes the model's own law, or that of guided.steer")
        if extension.search:
            drawn = (("temperature", how.temperature not in (0.0, 1.0)), ("top_p", how.top_p < 1),
                     ("seed", how.seed is not None))  # fmt: skip
            for param, asked in drawn:
                if asked:
                    raise _apart(param, "a search compares texts and draws nothing")
            if extension.draft is not None:
                raise _apart("guided.draft", "a search compares whole texts, and drafts are verified for one")
        elif how.temperature == 0:
            raise _apart("temperature", "a sampler draws, and at temperature 0 there is nothing to draw")
        elif self.n > 1 and extension.sampler and extension.sampler.pick == "likeliest":
            raise _apart("n", 'there is one likeliest text: pass guided.sampler.pick "draw"')

    def _check_draft(self) -> None:
        if self.guided.draft is None:
            return
        refusals = (
            ("n", self.n > 1, "a draft is verified for one text"),
            ("stop", bool(self.drawing.stop), "drafts are verified up to the end of a text"),
            ("top_p", self.drawing.top_p < 1, "with a draft the law is cut by nothing but the grammar"),
            ("guided.top_k", self.guided.top_k > 0, "with a draft the law is cut by nothing but the grammar"),
            *((name, asked, "a draft is verified by the law without it") for name, asked in self.drawing.biased()),
            ("logprobs", self.logprobs is not None, "positions that a draft has are not scored one by one"),
            ("guided.alternatives", self.guided.alternatives > 0, "positions of a draft are not scored one by one"),
        )
        for param, asked, what in refusals:
            if asked:
                raise _apart(param, what)


def _apart(param: str, what: str) -> ApiError:
    return ApiError(400, f"{param}: {what}", param=param, code="unsupported_combination")


def stops_of(stop: str | Sequence[str] | None) -> tuple[str, ...]:
    """The stop texts; raises `ApiError` for an empty one and for more than OpenAI takes."""
    found = () if stop is None else (stop,) if isinstance(stop, str) else tuple(stop)
    if len(found) > MOST_STOPS or not all(found):
        raise ApiError(400, f"stop: at most {MOST_STOPS} texts, none of them empty", param="stop", code="invalid_value")
    return found


def biases_of(of_tokens: Mapping[str, float] | None, presence: float | None, frequency: float | None) -> Biases:
    """The biases of ``logit_bias``, ``presence_penalty`` and ``frequency_penalty``."""
    return Biases({int(token): bias for token, bias in (of_tokens or {}).items()}, presence or 0.0, frequency or 0.0)


def goal_of(
    format_: TextFormat | JsonObject | SchemaFormat | FlatSchema | None,
    tools: Sequence[dict[str, Any]],
    choice: Any,
    parallel: bool | None,
    extension: Guided,
    settings: Settings,
    paths: Paths,
) -> Goal:
    """What the text must be; ``tools`` are specifications with ``{"type": "function", "function": ...}``.

    Raises `ApiError` for what does not go together.
    """
    goal = _goal(format_, tools, choice, parallel, extension, settings, paths)
    if settings.thinking is None:
        return goal
    source = goal.source
    if source is not None:
        thinking = settings.thinking
        source = Reasoned(source, thinking.begin, thinking.end, extension.thinking_tokens)
    return replace(goal, source=source, thinks=True)


def _goal(
    format_: Any, tools: Sequence[dict[str, Any]], choice: Any, parallel: bool | None, extension: Guided,
    settings: Settings, paths: Paths,
) -> Goal:  # fmt: skip
    formatted = format_ is not None and not isinstance(format_, TextFormat)
    if extension.grammar is not None and (formatted or tools):
        other = paths.format if formatted else "tools"
        raise _apart("guided.grammar", f"it says what the text is, and so does {other}")
    if not tools:
        for param, given in (("tool_choice", choice not in (None, "none", "auto")), ("parallel_tool_calls", parallel)):
            if given:
                raise _apart(param, "there are no tools")
        return _without_tools(format_, extension, settings, paths)
    if formatted:
        if choice == "none":
            return replace(_without_tools(format_, extension, settings, paths), tools=tuple(tools))
        raise _apart(
            paths.format, 'with tools the text is free or a call; pass tool_choice "none", or a tool of that schema'
        )
    return _with_tools(tools, choice, parallel, extension, settings)


def _without_tools(format_: Any, extension: Guided, settings: Settings, paths: Paths) -> Goal:
    space = extension.whitespace
    if isinstance(format_, JsonObject):
        return Goal(Asked(Request(RequestKind.JSON_OBJECT, "", whitespace=space)), paths.format, True, is_json=True)
    if isinstance(format_, (SchemaFormat, FlatSchema)):
        schema: NamedSchema = format_ if isinstance(format_, FlatSchema) else format_.json_schema
        closed = schema.strict is not False
        request = Request(RequestKind.JSON_SCHEMA, json.dumps(schema.json_schema), whitespace=space, closed=closed)
        where = "schema" if isinstance(format_, FlatSchema) else "json_schema.schema"
        return Goal(Asked(request), f"{paths.format}.{where}", schema.json_schema, is_json=True)
    if extension.grammar is not None:
        language = extension.grammar
        topic: Topic = None
        if isinstance(language, Schema):
            topic = language.json_schema
        elif isinstance(language, Statement):
            topic = settings.databases.get(language.database)
        is_json = isinstance(language, Schema)
        return Goal(Written.of(language), "guided.grammar", topic, is_json=is_json)
    return Goal()


def _with_tools(
    tools: Sequence[dict[str, Any]], choice: Any, parallel: bool | None, extension: Guided, settings: Settings
) -> Goal:
    function: str | None = None
    offered = list(tools)
    mode = ToolChoice.AUTO if choice is None else choice
    if isinstance(choice, NamedFunction):
        mode, function = ToolChoice.REQUIRED, choice.function.name
    elif isinstance(choice, AllowedToolsField):
        mode = choice.allowed_tools.mode
        names = [one.function.name for one in choice.allowed_tools.tools]
        known = [tool["function"]["name"] for tool in tools]
        for name in names:
            if name not in known:
                raise ApiError(
                    400, f"tool_choice: there is no tool {name!r}", param="tool_choice", code="invalid_value"
                )
        offered = [tool for tool in tools if tool["function"]["name"] in names]
    mode = ToolChoice(mode)
    source = ToolCalls(
        json.dumps(offered), settings.tool_style, mode, function, parallel is not False, extension.whitespace
    )
    calls = mode is not ToolChoice.NONE
    return Goal(source, "tools", None, tuple(tools), reads_calls=calls, only_calls=mode is ToolChoice.REQUIRED)


def named(mapping: Mapping[str, Any], name: str, what: str, param: str) -> Any:
    """What the server was configured with under a name; raises `ApiError` with the names that there are."""
    if name not in mapping:
        names = ", ".join(map(repr, mapping)) or "none"
        error: GuidedError = UnsupportedError(
            f"there is no {what} {name!r}", remedy=f"The server was configured with {names}."
        )
        raise refused(error, param)
    return mapping[name]
