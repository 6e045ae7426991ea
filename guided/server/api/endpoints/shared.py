"""What endpoints have in common: where the service is, how texts begin, and what OpenAPI says of errors and streams."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias

from fastapi import Depends, Request

import guided
from guided.constraint.protocol import Constrains
from guided.server.api.answering.texts import Texts, job_for
from guided.server.api.answering.whole_texts import WholeTexts
from guided.server.api.asking.wanted import Wanted
from guided.server.api.guarding.errors import ApiError, ErrorBody
from guided.server.api.service import Service

__all__ = ["FINGERPRINT", "RESPONSES", "Here", "begun", "client_of", "now", "streamed"]

FINGERPRINT = f"guided-{guided.__version__}"

RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorBody} for status in (400, 401, 404, 413, 415, 421, 429, 500, 503)
}
"""What may be answered instead."""


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    if service.is_closing:
        raise ApiError(503, "the server is shutting down", code="closing", retry_after=5)
    return service


Here: TypeAlias = Annotated[Service, Depends(_service)]
"""The service that answers; an endpoint that asks for it answers 503 once the server is told to stop."""


async def begun(
    service: Service, wanted: Wanted, constraint: Constrains | None, prompts: Sequence[tuple[int, ...]], client: str
) -> Texts | WholeTexts:
    """The texts of a request, which the scheduler has taken; raises `ApiError`."""
    n_texts = len(prompts) * wanted.n
    if n_texts > service.settings.most_texts:
        most = service.settings.most_texts
        raise ApiError(400, f"n: {n_texts} texts are asked for, and {most} may be", param="n", code="invalid_value")
    if wanted.guided.sampler or wanted.guided.search or wanted.guided.draft is not None:
        if len(prompts) > 1:
            raise ApiError(
                400, "prompt: a sampler, a search or a draft takes one", param="prompt", code="unsupported_combination"
            )
        whole = WholeTexts(service, wanted, job_for(service, wanted, prompts[0], constraint, 0, client))
        await whole.begin()
        return whole
    numbered = [(prompt, k) for i, prompt in enumerate(prompts) for k in range(i * wanted.n, (i + 1) * wanted.n)]
    texts = Texts(service, wanted, [job_for(service, wanted, ids, constraint, k, client) for ids, k in numbered])
    await texts.begin()
    return texts


def client_of(request: Request) -> str:
    """Whose turn a request takes in the queue: its key's, else its address's."""
    return request.headers.get("authorization") or (request.client.host if request.client else "")


def now() -> int:
    """The time as OpenAI's answers tell it."""
    return int(time.time())


def streamed(chunk: type) -> dict[int | str, dict[str, Any]]:
    """What OpenAPI says of an answer that may be a stream of ``chunk``."""
    schema = {"$ref": f"#/components/schemas/{chunk.__name__}"}
    event = {"type": "string", "description": "Server-sent events, whose data are JSON as `itemSchema` says."}
    return {200: {"content": {"text/event-stream": {"schema": event, "itemSchema": schema}}}, **RESPONSES}
