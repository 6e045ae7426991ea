"""``POST /v1/chat/completions``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request, Response

from guided.server.api.answering.delivery import event_stream, unless_gone
from guided.server.api.answering.gathering import Gathered, Source, gathered, made_call
from guided.server.api.answering.texts import Piece, identifier
from guided.server.api.asking.prompts import conversation_ids
from guided.server.api.asking.wanted import Drawing, Paths, Wanted, biases_of, goal_of, stops_of
from guided.server.api.endpoints.shared import FINGERPRINT, Here, begun, client_of, now, streamed
from guided.server.api.guarding.bodies import JsonRoute
from guided.server.api.guarding.errors import ApiError
from guided.server.api.reading.parts import CallArguments, CallBegins, Content
from guided.server.api.service import Service
from guided.server.api.shapes.chat import (
    CalledFunction,
    ChatAnswer,
    ChatChoice,
    ChatChunk,
    ChatDelta,
    ChatLogprobs,
    ChatRequest,
    ChunkChoice,
    MadeCall,
    MadeMessage,
)
from guided.server.api.shapes.reports import ChoiceReport

__all__ = ["router"]

router = APIRouter(route_class=JsonRoute, tags=["OpenAI"])


@router.post("/v1/chat/completions", responses=streamed(ChatChunk), response_model_exclude_unset=True)
async def chat_completions(request: Request, body: ChatRequest, service: Here) -> ChatAnswer:
    """Continue a conversation, under a schema, a grammar or with tools; what cannot be honoured is refused."""
    service.check_model(body.model)
    wanted = wanted_of(body, service)
    constraint = await service.constraint(wanted.goal, client_of(request))
    messages, goal = body.messages, wanted.goal
    ids = await service.in_words(lambda: conversation_ids(service.loaded, messages, goal.tools, goal.topic), "messages")
    source = await begun(service, wanted, constraint, [ids], client_of(request))
    name = identifier("chatcmpl")
    if body.stream:
        usage = bool(body.stream_options and body.stream_options.include_usage)
        response: Response = event_stream(source, _chunks(source, body.model, wanted, name, usage), done=True)
        return response  # type: ignore[return-value]
    found = await unless_gone(request, gathered(source, wanted.n))
    law = wanted.guided.logprobs if wanted.logprobs is not None else None
    choices = [_choice(i, text, law, wanted) for i, text in enumerate(found)]
    return ChatAnswer(
        id=name, object="chat.completion", created=now(), model=body.model, choices=choices,
        usage=source.counts.usage(), system_fingerprint=FINGERPRINT, service_tier=None,
    )  # fmt: skip


def wanted_of(body: ChatRequest, service: Service) -> Wanted:
    """What a body asks for; raises `ApiError`."""
    if body.max_tokens is not None and body.max_completion_tokens is not None:
        raise ApiError(400, "max_tokens: max_completion_tokens says the same", param="max_tokens", code="invalid_value")
    if body.top_logprobs is not None and not body.logprobs:
        raise ApiError(400, "top_logprobs: pass logprobs as well", param="top_logprobs", code="invalid_value")
    if body.stream_options is not None and not body.stream:
        raise ApiError(400, "stream_options: pass stream as well", param="stream_options", code="invalid_value")
    if body.guided.sampler and body.guided.sampler.steps and not body.stream:
        raise ApiError(400, "guided.sampler.steps: they are told in a stream", param="guided.sampler.steps")
    paths = Paths(max_tokens="max_tokens" if body.max_tokens is not None else "max_completion_tokens")
    tools = [tool.model_dump(exclude_none=True) for tool in body.tools or ()]
    parallel = body.parallel_tool_calls
    goal = goal_of(body.response_format, tools, body.tool_choice, parallel, body.guided, service.settings, paths)
    one = 1.0
    drawing = Drawing(
        one if body.temperature is None else float(body.temperature), one if body.top_p is None else float(body.top_p),
        body.seed, stops_of(body.stop), biases_of(body.logit_bias, body.presence_penalty, body.frequency_penalty),
    )  # fmt: skip
    logprobs = (body.top_logprobs or 0) if body.logprobs else None
    most = body.max_tokens if body.max_completion_tokens is None else body.max_completion_tokens
    return Wanted(goal, drawing, body.guided, body.n or 1, most, logprobs, paths)


def _choice(index: int, text: Gathered, law: Any, wanted: Wanted) -> ChatChoice:
    content = text.content if text.content or not text.calls else None
    found: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
    if text.reasoning:
        found["reasoning_content"] = text.reasoning
    if text.calls:
        found["tool_calls"] = text.calls
    extra = text.extra(wanted.guided.tokens, law)
    return ChatChoice(
        index=index, message=MadeMessage(**found), finish_reason=text.finish,  # type: ignore[arg-type]
        logprobs=None if law is None else ChatLogprobs(content=text.logprobs),
        **({} if extra is None else {"guided": extra}),
    )  # fmt: skip


async def _chunks(source: Source, model: str, wanted: Wanted, name: str, usage: bool) -> AsyncIterator[ChatChunk]:
    common: dict[str, Any] = {
        "id": name, "object": "chat.completion.chunk", "created": now(), "model": model,
        "system_fingerprint": FINGERPRINT,
    }  # fmt: skip
    if usage:
        common["usage"] = None
    for index in range(wanted.n):
        delta = ChatDelta(role="assistant", content="" if not wanted.goal.only_calls else None)
        yield ChatChunk(**common, choices=[ChunkChoice(index=index, delta=delta, finish_reason=None)])
    async for piece in source.pieces():
        if piece.step is not None:
            yield ChatChunk(**common, choices=[], guided=ChoiceReport(step=piece.step))
            continue
        yield ChatChunk(**common, choices=[_chunk_choice(piece)])
    if usage:
        yield ChatChunk(**{**common, "usage": source.counts.usage()}, choices=[])


def _chunk_choice(piece: Piece) -> ChunkChoice:
    found: dict[str, Any] = {}
    calls: list[MadeCall] = []
    for part in piece.parts:
        if isinstance(part, CallBegins):
            calls.append(made_call(part, part.index))
        elif isinstance(part, CallArguments):
            calls.append(MadeCall(index=part.index, function=CalledFunction(arguments=part.text)))
        else:
            key = "content" if isinstance(part, Content) else "reasoning_content"
            found[key] = found.get(key, "") + part.text
    if calls:
        found["tool_calls"] = calls
    more: dict[str, Any] = {}
    if piece.logprob is not None:
        more["logprobs"] = ChatLogprobs(content=[piece.logprob])
    if piece.extra is not None:
        more["guided"] = piece.extra
    return ChunkChoice(index=piece.choice, delta=ChatDelta(**found), finish_reason=piece.finish, **more)  # type: ignore[arg-type]
