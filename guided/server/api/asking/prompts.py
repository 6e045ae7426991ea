"""Conversations as token ids: by the model's chat template, or as the packaged model was trained to be asked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from guided import nano
from guided.errors import GuidedError
from guided.grammar.sql import DatabaseSchema
from guided.hf.front.encoding import encode_prompt
from guided.hf.loading import PACKAGED, LoadedModel
from guided.server.api.shapes.messages import AssistantMessage, Content, Message, ToolMessage

__all__ = ["Topic", "conversation_ids", "text_ids"]

Topic = dict[str, Any] | bool | DatabaseSchema | None
"""What the answer is about, for a model that is told so by its prompt: a schema, or a database."""


def text_ids(loaded: LoadedModel, text: str) -> tuple[int, ...]:
    """The tokens of a text as it stands; raises `GuidedError` for one without any."""
    return tuple(encode_prompt(text, loaded.tokenizer, False))


def conversation_ids(
    loaded: LoadedModel, messages: Sequence[Message], tools: Sequence[dict[str, Any]], topic: Topic
) -> tuple[int, ...]:
    """The tokens of a conversation, up to where the model's answer begins.

    Raises `GuidedError` for what the chat template refuses.
    """
    tokenizer = loaded.tokenizer
    if not getattr(tokenizer, "chat_template", None):
        return text_ids(loaded, _worded(loaded, messages, tools, topic))
    plain = [_plain(message) for message in messages]
    try:
        text = tokenizer.apply_chat_template(
            plain, tools=list(tools) or None, add_generation_prompt=True, tokenize=False
        )
    except Exception as error:  # A template is a program of the model's author, and raises what it likes.
        raise GuidedError(
            f"the model's chat template refuses the conversation: {error}", remedy="Change roles or their order."
        ) from error
    return tuple(tokenizer(text, add_special_tokens=False)["input_ids"])


def _text(content: Content | None) -> str:
    if content is None:
        return ""
    return content if isinstance(content, str) else "".join(part.text for part in content)


def _plain(message: Message) -> dict[str, Any]:
    """A message as templates take it."""
    found: dict[str, Any] = {"role": message.role, "content": _text(message.content)}
    if message.role == "developer":
        found["role"] = "system"
    if message.name is not None:
        found["name"] = message.name
    if isinstance(message, ToolMessage):
        found["tool_call_id"] = message.tool_call_id
    if isinstance(message, AssistantMessage):
        if message.reasoning_content is not None:
            found["reasoning_content"] = message.reasoning_content
        if message.tool_calls:
            found["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.function.name, "arguments": _arguments(call.function.arguments)},
                }
                for call in message.tool_calls
            ]
    return found


def _arguments(text: str) -> Any:
    """Arguments as data, which templates write again; as text where they are no JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _worded(loaded: LoadedModel, messages: Sequence[Message], tools: Sequence[dict[str, Any]], topic: Topic) -> str:
    """A conversation for a model without a chat template: its texts, and for the packaged one what is wanted."""
    texts = [_text(message.content) for message in messages]
    for message in messages:
        if isinstance(message, AssistantMessage) and message.tool_calls:
            texts.append(" ".join(f"{call.function.name} {call.function.arguments}" for call in message.tool_calls))
    if loaded.name == PACKAGED:
        if isinstance(topic, DatabaseSchema):
            return nano.sql_prompt(_tables(topic), " ".join(texts), topic.dialect)
        if topic is not None:
            return nano.extraction_prompt(topic, " ".join(texts))
        if tools:
            return nano.extraction_prompt(_call_schema(tools), " ".join(texts))
    return "\n\n".join(text for text in texts if text)


def _call_schema(tools: Sequence[dict[str, Any]]) -> dict[str, Any]:
    functions = [tool["function"] for tool in tools]
    arguments = [function.get("parameters") or {"type": "object"} for function in functions]
    return {
        "type": "object",
        "properties": {
            "name": {"enum": [function["name"] for function in functions]},
            "arguments": arguments[0] if len(arguments) == 1 else {"anyOf": arguments},
        },
        "required": ["name", "arguments"],
    }


def _tables(database: DatabaseSchema) -> list[nano.Table]:
    return [
        nano.Table(
            table.name,
            tuple(nano.Column(column.name, column.type) for column in table.columns),
            tuple(
                nano.ForeignKey(own, key.table, other)
                for key in table.foreign_keys
                for own, other in zip(key.columns, key.referred, strict=False)
            ),
        )
        for table in database.tables
    ]
