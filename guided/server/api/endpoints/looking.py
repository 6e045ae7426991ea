"""``/v1/guided/explain``, ``/v1/guided/check`` and ``/v1/guided/complete``: what an editor of grammars asks."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter

from guided.constraint.constraint import Constraint
from guided.errors import GuidedError, TextError
from guided.grammar.json_schema import schema_report
from guided.reading.json_pointer import pointer_of
from guided.reading.json_stream import JsonStream
from guided.server.api.answering.suggestions import suggested
from guided.server.api.asking.sources import Written
from guided.server.api.asking.wanted import Goal
from guided.server.api.endpoints.shared import RESPONSES, Here
from guided.server.api.guarding.bodies import JsonRoute
from guided.server.api.guarding.errors import ApiError
from guided.server.api.shapes.extras import (
    CheckAnswer,
    CheckRequest,
    CompleteAnswer,
    CompleteRequest,
    ExplainAnswer,
    ExplainRequest,
    Fault,
    KeywordReport,
)
from guided.server.api.shapes.languages import Schema

__all__ = ["router"]

router = APIRouter(route_class=JsonRoute, tags=["guided"], responses=RESPONSES)


@router.post("/v1/guided/explain")
async def explain(body: ExplainRequest, service: Here) -> ExplainAnswer:
    """Whether a token, or a text, may come behind a beginning, and why, in the words of the grammar."""
    service.check_model(body.model)
    if (body.token is None) == (body.text is None):
        raise ApiError(400, "token: pass either a token or a text", param="token", code="invalid_value")
    if body.prefix and body.prefix_ids is not None:
        raise ApiError(400, "prefix_ids: prefix says the same", param="prefix_ids", code="invalid_value")
    constraint = await service.constraint(Goal(Written.of(body.grammar), "grammar"))
    if not isinstance(constraint, Constraint):
        raise ApiError(400, "grammar: it does not explain itself", param="grammar", code="unsupported")
    return await asyncio.to_thread(_explained, constraint, body)


def _explained(constraint: Constraint, body: ExplainRequest) -> ExplainAnswer:
    state = constraint.start
    data = body.prefix.encode()
    if body.prefix_ids is None:
        state = constraint.advance_bytes(state, data)
    else:
        data = b"".join(constraint.vocabulary.token_bytes(token) or b"" for token in body.prefix_ids)
        for token in body.prefix_ids:
            state = constraint.advance(state, token) if state else 0
    if not state:
        raise ApiError(400, "prefix: no text of the grammar begins so", param="prefix", code="invalid_value")
    if body.token is not None:
        allowed, why = bool(constraint.advance(state, body.token)), constraint.explain(state, body.token)
    else:
        assert body.text is not None
        allowed, why = _explained_text(constraint, state, body.text)
    return ExplainAnswer(
        allowed=allowed, why=why, may_end=constraint.is_accepting(state),
        forced=constraint.forced(state).decode("utf-8", "replace"), pointer=_pointer(data),
    )  # fmt: skip


def _explained_text(constraint: Constraint, state: int, text: str) -> tuple[bool, str]:
    """The same of a text: it is followed as far as it goes."""
    data = text.encode()
    for at in range(len(data)):
        after = constraint.advance_bytes(state, data[at : at + 1])
        if not after:
            rest = data[at:].decode("utf-8", "replace")
            return (
                False,
                f"{text!r} is not allowed: {rest[:1]!r} does not fit behind {data[:at].decode('utf-8', 'replace')!r}",
            )
        state = after
    return True, f"{text!r} is allowed"


def _pointer(data: bytes) -> str | None:
    """The value of a JSON text that is in progress; None where it is no JSON."""
    stream = JsonStream()
    try:
        stream.append(data)
    except TextError:
        return None
    return None if stream.path is None else pointer_of(stream.path)


@router.post("/v1/guided/check")
async def check(body: CheckRequest, service: Here) -> CheckAnswer:
    """Whether a grammar can be enforced, and what becomes of each keyword of a schema."""
    service.check_model(body.model)
    source = Written.of(body.grammar)
    fault: Fault | None = None
    notes: list[str] = []
    shortest: int | None = None
    lines: list[KeywordReport] = []
    try:
        constraint = await service.languages.constraint(source)
        shortest = await asyncio.to_thread(constraint.shortest_completion, constraint.start)
    except GuidedError as error:
        fault = Fault(kind=type(error).__name__, message=error.what, where=error.where, remedy=error.remedy)
    else:
        notes = list((await asyncio.to_thread(service.languages.grammar, source)).notes)
    if isinstance(body.grammar, Schema):
        schema = body.grammar
        report = await asyncio.to_thread(schema_report, schema.json_schema, strict=schema.strict)
        lines = [
            KeywordReport(pointer=one.pointer, enforcement=one.enforcement.value, reason=one.why) for one in report
        ]
    return CheckAnswer(ok=fault is None, fault=fault, notes=notes, keywords=lines, shortest=shortest)


@router.post("/v1/guided/complete")
async def complete(body: CompleteRequest, service: Here) -> CompleteAnswer:
    """What may come next in the text of a JSON Schema that is being written."""
    service.check_model(body.model)
    return await asyncio.to_thread(suggested, body.text)
