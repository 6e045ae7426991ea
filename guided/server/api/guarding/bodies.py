"""Bodies of requests: JSON to the letter of RFC 8259, and nothing that is another value to somebody else.

Python's reader takes NaN, Infinity, the same name twice and half surrogates.  None of these is JSON that all readers
agree on, so none is taken.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from guided.server.api.guarding.errors import ApiError

__all__ = ["MOST_LEVELS", "JsonRoute", "read_json"]

MOST_LEVELS = 128
"""Of arrays and objects in each other: a schema nests three levels for each level of its values, and is read by
recursive functions."""

_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{}]', re.DOTALL)


def read_json(data: bytes) -> Any:
    """The value of a JSON text; raises `ApiError` for what is none.

    >>> read_json(b'{"a": [1]}')
    {'a': [1]}
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _malformed(f"the body is not UTF-8: {error.reason}", error.start) from None
    levels = 0
    for found in _BRACKETS.finditer(data):
        levels += {b"[": 1, b"{": 1, b"]": -1, b"}": -1}.get(found[0], 0)
        if levels > MOST_LEVELS:
            raise _malformed(f"the body is nested deeper than {MOST_LEVELS} levels", found.start())
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_number)
        # Half of a surrogate pair is no character, and could not be written again.
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise _malformed("a string holds half of a surrogate pair") from None
    except json.JSONDecodeError as error:
        raise _malformed(f"the body is not JSON: {error.msg}", error.pos) from None
    except (ValueError, RecursionError) as error:
        raise _malformed(f"the body is not JSON: {error}") from None
    return value


def _malformed(what: str, at: int | None = None) -> ApiError:
    return ApiError(400, what, code="malformed_json", where=None if at is None else f"offset {at}")


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) < len(members):
        names = [name for name, _ in members]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"an object has the name {twice!r} twice")
    return found


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text} is larger than numbers here can be")
    return value


class _JsonRequest(Request):
    async def json(self) -> Any:
        return read_json(await self.body())


class JsonRoute(APIRoute):
    """A route whose bodies are JSON as `read_json` takes it, and said to be so."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's, with requests of our own."""
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            if request.method == "POST":
                # A page of another site can send text without asking first, but not JSON.
                kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
                if kind != "application/json":
                    raise ApiError(415, "the body has to be application/json", code="unsupported_media_type")
            return await handler(_JsonRequest(request.scope, request.receive))

        return handle
