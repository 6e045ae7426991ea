"""OpenAI's ``chat.completions.create`` over a `Chat`, in this process: what instructor and others wrap.

Not a server.  Options that would change the answer and are not known here are refused: nothing is ignored.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from guided.errors import GrammarError, UnsupportedError
from guided.serving.frameworks.chat import Chat
from guided.serving.requests import Request, RequestKind

__all__ = ["Completions", "grammar_of_format"]

_OF_NO_WEIGHT = {"model", "user", "metadata", "store", "stream_options"}
"""Options that say nothing of the answer."""


class Completions:
    """``create`` as OpenAI's client has it."""

    def __init__(self, chat: Chat) -> None:
        self.chat = chat

    def create(
        self,
        *,
        messages: Sequence[Mapping[str, Any]],
        response_format: Mapping[str, Any] | None = None,
        max_tokens: int | None = None,
        max_completion_tokens: int | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        seed: int | None = None,
        stop: str | Sequence[str] | None = None,
        **others: Any,
    ) -> Any:
        """Answer a conversation by an ``openai.types.chat.ChatCompletion``.

        Raises `UnsupportedError` for tools, streams and other options.
        """
        refused = sorted(name for name, value in others.items() if value is not None and name not in _OF_NO_WEIGHT)
        if refused:
            raise UnsupportedError(f"{', '.join(refused)}: not supported here", remedy="Leave it out.")
        made = self.chat.answer(
            messages,
            None if response_format is None else grammar_of_format(response_format),
            stop=[stop] if isinstance(stop, str) else stop,
            max_new_tokens=max_completion_tokens or max_tokens,
            temperature=temperature,
            top_p=top_p,
            seed=seed,
        )
        from openai.types.chat import ChatCompletion

        return ChatCompletion.model_validate(
            {
                "id": f"chatcmpl-{uuid.uuid4().hex}",
                "object": "chat.completion",
                "created": int(time.time()),
                "model": self.chat.loaded.name,
                "choices": [
                    {
                        "index": 0,
                        "finish_reason": "stop" if made.finished else "length",
                        "message": {"role": "assistant", "content": made.text},
                    }
                ],
                "usage": {
                    "prompt_tokens": made.n_prompt,
                    "completion_tokens": made.n_generated,
                    "total_tokens": made.n_prompt + made.n_generated,
                },
            }
        )


def grammar_of_format(response_format: Mapping[str, Any]) -> Any:
    """The grammar of a ``response_format``, OpenAI's or DSPy's; None for free text.

    Objects that declare members hold no others, unless they say so: the schemas come from types.
    """
    kind = response_format.get("type")
    if kind == "text":
        return None
    if kind == "json_object":
        return Request(RequestKind.JSON_OBJECT, "").grammar()
    if kind == "json_schema":
        named = response_format.get("json_schema", response_format)
        if isinstance(named, Mapping) and "schema" in named:
            return Request(RequestKind.JSON_SCHEMA, json.dumps(named["schema"]), closed=True).grammar()
        raise GrammarError("the response format has no schema", remedy='Give {"json_schema": {"schema": {...}}}.')
    raise UnsupportedError(f"there is no response format {kind!r}", remedy="Use text, json_object or json_schema.")
