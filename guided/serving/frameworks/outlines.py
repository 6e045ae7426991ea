"""Outlines 1.3: guided as a backend, by name: ``outlines.Generator(model, output_type, backend="guided")``.

Outlines names its backends in one function, which `register` wraps.  What Outlines turns into a regular expression or a
JSON Schema before a backend sees it is as Outlines has it.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

import outlines.backends as backends
from outlines.backends.base import BaseBackend
from outlines.models import Transformers

from guided.errors import UnsupportedError
from guided.grammar.ir import Grammar
from guided.hf.processor import GuidedLogitsProcessor
from guided.serving.requests import Request, RequestKind

__all__ = ["GuidedBackend", "register"]

NAME = "guided"


class GuidedBackend(BaseBackend):
    """Makes logits processors for a model of Outlines that transformers runs; others are refused."""

    def __init__(self, model: Any) -> None:
        if not isinstance(model, Transformers):
            raise UnsupportedError(
                f"guided's backend of Outlines does not know {type(model).__name__}",
                remedy="Use outlines.from_transformers(...), or guided.serving's own package for the engine.",
            )
        self.tokenizer = model.hf_tokenizer

    def get_json_schema_logits_processor(self, json_schema: str, whitespace_pattern: str | None = None) -> Any:
        """For a JSON Schema; ``whitespace_pattern`` is a regex for the white space between tokens.

        Objects that declare members hold no others, unless they say so, as in Outlines' own backends.
        """
        return self._processor(
            Request(RequestKind.JSON_SCHEMA, json_schema, whitespace=whitespace_pattern, closed=True).grammar()
        )

    def get_regex_logits_processor(self, regex: str) -> Any:
        """For a regular expression, which the whole text matches."""
        return self._processor(Request(RequestKind.REGEX, regex).grammar())

    def get_cfg_logits_processor(self, grammar: str) -> Any:
        """For a grammar in Lark's notation, or in one with ``::=``."""
        return self._processor(Request(RequestKind.GRAMMAR, grammar).grammar())

    def _processor(self, grammar: Grammar) -> GuidedLogitsProcessor:
        return GuidedLogitsProcessor(grammar, self.tokenizer)


def register(*, default: bool = False) -> None:
    """Let Outlines know the backend ``"guided"``; ``default``: also where no backend is named.

    Does nothing the second time.
    """
    chosen = backends._get_backend
    if not hasattr(chosen, "of_guided"):

        @wraps(chosen)
        def get_backend(backend_name: str, model: Any) -> BaseBackend:
            return GuidedBackend(model) if backend_name == NAME else chosen(backend_name, model)

        get_backend.of_guided = True  # type: ignore[attr-defined]
        backends._get_backend = get_backend
    if default:
        backends.CFG_DEFAULT_BACKEND = NAME
        backends.JSON_SCHEMA_DEFAULT_BACKEND = NAME
        backends.REGEX_DEFAULT_BACKEND = NAME
