"""``/v1/models``, ``/v1/tokenize``, ``/health`` and ``/metrics``: what is here."""

from __future__ import annotations

from typing import get_args

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

import guided
from guided.hf.loading import PACKAGED
from guided.nano.experts import Expert
from guided.server.api.endpoints.shared import RESPONSES, Here
from guided.server.api.guarding.bodies import JsonRoute
from guided.server.api.service import Service
from guided.server.api.shapes.extension import SamplerField, SearchField
from guided.server.api.shapes.extras import (
    Health,
    ModelAbilities,
    ModelCard,
    ModelList,
    TokenizeAnswer,
    TokenizeRequest,
)

__all__ = ["router"]

router = APIRouter(route_class=JsonRoute, tags=["About"], responses=RESPONSES)


@router.get("/v1/models")
async def models(service: Here) -> ModelList:
    """The model under each of its names, with what requests for it may name."""
    return ModelList(data=[_card(service, name) for name in service.names])


@router.get("/v1/models/{name:path}")
async def model(name: str, service: Here) -> ModelCard:
    """One model."""
    service.check_model(name)
    return _card(service, name)


def _card(service: Service, name: str) -> ModelCard:
    settings = service.settings
    toys = {PACKAGED, *(expert.name_to_load for expert in Expert)}
    abilities = ModelAbilities(
        steerers=list(settings.steerers), drafts=list(settings.drafts), databases=list(settings.databases),
        samplers=list(get_args(SamplerField.model_fields["name"].annotation)),
        searches=list(get_args(get_args(SearchField.model_fields["name"].annotation)[0])),
        tool_style=settings.tool_style.value, reasoning=settings.thinking is not None, context=service.room,
        toy=service.loaded.name in toys,
    )  # fmt: skip
    return ModelCard(id=name, created=service.started, guided=abilities)


@router.post("/v1/tokenize")
async def tokenize(body: TokenizeRequest, service: Here) -> TokenizeAnswer:
    """The tokens of a text."""
    service.check_model(body.model)
    tokenizer, vocabulary = service.loaded.tokenizer, service.loaded.vocabulary

    def ids_of() -> list[int]:
        return list(tokenizer(body.text, add_special_tokens=body.add_special_tokens)["input_ids"])

    ids = await service.in_words(ids_of, "text")
    data = [vocabulary.token_bytes(token) for token in ids]
    return TokenizeAnswer(ids=ids, bytes=[None if each is None else list(each) for each in data], count=len(ids))


@router.get("/health", responses={503: {"model": Health}})
async def health(request: Request) -> Health:
    """Whether requests are taken; 503 once the server was told to stop."""
    service: Service = request.app.state.service
    found = Health(
        status="closing" if service.is_closing else "ok", model=service.loaded.name, version=guided.__version__
    )
    if service.is_closing:
        response: Response = JSONResponse(found.model_dump(), 503)
        return response  # type: ignore[return-value]
    return found


@router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(request: Request) -> Response:
    """Counts and times, for Prometheus."""
    service: Service = request.app.state.service
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")
