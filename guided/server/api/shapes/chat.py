"""``/v1/chat/completions``: the request, the answer, and the chunks of a stream."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from guided.server.api.shapes.base import Answered, Asked, only
from guided.server.api.shapes.extension import MOST_ALTERNATIVES, Guided
from guided.server.api.shapes.formats import ResponseFormat
from guided.server.api.shapes.messages import Message
from guided.server.api.shapes.reports import ChoiceReport
from guided.server.api.shapes.tools import Tool, ToolChoiceField

__all__ = [
    "MOST_CHOICES", "CalledFunction", "ChatAnswer", "ChatChoice", "ChatChunk", "ChatDelta", "ChatLogprobs",
    "ChatRequest", "ChunkChoice", "MadeCall", "MadeMessage", "StreamOptions", "TokenLogprob", "TopLogprob", "Usage",
]  # fmt: skip

MOST_CHOICES = 128
"""Texts of one prompt: OpenAI's bound."""

Penalty = Annotated[float | None, Field(ge=-2, le=2, allow_inf_nan=False)]
"""What a token that was written loses: once (presence), or each time (frequency)."""

_TOKEN_ID = Annotated[str, Field(pattern=r"^(0|[1-9][0-9]{0,8})$")]
_BIAS = Annotated[float, Field(ge=-100, le=100, allow_inf_nan=False)]
LogitBias = Annotated[
    dict[_TOKEN_ID, _BIAS] | None,
    Field(max_length=1024, description="Added to the logits of tokens, by their ids, before the grammar's mask."),
]

StopField = Annotated[str | list[str] | None, Field(description="Texts before which free text ends, at most four.")]


class StreamOptions(Asked):
    """What a stream tells besides the text."""

    include_usage: bool | None = None
    include_obfuscation: only(bool, False) = None  # type: ignore[valid-type]


class ChatRequest(Asked):
    """A conversation that the model is to continue."""

    model: str
    messages: list[Message] = Field(min_length=1)
    response_format: ResponseFormat | None = None
    tools: list[Tool] | None = None
    tool_choice: ToolChoiceField | None = None
    parallel_tool_calls: bool | None = None
    max_completion_tokens: int | None = Field(default=None, ge=1)
    max_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    top_p: float | None = Field(default=None, gt=0, le=1, allow_inf_nan=False)
    n: int | None = Field(default=None, ge=1, le=MOST_CHOICES)
    seed: int | None = Field(default=None, ge=-(1 << 63), lt=1 << 63)
    stop: StopField = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = Field(default=None, ge=0, le=MOST_ALTERNATIVES)
    guided: Guided = Guided()
    user: str | None = None
    safety_identifier: str | None = None
    metadata: dict[str, str] | None = None
    """Of no weight for the answer, as are ``user`` and ``safety_identifier``; nothing is stored."""
    prompt_cache_key: str | None = None
    """Of no weight: equal beginnings of prompts are found by what they are."""
    store: only(bool, False, why="nothing is stored here") = None  # type: ignore[valid-type]
    frequency_penalty: Penalty = None
    presence_penalty: Penalty = None
    logit_bias: LogitBias = None
    modalities: only(list, ["text"]) = None  # type: ignore[valid-type]
    service_tier: only(str, "auto", "default") = None  # type: ignore[valid-type]
    reasoning_effort: only(str) = None  # type: ignore[valid-type]
    verbosity: only(str, "medium") = None  # type: ignore[valid-type]
    audio: only(dict) = None  # type: ignore[valid-type]
    prediction: only(dict, why="pass guided.draft instead") = None  # type: ignore[valid-type]
    web_search_options: only(dict) = None  # type: ignore[valid-type]
    moderation: only(dict) = None  # type: ignore[valid-type]
    prompt_cache_options: only(dict) = None  # type: ignore[valid-type]
    prompt_cache_retention: only(str) = None  # type: ignore[valid-type]
    functions: only(list, why="functions are called tools now") = None  # type: ignore[valid-type]
    function_call: only(object, why="functions are called tools now") = None  # type: ignore[valid-type]


class PromptDetails(Answered):
    """Of the prompt's tokens."""

    cached_tokens: int
    """Those computed before, for a prompt with the same beginning."""


class CompletionDetails(Answered):
    """Of the tokens written."""

    reasoning_tokens: int


class Usage(Answered):
    """What a request cost, over all its choices."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails
    completion_tokens_details: CompletionDetails


class CalledFunction(Answered):
    """A function that the model calls; in a stream a part of the arguments, and the name in the first part."""

    name: str | None = None
    arguments: str


class MadeCall(Answered):
    """A call; in a stream ``index`` says which, and only the first part has the other fields."""

    index: int | None = None
    id: str | None = None
    type: Literal["function"] | None = None
    function: CalledFunction


class MadeMessage(Answered):
    """What the model said."""

    role: Literal["assistant"] = "assistant"
    content: str | None
    refusal: None = None
    reasoning_content: str | None = None
    tool_calls: list[MadeCall] | None = None


class TopLogprob(Answered):
    """A token and its log-probability; ``token`` shows bytes that are no text by a replacement character."""

    token: str
    logprob: float
    bytes: list[int]


class TokenLogprob(TopLogprob):
    """A token of the text, with the likeliest in its place."""

    top_logprobs: list[TopLogprob]


class ChatLogprobs(Answered):
    """The tokens of a choice, whatever they became: content, reasoning or calls."""

    content: list[TokenLogprob]
    refusal: None = None


FinishReason = Literal["stop", "length", "tool_calls"]


class ChatChoice(Answered):
    """One of the texts."""

    index: int
    message: MadeMessage
    finish_reason: FinishReason
    logprobs: ChatLogprobs | None = None
    guided: ChoiceReport | None = None


class ChatAnswer(Answered):
    """The answer to a conversation."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    usage: Usage
    system_fingerprint: str
    service_tier: None = None


class ChatDelta(Answered):
    """What is new of a message."""

    role: Literal["assistant"] | None = None
    content: str | None = None
    refusal: None = None
    reasoning_content: str | None = None
    tool_calls: list[MadeCall] | None = None


class ChunkChoice(Answered):
    """What is new of one of the texts."""

    index: int
    delta: ChatDelta
    finish_reason: FinishReason | None = None
    logprobs: ChatLogprobs | None = None
    guided: ChoiceReport | None = None


class ChatChunk(Answered):
    """An event of a stream; the last one before ``[DONE]`` has the usage, if it was asked for."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: list[ChunkChoice]
    usage: Usage | None = None
    system_fingerprint: str
    guided: ChoiceReport | None = None
    """What belongs to no single choice: steps of a sampler."""
