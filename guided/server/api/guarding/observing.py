"""`Observing`: a line in the log and the metrics for every request; what was said in it only if that is asked for."""

from __future__ import annotations

import json
import logging
import time
import uuid
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from guided.server.api.guarding.metrics import Metrics

__all__ = ["JsonLines", "Observing", "logger"]

logger = logging.getLogger("guided.server")


class JsonLines(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter`."""
        found: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            found["traceback"] = self.formatException(record.exc_info)
        return json.dumps(found, ensure_ascii=True)


class Observing:
    """An ASGI application around all others; it never sees an error that was not answered."""

    def __init__(self, app: ASGIApp, metrics: Metrics, contents: bool) -> None:
        self.app, self.metrics, self.contents = app, metrics, contents

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 499
        name = uuid.uuid4().hex
        body = bytearray()

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", name.encode())]
            await send(message)

        async def heard() -> Message:
            message = await receive()
            if self.contents and message["type"] == "http.request":
                body.extend(message.get("body", b""))
            return message

        self.metrics.running.inc()
        try:
            await self.app(scope, heard, watched)
        finally:
            self.metrics.running.dec()
            self._note(scope, name, status, time.perf_counter() - started, bytes(body))

    def _note(self, scope: Scope, name: str, status: int, seconds: float, body: bytes) -> None:
        route = scope.get("route")
        # Paths that are none of ours have no label each: anybody could make any number of them.
        path = getattr(route, "path", "other")
        self.metrics.requests.labels(path, str(status)).inc()
        self.metrics.seconds.labels(path).observe(seconds)
        fields: dict[str, Any] = {
            "id": name, "method": scope["method"], "path": path, "status": status, "seconds": round(seconds, 4),
        }  # fmt: skip
        if self.contents and body:
            fields["body"] = body.decode("utf-8", "replace")
        logger.info("request", extra={"fields": fields})
