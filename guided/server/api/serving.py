"""`serve`: an application behind uvicorn on one address, until it is told to stop; signals and logs."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import signal
import socket
from collections.abc import Callable
from types import FrameType

import numpy as np
import uvicorn

import guided
from guided.collection import set_aside
from guided.errors import GuidedError
from guided.hf.loading import LoadedModel
from guided.server.api.application import application
from guided.server.api.guarding.observing import JsonLines, logger
from guided.server.api.service import Service

__all__ = ["bound", "is_local", "serve", "warm"]

LAST_BYTES = 5
"""Seconds that answers may still take to leave once their texts have ended."""


def is_local(host: str) -> bool:
    """Whether only this machine reaches a host's address.

    >>> is_local("localhost"), is_local("127.0.0.1"), is_local("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 is any that is free.  Raises `GuidedError` where that cannot be."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        taken = error.errno == errno.EADDRINUSE
        raise GuidedError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}",
            where="--port" if taken else "--host",
            remedy="Pass --port 0 for one that is free." if taken else "Pass an address of this machine.",
        ) from error


def warm(loaded: LoadedModel) -> None:
    """Make a first mask, so that no request waits for kernels to be loaded or compiled."""
    constraint = guided.compile(guided.json_schema({"type": "object"}), loaded.vocabulary)
    row = np.empty(loaded.vocabulary.n_words, np.uint32)
    constraint.fill_mask(constraint.start, row)
    constraint.fill_budget_mask(constraint.start, row, 64)


class _Server(uvicorn.Server):
    """Ends what runs before it stops listening: until then what is new is answered 503."""

    def __init__(self, config: uvicorn.Config, service: Service, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._service, self._on_ready = service, on_ready
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """See uvicorn."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        self._on_ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first signal ends gracefully, the second at once."""
        if self._service.is_closing or self._loop is None:
            self.should_exit = self.force_exit = True
            return
        self._service.is_closing = True
        logger.info("closing", extra={"fields": {"signal": signal.Signals(sig).name}})
        self._loop.call_soon_threadsafe(self._close)

    def _close(self) -> None:
        async def close() -> None:
            try:
                await self._service.close()
            finally:
                self.should_exit = True

        self._closing = asyncio.ensure_future(close())


def serve(service: Service, listening: socket.socket, on_ready: Callable[[], None]) -> None:
    """Answer requests until SIGTERM or SIGINT; ``on_ready`` is called once requests are taken."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    for name in ("guided.server", "uvicorn.error"):
        named = logging.getLogger(name)
        named.handlers, named.propagate = [handler], False
        named.setLevel(logging.INFO if name == "guided.server" else logging.WARNING)
    config = uvicorn.Config(
        application(service), log_config=None, access_log=False, server_header=False, lifespan="on",
        timeout_graceful_shutdown=LAST_BYTES, h11_max_incomplete_event_size=64 << 10,
    )  # fmt: skip
    set_aside()
    with listening:
        _Server(config, service, on_ready).run(sockets=[listening])
