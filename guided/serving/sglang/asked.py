"""What a request of SGLang asks for, as a `guided.serving.Request`; and how an answer stands inside a frame.

SGLang 0.5.23 gives a kind and a text.  Its own notation is small: ``$$ANY$$`` for any JSON, and structural tags that
leave out schemas, or say ``at_least_one`` in XGrammar's older notation.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from guided.errors import GrammarError, UnsupportedError
from guided.serving.requests import Request, RequestKind

__all__ = ["ANY_JSON", "WHOLE", "asked_json", "asked_tag", "content_of"]

ANY_JSON = "$$ANY$$"
"""In the place of a schema: any JSON value."""

WHOLE = "guided_whole"
"""The key of ``custom_params`` that asks for a whole text in ``max_new_tokens``; vLLM's requests have it too."""

SCHEMA_TYPES = ("json_schema", "qwen_xml_parameter")
"""Formats of structural tags in which SGLang lets the schema be missing: any value."""


def asked_json(text: str, whitespace: str | None) -> Request:
    """A schema, or `ANY_JSON`."""
    return Request(RequestKind.JSON_SCHEMA, "true" if text == ANY_JSON else text, whitespace=whitespace)


def asked_tag(text: str, whitespace: str | None) -> Request:
    """A structural tag of either notation, with the schemas that SGLang leaves out.

    Raises `GrammarError` for what is no JSON object.
    """
    try:
        tag = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise GrammarError(f"the structural tag is not JSON: {error}", where="#", remedy="Correct the text.") from None
    if not isinstance(tag, dict):
        raise GrammarError("the structural tag is no JSON object", where="#", remedy="Give an object.")
    if tag.get("structures") is not None:
        tag = {"type": "structural_tag", "format": _triggered(tag)}
    return Request(RequestKind.STRUCTURAL_TAG, json.dumps(_with_schemas(tag)), whitespace=whitespace)


def content_of(request: Request) -> dict[str, Any]:
    """A request as a format of structural tags, to stand inside a frame.

    Raises `UnsupportedError` for what the operator has named, of which there may be no grammar with rules.
    """
    if request.kind is RequestKind.NAMED:
        raise UnsupportedError(
            f"what is named {request.text!r} cannot stand inside the frame of a message", remedy="Ask for it alone."
        )
    written: dict[RequestKind, Callable[[], dict[str, Any]]] = {
        RequestKind.JSON_SCHEMA: lambda: {"type": "json_schema", "json_schema": json.loads(request.text)},
        RequestKind.REGEX: lambda: {"type": "regex", "pattern": request.text},
        RequestKind.GRAMMAR: lambda: {"type": "grammar", "grammar": request.text},
        RequestKind.STRUCTURAL_TAG: lambda: json.loads(request.text)["format"],
    }
    return written[request.kind]()


def _triggered(tag: dict[str, Any]) -> dict[str, Any]:
    """The older notation as the format that it stands for; what is missing in it is named when that is read."""
    structures = tag["structures"] if isinstance(tag["structures"], list) else []
    tags = [
        {
            "type": "tag",
            "begin": each.get("begin"),
            "content": {"type": "json_schema", "json_schema": each.get("schema")},
            "end": each.get("end"),
        }
        for each in structures
        if isinstance(each, dict)
    ]
    return {
        "type": "triggered_tags",
        "triggers": tag.get("triggers"),
        "tags": tags,
        "at_least_one": bool(tag.get("at_least_one", False)),
    }


def _with_schemas(part: Any) -> Any:
    """A format with the schema of any value wherever one is missing; schemas themselves are left alone."""
    if isinstance(part, list):
        return [_with_schemas(each) for each in part]
    if not isinstance(part, dict):
        return part
    if part.get("type") in SCHEMA_TYPES:
        return {**part, "json_schema": True if part.get("json_schema") is None else part["json_schema"]}
    return {name: _with_schemas(each) for name, each in part.items()}
