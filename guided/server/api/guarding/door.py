"""`Door`: who comes in, and with how much; what a request says is not looked at here."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from guided.server.api.guarding.errors import ApiError

__all__ = ["Door"]

LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
"""Names of this machine for itself."""

OPEN = ("/health", "/static/", "/favicon.ico")
"""Paths that need no key, besides the page itself."""


class Door:
    """An ASGI application before another: refuses strange hosts, missing keys and large bodies.

    A server that listens to this machine alone is asked for by a name of this machine: a page of another site whose
    name was made to mean 127.0.0.1 is not.
    """

    def __init__(self, app: ASGIApp, keys: Sequence[str], most_bytes: int, local: bool) -> None:
        self.app, self.most_bytes, self.local = app, most_bytes, local
        self._keys = [key.encode() for key in keys]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        error = self._refusal(scope["path"], headers)
        if error is not None:
            await error.response()(scope, receive, send)
            return
        await self._measured(scope, receive, send)

    def _refusal(self, path: str, headers: Headers) -> ApiError | None:
        if self.local and urlsplit(f"//{headers.get('host', '')}").hostname not in LOCAL:
            return ApiError(421, "this server answers to localhost", code="wrong_host")
        if self._keys and path != "/" and not path.startswith(OPEN):
            kind, _, given = headers.get("authorization", "").partition(" ")
            given_bytes = given.strip().encode()
            # All are compared, each in constant time.
            known = [hmac.compare_digest(given_bytes, key) for key in self._keys]
            if kind.lower() != "bearer" or not any(known):
                return ApiError(
                    401, "a key of this server is needed: Authorization: Bearer KEY", code="invalid_api_key"
                )
        length = headers.get("content-length", "0")
        if not length.isdigit() or int(length) > self.most_bytes:
            return self._too_large()
        return None

    def _too_large(self) -> ApiError:
        return ApiError(413, f"a body may have {self.most_bytes} bytes", code="request_too_large")

    async def _measured(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Go on, but stop a body that grows too large while it comes, whatever its length was said to be."""
        received = 0
        started = False

        async def limited() -> Message:
            nonlocal received
            message = await receive()
            if message["type"] == "http.request":
                received += len(message.get("body", b""))
                if received > self.most_bytes:
                    raise self._too_large()
            return message

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self.app(scope, limited, watched)
        except ApiError as error:
            if started:
                raise
            await error.response()(scope, receive, send)
