"""Routes for the page's files: read once, compressed once, under a policy that lets a browser load nothing else.

Nothing from a request becomes a path: each file has a route of its own.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

__all__ = ["POLICY", "page_routes"]

STATIC = Path(__file__).parent / "static"

TYPES: Mapping[str, str] = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none';"
    " form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Scripts, styles and connections of this origin only; no markup from text, no frames, no forms that are sent away."""


@dataclass(frozen=True)
class _File:
    """A file as it is sent."""

    plain: bytes
    packed: bytes
    headers: Mapping[str, str]

    @classmethod
    def read(cls, path: Path) -> _File:
        plain = path.read_bytes()
        headers = {
            "Content-Type": TYPES[path.suffix],
            "Content-Security-Policy": POLICY,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            # Kept, but asked about each time: after an upgrade no old module meets a new one.
            "Cache-Control": "no-cache",
            "ETag": f'W/"{hashlib.sha256(plain).hexdigest()[:20]}"',
            "Vary": "Accept-Encoding",
        }
        return cls(plain, gzip.compress(plain, 9, mtime=0), headers)

    async def answer(self, request: Request) -> Response:
        """The file, or 304 where the browser has it."""
        if request.headers.get("if-none-match") == self.headers["ETag"]:
            return Response(None, 304, self.headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(self.packed, headers={**self.headers, "Content-Encoding": "gzip"})
        return Response(self.plain, headers=self.headers)


def page_routes() -> list[Route]:
    """A route for ``/``, and one below ``/static/`` for each other file of the page.

    >>> [route.path for route in page_routes()][:3]
    ['/', '/static/answer.js', '/static/client.js']
    """
    routes = [Route("/", _File.read(STATIC / "index.html").answer)]
    for path in sorted(STATIC.iterdir()):
        if path.name != "index.html":
            routes.append(Route(f"/static/{path.name}", _File.read(path).answer))
    return routes
