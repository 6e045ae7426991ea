"""`ApiError`: what is answered instead, in OpenAI's shape; and which error of guided becomes which."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from fastapi import HTTPException, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException as StarletteHttpException

from guided.errors import GrammarError, GuidedError, LimitError, UnsatisfiableError, UnsupportedError, VocabularyError
from guided.server.api.shapes.base import Answered
from guided.server.scheduling import Busy, Cancelled, Closing

__all__ = ["ApiError", "ErrorBody", "answer_error", "path_of", "refused", "taken"]


class ErrorFields(Answered):
    """What went wrong, where, and what to do."""

    message: str
    type: Literal["invalid_request_error", "authentication_error", "rate_limit_error", "server_error"]
    param: str | None
    """The path of the field in the request, such as ``messages[0].content``."""
    code: str | None
    where: str | None = None
    """The place within that field: a JSON pointer into a schema, a line and column, an offset."""


class ErrorBody(Answered):
    """The body of every answer that is an error."""

    error: ErrorFields


class ApiError(HTTPException):
    """An answer that is an error."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        where: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        headers = {} if retry_after is None else {"Retry-After": str(max(1, math.ceil(retry_after)))}
        if status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        super().__init__(status, message, headers)
        kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
        self.body = ErrorBody(error=ErrorFields(message=message, type=kind, param=param, code=code, where=where))

    def response(self) -> JSONResponse:
        """The answer itself."""
        return JSONResponse(self.body.model_dump(), self.status_code, self.headers)


_TYPES: Mapping[int, Any] = {401: "authentication_error", 429: "rate_limit_error"}
"""OpenAI's types where the status alone does not say it."""


async def answer_error(request: Request, error: Exception) -> JSONResponse:
    """The answer for what an endpoint raised; for FastAPI's handlers."""
    if isinstance(error, RequestValidationError):
        error = taken(error.errors(), error.body)
    elif isinstance(error, GuidedError):
        error = refused(error)
    elif isinstance(error, StarletteHttpException) and not isinstance(error, ApiError):
        codes = {404: "not_found", 405: "method_not_allowed"}
        error = ApiError(error.status_code, str(error.detail), code=codes.get(error.status_code))
    if not isinstance(error, ApiError):
        # Its text may hold what a request said: it belongs to the log, not into an answer.
        error = ApiError(500, "an error that the server did not foresee; its log says more", code="internal_error")
    return error.response()


_CODES: Mapping[type[GuidedError], str] = {
    GrammarError: "malformed_grammar",
    UnsupportedError: "unsupported",
    UnsatisfiableError: "unsatisfiable",
    VocabularyError: "unsupported_vocabulary",
    LimitError: "limit",
}


def refused(error: GuidedError, param: str | None = None) -> ApiError:
    """What a user is told of an error of guided; ``param`` is the field that it comes from.

    >>> refused(GrammarError("no rule", where="line 1"), "guided.grammar.text").body.error.code
    'malformed_grammar'
    """
    if isinstance(error, Busy):
        return ApiError(429, str(error), code="busy", retry_after=error.retry_after)
    if isinstance(error, Closing):
        return ApiError(503, str(error), code="closing", retry_after=CLOSING_SECONDS)
    if isinstance(error, Cancelled):
        return ApiError(499, str(error), code="cancelled")
    code = next((code for kind, code in _CODES.items() if isinstance(error, kind)), "invalid_value")
    return ApiError(400, str(error), param=param, code=code, where=error.where)


CLOSING_SECONDS = 5.0
"""What a client is told to wait for a server that shuts down: about as long as one takes to start."""


def path_of(location: Sequence[str | int]) -> str:
    """The path of a field.

    >>> path_of(["messages", 0, "content"])
    'messages[0].content'
    """
    path = ""
    for key in location:
        path += f"[{key}]" if isinstance(key, int) else f".{key}" if path else key
    return path


def taken(errors: Sequence[Mapping[str, Any]], body: Any) -> ApiError:
    """What is told of pydantic's errors about a body: the one deepest in it, which is of the type that fits best."""
    paths = [_path(error["loc"], body) for error in errors]
    at = max(range(len(errors)), key=lambda i: len(paths[i]))
    kind, param = errors[at]["type"], path_of(paths[at]) or None
    if kind == "extra_forbidden":
        return ApiError(400, f"there is no field {param!r} here", param=param, code="unknown_parameter")
    codes = {"missing": "missing_required_parameter", "unsupported_value": "unsupported_value"}
    message = f"{param or 'the body'}: {errors[at]['msg']}"
    return ApiError(400, message, param=param, code=codes.get(kind, "invalid_value"))


def _path(location: Sequence[str | int], body: Any) -> list[str | int]:
    """The keys of a location that are in the body, and one that is missing there: others name types of unions."""
    keys: list[str | int] = []
    at = body
    found = [key for key in location if key != "body"] if location[:1] == ("body",) else list(location)
    for n, key in enumerate(found):
        if isinstance(at, Mapping) and isinstance(key, str) and (key in at or n == len(found) - 1):
            keys.append(key)
            at = at.get(key)
        elif isinstance(at, list) and isinstance(key, int) and key < len(at):
            keys.append(key)
            at = at[key]
    return keys
