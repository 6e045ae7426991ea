"""``/v1/completions``: the request, the answer, and the chunks of a stream, which look alike."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from guided.server.api.shapes.base import Answered, Asked, only
from guided.server.api.shapes.chat import MOST_CHOICES, LogitBias, Penalty, StopField, StreamOptions, Usage
from guided.server.api.shapes.extension import Guided
from guided.server.api.shapes.reports import ChoiceReport

__all__ = ["CompletionAnswer", "CompletionChoice", "CompletionChunk", "CompletionLogprobs", "CompletionRequest"]

Ids = Annotated[list[int], Field(min_length=1)]


class CompletionRequest(Asked):
    """Prompts that the model is to continue."""

    model: str
    prompt: str | Ids | Annotated[list[str], Field(min_length=1)] | Annotated[list[Ids], Field(min_length=1)]
    """A text, token ids, or a list of either."""
    max_tokens: int | None = Field(default=None, ge=1)
    temperature: float | None = Field(default=None, ge=0, le=2, allow_inf_nan=False)
    top_p: float | None = Field(default=None, gt=0, le=1, allow_inf_nan=False)
    n: int | None = Field(default=None, ge=1, le=MOST_CHOICES)
    seed: int | None = Field(default=None, ge=-(1 << 63), lt=1 << 63)
    stop: StopField = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    logprobs: int | None = Field(default=None, ge=0, le=5)
    guided: Guided = Guided()
    user: str | None = None
    best_of: only(int, 1, why="pass guided.sampler with the name best-of-n instead") = None  # type: ignore[valid-type]
    echo: only(bool, False) = None  # type: ignore[valid-type]
    suffix: only(str) = None  # type: ignore[valid-type]
    frequency_penalty: Penalty = None
    presence_penalty: Penalty = None
    logit_bias: LogitBias = None


class CompletionLogprobs(Answered):
    """The tokens of a choice in columns."""

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


class CompletionChoice(Answered):
    """One of the texts, or what is new of it."""

    index: int
    text: str
    finish_reason: Literal["stop", "length"] | None
    logprobs: CompletionLogprobs | None = None
    guided: ChoiceReport | None = None


class CompletionAnswer(Answered):
    """The texts behind the prompts: ``n`` for the first prompt, then ``n`` for the second, and so on."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: Usage
    system_fingerprint: str


class CompletionChunk(Answered):
    """An event of a stream."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: Usage | None = None
    system_fingerprint: str
    guided: ChoiceReport | None = None
