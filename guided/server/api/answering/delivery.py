"""How answers leave: all at once unless the client has gone, or as server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any, TypeVar

from fastapi import Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from guided.server.api.answering.gathering import Source
from guided.server.api.guarding.errors import ApiError

__all__ = ["event_stream", "unless_gone"]

T = TypeVar("T")


async def unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """What ``work`` gives; it is cancelled once the client has gone."""
    task = asyncio.create_task(work)
    watch = asyncio.create_task(_gone(request))
    try:
        await asyncio.wait((task, watch), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ApiError(499, "the client has gone", code="client_gone")
        return task.result()
    finally:
        for one in (task, watch):
            one.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await task


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def event_stream(
    source: Source, events: AsyncIterator[BaseModel], *, done: bool, named: bool = False
) -> StreamingResponse:
    """A stream of events; an error in the middle is an event too, and the last one.

    ``done`` ends it by ``[DONE]``; ``named`` gives each event the name of its ``type``.
    """

    async def lines() -> AsyncIterator[bytes]:
        try:
            async for event in events:
                name = f"event: {event.type}\n" if named else ""  # type: ignore[attr-defined]
                yield f"{name}data: {event.model_dump_json(exclude_unset=True)}\n\n".encode()
            if done:
                yield b"data: [DONE]\n\n"
        except ApiError as error:
            name = "event: error\n" if named else ""
            yield f"{name}data: {error.body.model_dump_json()}\n\n".encode()
        finally:
            # Also where the client has gone: this generator is closed then.
            source.cancel()

    return StreamingResponse(lines(), media_type="text/event-stream", headers={"Cache-Control": "no-cache"})
