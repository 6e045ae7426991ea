"""`application`: the endpoints put together, with what stands before them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

import guided
from guided.errors import GuidedError
from guided.server.api.endpoints import about, chat, completions, looking, responses
from guided.server.api.guarding.door import Door
from guided.server.api.guarding.errors import answer_error
from guided.server.api.guarding.observing import Observing
from guided.server.api.service import Service
from guided.server.api.shapes.chat import ChatChunk
from guided.server.api.shapes.completions import CompletionChunk
from guided.server.api.shapes.responses import AnswerEvent
from guided.server.page import page_routes

__all__ = ["application"]

STREAMED: tuple[type[BaseModel], ...] = (ChatChunk, CompletionChunk, AnswerEvent)
"""Events of streams, which FastAPI does not see."""


def application(service: Service) -> FastAPI:
    """The ASGI application of a service.  It closes the service when it shuts down."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await service.close()

    app = FastAPI(
        title="guided", version=guided.__version__, lifespan=lifespan, docs_url=None, redoc_url=None,
        summary="Exact schemas, grammars and databases behind OpenAI's endpoints.",
    )  # fmt: skip
    app.state.service = service
    for part in (chat, completions, responses, looking, about):
        app.include_router(part.router)
    app.router.routes.extend(page_routes())
    for kind in (RequestValidationError, GuidedError, HTTPException, Exception):
        app.add_exception_handler(kind, answer_error)
    settings = service.settings
    # The last one added is the outermost.
    app.add_middleware(Door, keys=settings.keys, most_bytes=settings.most_bytes, local=settings.local)
    if settings.origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=list(settings.origins), allow_methods=["GET", "POST"],
            allow_headers=["authorization", "content-type"],
        )  # fmt: skip
    app.add_middleware(Observing, metrics=service.metrics, contents=settings.log_contents)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]
    return app


def _openapi(app: FastAPI) -> dict[str, Any]:
    """The published schema, with the events of streams in it."""
    if app.openapi_schema is None:
        found = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
        schemas = found.setdefault("components", {}).setdefault("schemas", {})
        for kind in STREAMED:
            schema = kind.model_json_schema(ref_template="#/components/schemas/{model}", mode="serialization")
            for name, definition in schema.pop("$defs", {}).items():
                schemas.setdefault(name, definition)
            schemas[kind.__name__] = schema
        schemas.pop("HTTPValidationError", None)
        schemas.pop("ValidationError", None)
        for methods in found["paths"].values():
            for operation in methods.values():
                operation.get("responses", {}).pop("422", None)
        app.openapi_schema = found
    return app.openapi_schema
