"""Constraints where other engines run the model: vLLM, SGLang, MLX-LM, llama.cpp and others.

One package an engine, each over the same parts, which know no engine:

* `matcher`: `Matcher`, one request's place in its constraint; `fill_rows`, the masks of a batch of them.
* `continuation`: `Continuation`, the same for engines that hand over ids and scores and nothing else.
* `texts`: `Goal`, what users of our `generate` functions pass; `Text`, what they get.
* `requests`: `Request`, what a server's user asked for, as a grammar.
* `named`: constraints that a server's operator has named, which requests ask for by these names.
* `vocabularies`: `Vocabularies`, the vocabulary of an engine's tokenizer, for each set of ids that end a text.
* `compilation`: `Compiler`, the constraints of its requests, each compiled once; `metrics` counts what it does.

An engine is imported in its own package only, and these names when they are first used: servers load the packages of
their plug-ins in every process that they start, most of which never ask for a mask.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from guided.serving.compilation import Compiler
    from guided.serving.continuation import Continuation
    from guided.serving.matcher import Matcher, fill_rows
    from guided.serving.requests import Request, RequestKind
    from guided.serving.texts import Goal, Text
    from guided.serving.vocabularies import Vocabularies

_HOMES = {
    "Compiler": "guided.serving.compilation",
    "Continuation": "guided.serving.continuation",
    "fill_rows": "guided.serving.matcher",
    "Goal": "guided.serving.texts",
    "Matcher": "guided.serving.matcher",
    "Request": "guided.serving.requests",
    "RequestKind": "guided.serving.requests",
    "Text": "guided.serving.texts",
    "Vocabularies": "guided.serving.vocabularies",
}

__all__ = ["Compiler", "Continuation", "Goal", "Matcher", "Request", "RequestKind", "Text", "Vocabularies", "fill_rows"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'guided.serving' has no attribute {name!r}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value
