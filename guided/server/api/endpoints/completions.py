"""``POST /v1/completions``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request, Response

from guided.server.api.answering.delivery import event_stream, unless_gone
from guided.server.api.answering.gathering import Source, gathered
from guided.server.api.answering.texts import identifier
from guided.server.api.asking.prompts import text_ids
from guided.server.api.asking.wanted import Drawing, Paths, Wanted, biases_of, goal_of, stops_of
from guided.server.api.endpoints.shared import FINGERPRINT, Here, begun, client_of, now, streamed
from guided.server.api.guarding.bodies import JsonRoute
from guided.server.api.guarding.errors import ApiError
from guided.server.api.reading.parts import Content
from guided.server.api.service import Service
from guided.server.api.shapes.chat import TokenLogprob
from guided.server.api.shapes.completions import (
    CompletionAnswer,
    CompletionChoice,
    CompletionChunk,
    CompletionLogprobs,
    CompletionRequest,
)
from guided.server.api.shapes.reports import ChoiceReport

__all__ = ["router"]

router = APIRouter(route_class=JsonRoute, tags=["OpenAI"])


@router.post("/v1/completions", responses=streamed(CompletionChunk), response_model_exclude_unset=True)
async def completions(request: Request, body: CompletionRequest, service: Here) -> CompletionAnswer:
    """Continue texts as they stand, under a grammar of ``guided``."""
    service.check_model(body.model)
    if body.stream_options is not None and not body.stream:
        raise ApiError(400, "stream_options: pass stream as well", param="stream_options", code="invalid_value")
    paths = Paths("guided.grammar", "max_tokens")
    # Texts as they stand: nothing is told apart in them.
    plain = replace(service.settings, thinking=None)
    goal = goal_of(None, (), None, None, body.guided, plain, paths)
    temperature = 1.0 if body.temperature is None else float(body.temperature)
    top_p = 1.0 if body.top_p is None else float(body.top_p)
    drawing = Drawing(
        temperature,
        top_p,
        body.seed,
        stops_of(body.stop),
        biases_of(body.logit_bias, body.presence_penalty, body.frequency_penalty),
    )
    wanted = Wanted(goal, drawing, body.guided, body.n or 1, body.max_tokens, body.logprobs, paths)
    constraint = await service.constraint(wanted.goal, client_of(request))
    prompts = await service.in_words(lambda: _prompts(body, service), "prompt")
    source = await begun(service, wanted, constraint, prompts, client_of(request))
    n = wanted.n * len(prompts)
    name = identifier("cmpl")
    if body.stream:
        usage = bool(body.stream_options and body.stream_options.include_usage)
        response: Response = event_stream(source, _chunks(source, body.model, n, name, usage), done=True)
        return response  # type: ignore[return-value]
    found = await unless_gone(request, gathered(source, n))
    law = wanted.guided.logprobs if wanted.logprobs is not None else None
    choices: list[CompletionChoice] = []
    for i, text in enumerate(found):
        more: dict[str, Any] = {}
        extra = text.extra(wanted.guided.tokens, law)
        if extra is not None:
            more["guided"] = extra
        choices.append(
            CompletionChoice(
                index=i, text=text.content, finish_reason=text.finish,  # type: ignore[arg-type]
                logprobs=None if law is None else _columns(text.logprobs, 0), **more,
            )
        )  # fmt: skip
    return CompletionAnswer(
        id=name, object="text_completion", created=now(), model=body.model, choices=choices,
        usage=source.counts.usage(), system_fingerprint=FINGERPRINT,
    )  # fmt: skip


def _prompts(body: CompletionRequest, service: Service) -> list[tuple[int, ...]]:
    """The tokens of each prompt; raises `ApiError` for ids that the model does not have."""
    given: list[Any] = [body.prompt] if isinstance(body.prompt, str) else list(body.prompt)
    if given and isinstance(given[0], int):
        given = [given]
    size = service.loaded.vocabulary.size
    found: list[tuple[int, ...]] = []
    for prompt in given:
        if isinstance(prompt, str):
            found.append(text_ids(service.loaded, prompt))
            continue
        for token in prompt:
            if not 0 <= token < size:
                raise ApiError(400, f"prompt: there is no token {token}", param="prompt", code="invalid_value")
        found.append(tuple(prompt))
    return found


def _columns(tokens: Sequence[TokenLogprob], offset: int) -> CompletionLogprobs:
    offsets: list[int] = []
    for token in tokens:
        offsets.append(offset)
        offset += len(token.token)
    return CompletionLogprobs(
        tokens=[token.token for token in tokens],
        token_logprobs=[token.logprob for token in tokens],
        top_logprobs=[{top.token: top.logprob for top in token.top_logprobs} for token in tokens],
        text_offset=offsets,
    )


async def _chunks(source: Source, model: str, n: int, name: str, usage: bool) -> AsyncIterator[CompletionChunk]:
    common: dict[str, Any] = {
        "id": name, "object": "text_completion", "created": now(), "model": model, "system_fingerprint": FINGERPRINT,
    }  # fmt: skip
    if usage:
        common["usage"] = None
    offsets = [0] * n
    async for piece in source.pieces():
        if piece.step is not None:
            yield CompletionChunk(**common, choices=[], guided=ChoiceReport(step=piece.step))
            continue
        more: dict[str, Any] = {}
        if piece.logprob is not None:
            more["logprobs"] = _columns([piece.logprob], offsets[piece.choice])
            offsets[piece.choice] += len(piece.logprob.token)
        if piece.extra is not None:
            more["guided"] = piece.extra
        text = "".join(part.text for part in piece.parts if isinstance(part, Content))
        choice = CompletionChoice(index=piece.choice, text=text, finish_reason=piece.finish, **more)  # type: ignore[arg-type]
        yield CompletionChunk(**common, choices=[choice])
    if usage:
        yield CompletionChunk(**{**common, "usage": source.counts.usage()}, choices=[])
