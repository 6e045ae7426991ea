"""``/v1/responses``: the request, the answer, and the events of a stream."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from guided.server.api.shapes.base import Answered, Asked, only
from guided.server.api.shapes.extension import MOST_ALTERNATIVES, Guided
from guided.server.api.shapes.formats import FlatFormat
from guided.server.api.shapes.reports import ChoiceReport

__all__ = [
    "AnswerEvent", "CallItem", "CallOutput", "CallPart", "FlatFunction", "FlatTool", "InputMessage", "InputPart",
    "MessageItem", "OutputText", "ReasoningItem", "ReasoningPart", "ResponseAnswer", "ResponseRequest", "ResponseUsage",
    "TextOptions",
]  # fmt: skip


class InputPart(Asked):
    """A part of a message; ``output_text`` is what the model said before."""

    type: Literal["input_text", "output_text", "text"]
    text: str
    annotations: only(list, []) = None  # type: ignore[valid-type]
    logprobs: list[Any] | None = None
    """Of no weight: answers may be handed back as they came."""


class InputMessage(Asked):
    """A message."""

    type: Literal["message"] = "message"
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[InputPart]
    id: str | None = None
    status: str | None = None
    phase: only(str) = None  # type: ignore[valid-type]


class CallPart(Asked):
    """A call that the model made before."""

    type: Literal["function_call"]
    call_id: str
    name: str
    arguments: str
    id: str | None = None
    status: str | None = None


class CallOutput(Asked):
    """What a call gave."""

    type: Literal["function_call_output"]
    call_id: str
    output: str
    id: str | None = None
    status: str | None = None


class FlatTool(Asked):
    """A function with the schema of its arguments; ``strict`` as in chats."""

    type: Literal["function"]
    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class FlatFunction(Asked):
    """The one function that must be called."""

    type: Literal["function"]
    name: str


class TextOptions(Asked):
    """What the text must be."""

    format: FlatFormat | None = None
    verbosity: only(str, "medium") = None  # type: ignore[valid-type]


class ResponseStreamOptions(Asked):
    """What a stream tells besides."""

    include_obfuscation: only(bool, False) = None  # type: ignore[valid-type]


InputItem = InputMessage | CallPart | CallOutput


class ResponseRequest(Asked):
    """A text or a conversation that the model is to answer; nothing is stored."""

    model: str
    input: str | Annotated[list[InputItem], Field(min_length=1)]
    instructions: str | None = None
    text: TextOptions = TextOptions()
    tools: list[FlatTool] | None = None
    tool_choice: Literal["none", "auto", "required"] | FlatFunction | None = None
    parallel_tool_calls: bool | None = None
    max_output_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    top_p: float | None = Field(default=None, gt=0, le=1, allow_inf_nan=False)
    top_logprobs: int | None = Field(default=None, ge=0, le=MOST_ALTERNATIVES)
    include: list[Literal["message.output_text.logprobs"]] | None = None
    stream: bool | None = None
    stream_options: ResponseStreamOptions | None = None
    seed: int | None = Field(default=None, ge=-(1 << 63), lt=1 << 63)
    """Not one of OpenAI's fields here: what draws depend on."""
    guided: Guided = Guided()
    user: str | None = None
    safety_identifier: str | None = None
    metadata: dict[str, str] | None = None
    prompt_cache_key: str | None = None
    store: only(bool, False, why="nothing is stored here") = None  # type: ignore[valid-type]
    background: only(bool, False) = None  # type: ignore[valid-type]
    truncation: only(str, "disabled") = None  # type: ignore[valid-type]
    service_tier: only(str, "auto", "default") = None  # type: ignore[valid-type]
    previous_response_id: only(str, why="nothing is stored here: pass the conversation") = None  # type: ignore[valid-type]
    conversation: only(object, why="nothing is stored here: pass the conversation") = None  # type: ignore[valid-type]
    prompt: only(dict) = None  # type: ignore[valid-type]
    reasoning: only(dict, {}) = None  # type: ignore[valid-type]
    max_tool_calls: only(int) = None  # type: ignore[valid-type]


class OutputText(Answered):
    """The text of a message."""

    type: Literal["output_text"] = "output_text"
    text: str
    annotations: list[None] = Field(default_factory=list)
    logprobs: list[dict[str, Any]] = Field(default_factory=list)


class MessageItem(Answered):
    """What the model said."""

    type: Literal["message"] = "message"
    id: str
    role: Literal["assistant"] = "assistant"
    status: Literal["in_progress", "completed", "incomplete"]
    content: list[OutputText]


class ReasoningPart(Answered):
    """Some reasoning."""

    type: Literal["reasoning_text"] = "reasoning_text"
    text: str


class ReasoningItem(Answered):
    """The reasoning before the answer."""

    type: Literal["reasoning"] = "reasoning"
    id: str
    summary: list[None] = Field(default_factory=list)
    content: list[ReasoningPart]
    status: Literal["in_progress", "completed", "incomplete"]


class CallItem(Answered):
    """A call of a function."""

    type: Literal["function_call"] = "function_call"
    id: str
    call_id: str
    name: str
    arguments: str
    status: Literal["in_progress", "completed", "incomplete"]


class InputDetails(Answered):
    """Of the tokens read."""

    cached_tokens: int
    cache_write_tokens: int = 0


class OutputDetails(Answered):
    """Of the tokens written."""

    reasoning_tokens: int


class ResponseUsage(Answered):
    """What a response cost."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    input_tokens_details: InputDetails
    output_tokens_details: OutputDetails


class Incomplete(Answered):
    """Why a response was cut."""

    reason: Literal["max_output_tokens"]


class ResponseAnswer(Answered):
    """The answer, with what was asked for as it was understood."""

    id: str
    object: Literal["response"] = "response"
    created_at: int
    status: Literal["in_progress", "completed", "incomplete"]
    model: str
    output: list[ReasoningItem | MessageItem | CallItem]
    error: None = None
    incomplete_details: Incomplete | None = None
    instructions: str | None
    metadata: dict[str, str]
    parallel_tool_calls: bool
    temperature: float
    top_p: float
    max_output_tokens: int | None
    tool_choice: Any
    tools: list[dict[str, Any]]
    text: dict[str, Any]
    truncation: Literal["disabled"] = "disabled"
    store: Literal[False] = False
    background: Literal[False] = False
    usage: ResponseUsage | None = None
    guided: ChoiceReport | None = None


class AnswerEvent(Answered):
    """An event of a stream; ``type`` says which of the other fields it has."""

    type: Literal[
        "response.created", "response.in_progress", "response.output_item.added", "response.output_item.done",
        "response.content_part.added", "response.content_part.done", "response.output_text.delta",
        "response.output_text.done", "response.reasoning_text.delta", "response.reasoning_text.done",
        "response.function_call_arguments.delta", "response.function_call_arguments.done", "response.completed",
        "response.incomplete", "response.guided",
    ]  # fmt: skip
    sequence_number: int
    response: ResponseAnswer | None = None
    output_index: int | None = None
    item: ReasoningItem | MessageItem | CallItem | None = None
    item_id: str | None = None
    content_index: int | None = None
    part: OutputText | ReasoningPart | None = None
    delta: str | None = None
    text: str | None = None
    name: str | None = None
    arguments: str | None = None
    logprobs: list[dict[str, Any]] | None = None
    guided: ChoiceReport | None = None
    """Of ``response.guided`` alone, which is no event of OpenAI's: tokens and steps."""
