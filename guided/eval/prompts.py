"""What a model is asked for a schema: the benchmark's conversation with two examples, in the form that the model takes.

The conversation is that of Geng et al., 2025: an instruction as the system's message, examples as turns of user (a
schema) and assistant (an object), then the schema.  The examples are our own.  A model without a chat template gets the
same as plain text, and guided-nano, which knows only the prompts it was trained on, its extraction prompt.
"""

from __future__ import annotations

import json
from typing import Any

from guided.hf import LoadedModel
from guided.hf.loading import PACKAGED
from guided.nano import extraction_prompt

__all__ = ["PROMPT_VERSION", "prompt_ids", "schema_conversation", "schema_text"]

PROMPT_VERSION = 1
"""Part of what makes two results comparable: raise it with any change of the texts below."""

INSTRUCTION = "You need to generate a JSON object that matches the schema below."
EXAMPLES: tuple[tuple[Any, Any], ...] = (
    (
        {
            "type": "object",
            "properties": {
                "title": {"type": "string", "description": "Name of the book"},
                "pages": {"type": "integer", "minimum": 1},
                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 5},
            },
            "required": ["title", "pages"],
        },
        {"title": "The Left Hand of Darkness", "pages": 304, "tags": ["fiction", "winter"]},
    ),
    (
        {
            "type": "object",
            "properties": {
                "city": {"type": "string"},
                "location": {
                    "type": "object",
                    "properties": {"lat": {"type": "number"}, "lon": {"type": "number"}},
                    "required": ["lat", "lon"],
                },
                "capital": {"type": "boolean"},
            },
            "required": ["city", "location"],
        },
        {"city": "Lisbon", "location": {"lat": 38.72, "lon": -9.14}, "capital": True},
    ),
)
NANO_TEXT = "Ada Lovelace was born in London on 10 December 1815 and wrote 3 letters about the engine for 25.5 pounds."
"""Something to extract: with an empty text guided-nano repeats itself without end, whatever the engine."""


def schema_conversation(schema: Any, examples: bool = True) -> list[dict[str, str]]:
    """The messages for a schema, in the roles of chat templates."""
    messages = [{"role": "system", "content": INSTRUCTION}]
    for example, value in EXAMPLES if examples else ():
        messages.append({"role": "user", "content": json.dumps(example)})
        messages.append({"role": "assistant", "content": json.dumps(value)})
    messages.append({"role": "user", "content": json.dumps(schema)})
    return messages


def schema_text(schema: Any, examples: bool = True) -> str:
    """The same for a model that continues text."""
    parts = [INSTRUCTION]
    shown = EXAMPLES if examples else ()
    parts += [f"Schema: {json.dumps(example)}\nJSON: {json.dumps(value)}" for example, value in shown]
    parts.append(f"Schema: {json.dumps(schema)}\nJSON:")
    return "\n\n".join(parts)


def prompt_ids(model: LoadedModel, schema: Any, room: int | None) -> list[int]:
    """The prompt's tokens, without the examples where ``room`` tokens do not hold them.

    For guided-nano, a schema whose summary does not fit is left out of its prompt.
    """
    ids: list[int] = []
    for whole in (True, False):
        ids = _ids(model, schema, whole)
        if room is None or len(ids) <= room:
            break
    return ids


def _ids(model: LoadedModel, schema: Any, whole: bool) -> list[int]:
    tokenizer = model.tokenizer
    if model.name == PACKAGED:
        return list(tokenizer(extraction_prompt(schema if whole else True, NANO_TEXT))["input_ids"])
    if not getattr(tokenizer, "chat_template", None):
        return list(tokenizer(schema_text(schema, whole))["input_ids"])
    text = _templated(tokenizer, schema_conversation(schema, whole))
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def _templated(tokenizer: Any, messages: list[dict[str, str]]) -> str:
    try:
        text: str = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    except Exception:  # a template raises jinja2's errors, or its own, where it has no place for a system's message
        system, first, *rest = messages
        joined = {"role": "user", "content": f"{system['content']}\n\n{first['content']}"}
        text = tokenizer.apply_chat_template([joined, *rest], add_generation_prompt=True, tokenize=False)
    return text
