"""``POST /v1/responses``."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, Request, Response

from guided.server.api.answering.delivery import event_stream, unless_gone
from guided.server.api.answering.gathering import Gathered, Source
from guided.server.api.answering.items import Items
from guided.server.api.answering.texts import identifier
from guided.server.api.asking.prompts import conversation_ids
from guided.server.api.asking.wanted import Drawing, Paths, Wanted, goal_of
from guided.server.api.endpoints.shared import Here, begun, client_of, now, streamed
from guided.server.api.guarding.bodies import JsonRoute
from guided.server.api.guarding.errors import ApiError
from guided.server.api.service import Service
from guided.server.api.shapes.messages import (
    AssistantMessage,
    FunctionCall,
    Message,
    TextMessage,
    ToolCall,
    ToolMessage,
)
from guided.server.api.shapes.reports import ChoiceReport
from guided.server.api.shapes.responses import (
    AnswerEvent,
    CallOutput,
    CallPart,
    FlatFunction,
    Incomplete,
    InputDetails,
    OutputDetails,
    ResponseAnswer,
    ResponseRequest,
    ResponseUsage,
)
from guided.server.api.shapes.tools import FunctionName, NamedFunction

__all__ = ["router"]

router = APIRouter(route_class=JsonRoute, tags=["OpenAI"])


@router.post("/v1/responses", responses=streamed(AnswerEvent), response_model_exclude_unset=True)
async def responses(request: Request, body: ResponseRequest, service: Here) -> ResponseAnswer:
    """Answer a text or a conversation, under a schema, a grammar or with tools; nothing is stored."""
    service.check_model(body.model)
    wanted = _wanted(body, service)
    constraint = await service.constraint(wanted.goal, client_of(request))
    messages, goal = _messages(body), wanted.goal
    ids = await service.in_words(lambda: conversation_ids(service.loaded, messages, goal.tools, goal.topic), "input")
    source = await begun(service, wanted, constraint, [ids], client_of(request))
    events = _events(source, body, wanted)
    if body.stream:
        response: Response = event_stream(source, events, done=False, named=True)
        return response  # type: ignore[return-value]
    return await unless_gone(request, _last(events))


async def _last(events: AsyncIterator[AnswerEvent]) -> ResponseAnswer:
    """The answer that the last event holds."""
    found: ResponseAnswer | None = None
    async for event in events:
        found = event.response or found
    assert found is not None
    return found


def _wanted(body: ResponseRequest, service: Service) -> Wanted:
    paths = Paths("text.format", "max_output_tokens")
    tools = [
        {"type": "function", "function": tool.model_dump(exclude_none=True, exclude={"type"})}
        for tool in body.tools or ()
    ]
    choice: Any = body.tool_choice
    if isinstance(choice, FlatFunction):
        choice = NamedFunction(type="function", function=FunctionName(name=choice.name))
    goal = goal_of(body.text.format, tools, choice, body.parallel_tool_calls, body.guided, service.settings, paths)
    listed = "message.output_text.logprobs" in (body.include or ())
    if body.top_logprobs is not None and not listed:
        what = "top_logprobs: include message.output_text.logprobs as well"
        raise ApiError(400, what, param="top_logprobs", code="invalid_value")
    drawing = Drawing(
        1.0 if body.temperature is None else float(body.temperature), 1.0 if body.top_p is None else float(body.top_p),
        body.seed,
    )  # fmt: skip
    logprobs = (body.top_logprobs or 0) if listed else None
    return Wanted(goal, drawing, body.guided, 1, body.max_output_tokens, logprobs, paths)


def _messages(body: ResponseRequest) -> list[Message]:
    """The input as a conversation."""
    found: list[Message] = []
    if body.instructions is not None:
        found.append(TextMessage(role="system", content=body.instructions))
    if isinstance(body.input, str):
        return [*found, TextMessage(role="user", content=body.input)]
    for item in body.input:
        if isinstance(item, CallPart):
            call = ToolCall(id=item.call_id, function=FunctionCall(name=item.name, arguments=item.arguments))
            found.append(AssistantMessage(role="assistant", tool_calls=[call]))
        elif isinstance(item, CallOutput):
            found.append(ToolMessage(role="tool", content=item.output, tool_call_id=item.call_id))
        else:
            text = item.content if isinstance(item.content, str) else "".join(part.text for part in item.content)
            if item.role == "assistant":
                found.append(AssistantMessage(role="assistant", content=text))
            else:
                found.append(TextMessage(role=item.role, content=text))
    return found


async def _events(source: Source, body: ResponseRequest, wanted: Wanted) -> AsyncIterator[AnswerEvent]:
    number = -1

    def event(kind: str, **fields: Any) -> AnswerEvent:
        nonlocal number
        number += 1
        return AnswerEvent(type=kind, sequence_number=number, **fields)  # type: ignore[arg-type]

    answer = _begun(body, wanted)
    yield event("response.created", response=answer)
    yield event("response.in_progress", response=answer)
    items, text = Items(event), Gathered()
    async for piece in source.pieces():
        text.take(piece)
        for one in items.take(piece):
            yield one
        if piece.extra is not None:
            yield event("response.guided", guided=piece.extra)
    cut = text.finish == "length"
    for one in items.close("incomplete" if cut else "completed"):
        yield one
    counts = source.counts
    answer.output, answer.status = items.items, "incomplete" if cut else "completed"
    answer.incomplete_details = Incomplete(reason="max_output_tokens") if cut else None
    answer.usage = ResponseUsage(
        input_tokens=counts.prompt, output_tokens=counts.written, total_tokens=counts.prompt + counts.written,
        input_tokens_details=InputDetails(cached_tokens=counts.cached, cache_write_tokens=0),
        output_tokens_details=OutputDetails(reasoning_tokens=counts.reasoning),
    )  # fmt: skip
    extra: ChoiceReport | None = text.extra(
        wanted.guided.tokens, wanted.guided.logprobs if wanted.logprobs is not None else None
    )
    if extra is not None:
        answer.guided = extra
    yield event(f"response.{answer.status}", response=answer)


def _begun(body: ResponseRequest, wanted: Wanted) -> ResponseAnswer:
    format_ = body.text.format
    said = {"type": "text"} if format_ is None else format_.model_dump(by_alias=True, exclude_none=True)
    choice: Any = body.tool_choice or "auto"
    return ResponseAnswer(
        id=identifier("resp"), object="response", created_at=now(), status="in_progress", model=body.model, output=[],
        error=None, incomplete_details=None, instructions=body.instructions, metadata=body.metadata or {},
        parallel_tool_calls=body.parallel_tool_calls is not False, temperature=wanted.drawing.temperature,
        top_p=wanted.drawing.top_p, max_output_tokens=body.max_output_tokens,
        tool_choice=choice if isinstance(choice, str) else choice.model_dump(),
        tools=[{"parameters": None, "strict": None, **tool.model_dump(exclude_none=True)} for tool in body.tools or ()],
        text={"format": said}, truncation="disabled", store=False, background=False,
    )  # fmt: skip
