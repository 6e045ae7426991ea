"""What a request of vLLM asks for, its ``structured_outputs``, as a `guided.serving.Request`.

It reads attributes only, so it needs no vLLM.  Fields are those of ``StructuredOutputsParams`` and
``StructuredOutputsConfig`` (0.32, 0.33); with other backends those of a request about white space are ignored.
"""

from __future__ import annotations

import json
from typing import Any

from guided.errors import GrammarError
from guided.serving.requests import Request, RequestKind

__all__ = ["WHOLE", "asked", "asked_by_name", "field_of", "most_tokens"]

_FIELDS = {
    RequestKind.JSON_SCHEMA: "json",
    RequestKind.JSON_OBJECT: "json_object",
    RequestKind.REGEX: "regex",
    RequestKind.CHOICE: "choice",
    RequestKind.GRAMMAR: "grammar",
    RequestKind.STRUCTURAL_TAG: "structural_tag",
}

_KINDS = {kind.name: kind for kind in RequestKind} | {"JSON": RequestKind.JSON_SCHEMA}
"""By the names of vLLM's ``StructuredOutputOptions``."""

_WITH_JSON = (RequestKind.JSON_SCHEMA, RequestKind.JSON_OBJECT, RequestKind.STRUCTURAL_TAG)

WHOLE = "guided_whole"
"""The key of ``SamplingParams.extra_args`` (``vllm_xargs`` of servers) that asks for a whole text in `max_tokens`."""


def asked(params: Any, config: Any = None) -> Request:
    """The request of ``params``, with the defaults for white space and objects of the engine's ``config``.

    Raises `GrammarError` where it asks for nothing or for less than nothing.
    """
    found = [(kind, value) for kind, name in _FIELDS.items() if (value := getattr(params, name)) is not None]
    if len(found) != 1:
        raise GrammarError(
            f"{len(found)} kinds of structured outputs are asked for",
            remedy=f"Give one of {', '.join(_FIELDS.values())}.",
        )
    kind, value = found[0]
    if kind is RequestKind.JSON_OBJECT:
        if value is not True:
            raise GrammarError("json_object is not true", remedy="Leave it out to ask for nothing.")
        value = ""
    text = value if isinstance(value, str) else json.dumps(value)
    if kind is RequestKind.GRAMMAR:
        return Request.of_grammar(text)
    compact = params.disable_any_whitespace or getattr(config, "disable_any_whitespace", False)
    closed = params.disable_additional_properties or getattr(config, "disable_additional_properties", False)
    space = params.whitespace_pattern if params.whitespace_pattern is not None else "compact" if compact else None
    return Request(
        kind, text, whitespace=space if kind in _WITH_JSON else None, closed=closed and kind is RequestKind.JSON_SCHEMA
    )


def asked_by_name(name: str, text: str, config: Any = None) -> Request:
    """The request of a kind by its name in vLLM and a text: all that is left of it where beams are searched."""
    kind = _KINDS[name]
    if kind is RequestKind.GRAMMAR:
        return Request.of_grammar(text)
    compact = getattr(config, "disable_any_whitespace", False)
    closed = getattr(config, "disable_additional_properties", False)
    return Request(
        kind,
        text,
        whitespace="compact" if compact and kind in _WITH_JSON else None,
        closed=closed and kind is RequestKind.JSON_SCHEMA,
    )


def field_of(kind: RequestKind) -> str:
    """The field of vLLM's ``structured_outputs`` for a kind, as an error names it."""
    return f"structured_outputs.{_FIELDS.get(kind, _FIELDS[RequestKind.GRAMMAR])}"


def most_tokens(sampling_params: Any) -> int | None:
    """The tokens within which the text must be whole, its end included; None where that is not asked for."""
    if not (sampling_params.extra_args or {}).get(WHOLE):
        return None
    most: int | None = sampling_params.max_tokens
    return most
