"""`Items`: the output of a response, item by item, and the events that tell of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from guided.server.api.answering.texts import Piece, identifier
from guided.server.api.reading.parts import CallArguments, CallBegins, Content, Reasoning
from guided.server.api.shapes.responses import (
    AnswerEvent,
    CallItem,
    MessageItem,
    OutputText,
    ReasoningItem,
    ReasoningPart,
)

__all__ = ["Items"]

Item = ReasoningItem | MessageItem | CallItem


class Items:
    """Takes pieces of one text; gives events, and at the end holds all items."""

    def __init__(self, event: Callable[..., AnswerEvent]) -> None:
        self.items: list[Item] = []
        self._event = event

    def take(self, piece: Piece) -> Iterator[AnswerEvent]:
        """The events of a piece."""
        for part in piece.parts:
            if isinstance(part, CallBegins):
                yield from self.close("completed")
                item = CallItem(
                    type="function_call", id=identifier("fc"), call_id=identifier("call"), name=part.name, arguments="",
                    status="in_progress",
                )  # fmt: skip
                yield self._begin(item)
            elif isinstance(part, CallArguments):
                call = self.items[-1]
                assert isinstance(call, CallItem)
                call.arguments += part.text
                yield self._told("response.function_call_arguments.delta", delta=part.text)
            else:
                yield from self._text(part, piece)

    def _text(self, part: Content | Reasoning, piece: Piece) -> Iterator[AnswerEvent]:
        kind = MessageItem if isinstance(part, Content) else ReasoningItem
        if not self.items or not isinstance(self.items[-1], kind) or self.items[-1].status != "in_progress":
            yield from self.close("completed")
            yield from self._begin_text(kind)
        item = self.items[-1]
        assert isinstance(item, (MessageItem, ReasoningItem))
        item.content[0].text += part.text
        if isinstance(item, ReasoningItem):
            yield self._told("response.reasoning_text.delta", content_index=0, delta=part.text)
            return
        logprobs = [] if piece.logprob is None else [piece.logprob.model_dump()]
        item.content[0].logprobs += logprobs
        yield self._told("response.output_text.delta", content_index=0, delta=part.text, logprobs=logprobs)

    def _begin_text(self, kind: type[MessageItem | ReasoningItem]) -> Iterator[AnswerEvent]:
        if kind is MessageItem:
            message = MessageItem(
                type="message", id=identifier("msg"), role="assistant", status="in_progress", content=[]
            )
            yield self._begin(message)
            message.content.append(OutputText(type="output_text", text="", annotations=[], logprobs=[]))
            part: OutputText | ReasoningPart = message.content[0]
        else:
            thought = ReasoningItem(type="reasoning", id=identifier("rs"), summary=[], content=[], status="in_progress")
            yield self._begin(thought)
            thought.content.append(ReasoningPart(type="reasoning_text", text=""))
            part = thought.content[0]
        yield self._told("response.content_part.added", content_index=0, part=part.model_copy(deep=True))

    def close(self, status: str) -> Iterator[AnswerEvent]:
        """The events that end the last item."""
        if not self.items or self.items[-1].status != "in_progress":
            return
        item = self.items[-1]
        item.status = status  # type: ignore[assignment]
        if isinstance(item, CallItem):
            yield self._told("response.function_call_arguments.done", name=item.name, arguments=item.arguments)
        else:
            part = item.content[0]
            kind = "output_text" if isinstance(item, MessageItem) else "reasoning_text"
            more = {"logprobs": part.logprobs} if isinstance(part, OutputText) else {}
            yield self._told(f"response.{kind}.done", content_index=0, text=part.text, **more)
            yield self._told("response.content_part.done", content_index=0, part=part)
        yield self._event("response.output_item.done", output_index=len(self.items) - 1, item=item)

    def _begin(self, item: Item) -> AnswerEvent:
        self.items.append(item)
        event = self._event(
            "response.output_item.added", output_index=len(self.items) - 1, item=item.model_copy(deep=True)
        )
        return event

    def _told(self, kind: str, **fields: Any) -> AnswerEvent:
        return self._event(kind, output_index=len(self.items) - 1, item_id=self.items[-1].id, **fields)
