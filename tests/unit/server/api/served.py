"""Servers for tests, on a port of their own in this process; every answer is checked against the published schema."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import jsonschema
import uvicorn

from guided.hf.loading import LoadedModel
from guided.server.api import serving
from guided.server.api.application import application
from guided.server.api.service import Service
from guided.server.api.settings import Settings
from guided.server.scheduling import Scheduler, SchedulerLimits

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer", "maximum": 120}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
ADA = [{"role": "user", "content": "Ada Lovelace is 36 years old."}]
AS_PERSON = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON, "strict": True}}
TOOLS = [
    {"type": "function", "function": {"name": "save", "parameters": PERSON, "strict": True}},
    {"type": "function", "function": {"name": "skip", "parameters": {"type": "object", "properties": {}}}},
]


class Checking:
    """An ASGI application around the server's: what it answers is compared with ``/openapi.json``."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.problems: list[str] = []
        self.checked = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, kind, data = 0, "", bytearray()

        async def watched(message: Any) -> None:
            nonlocal status, kind
            if message["type"] == "http.response.start":
                status = message["status"]
                kind = dict(message["headers"]).get(b"content-type", b"").decode()
            else:
                data.extend(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, receive, watched)
        finally:
            self._check(scope["method"], scope["path"], status, kind.partition(";")[0], bytes(data))

    def _check(self, method: str, path: str, status: int, kind: str, data: bytes) -> None:
        published = self.app.openapi()
        path = "/v1/models/{name}" if path.startswith("/v1/models/") else path
        operation = published["paths"].get(path, {}).get(method.lower())
        # 499 is for the log: whom it was for has gone.
        if operation is None or status in (0, 499) or kind not in ("application/json", "text/event-stream"):
            return
        said = operation["responses"].get(str(status))
        if said is None:
            self.problems.append(f"{method} {path}: {status} is not published")
            return
        content = said["content"][kind]
        schema = content.get("itemSchema", content["schema"])
        error = published["paths"][path][method.lower()]["responses"].get("400", said)["content"]["application/json"]
        events = [data] if kind == "application/json" else [
            line.removeprefix("data: ").encode() for line in data.decode().splitlines() if line.startswith("data: {")
        ]  # fmt: skip
        for event in events:
            value = json.loads(event)
            failed = kind == "text/event-stream" and "error" in value and "object" not in value and "type" not in value
            used = {**(error["schema"] if failed else schema), "components": published["components"]}
            for found in jsonschema.Draft202012Validator(used).iter_errors(value):
                self.problems.append(f"{method} {path} {status}: {found.json_path}: {found.message}")
            self.checked += 1


@dataclass
class Served:
    """A server that runs."""

    service: Service
    scheduler: Scheduler
    port: int
    checking: Checking
    server: uvicorn.Server
    thread: threading.Thread = field(repr=False)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        """As SIGTERM does."""
        self.server.handle_exit(15, None)


@contextmanager
def served(
    loaded: LoadedModel, settings: Settings | None = None, limits: SchedulerLimits | None = None, port: int = 0
) -> Iterator[Served]:
    """A server on a free port, until the end of the block."""
    scheduler = Scheduler(loaded, limits or SchedulerLimits())
    service = Service(loaded, scheduler, settings or Settings(grace_seconds=20))
    checking = Checking(application(service))
    listening = serving.bound("127.0.0.1", port)
    ready = threading.Event()
    config = uvicorn.Config(checking, log_config=None, access_log=False, timeout_graceful_shutdown=5)
    server = serving._Server(config, service, ready.set)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    assert ready.wait(30)
    found = Served(service, scheduler, listening.getsockname()[1], checking, server, thread)
    try:
        yield found
    finally:
        if thread.is_alive():
            found.stop()
            thread.join(30)
        listening.close()
        assert not thread.is_alive()


def until(condition: Any, seconds: float = 20.0) -> bool:
    """Wait for a condition; whether it came."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True
