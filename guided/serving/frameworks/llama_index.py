"""LlamaIndex: `GuidedLLM`, whose ``structured_predict`` and ``as_structured_llm`` are exact (llama-index-core 0.14)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseGen,
    LLMMetadata,
)
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.custom import CustomLLM
from pydantic import ConfigDict

from guided.hf.loading import LoadedModel
from guided.serving.frameworks.chat import Chat, chat_of

__all__ = ["GuidedLLM"]


class GuidedLLM(CustomLLM):
    """A model of transformers, loaded by guided: ``GuidedLLM.of("nano")``.  Streams come in one piece."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    guided_chat: Chat

    @classmethod
    def of(cls, model: str | LoadedModel | Chat) -> GuidedLLM:
        """Of a name or path that `guided.hf.load` takes, a loaded model, or a `Chat` with options of its own."""
        return cls(guided_chat=chat_of(model))

    @property
    def metadata(self) -> LLMMetadata:
        """What LlamaIndex asks of a model."""
        config = self.guided_chat.loaded.model.config.get_text_config()
        room = getattr(config, "max_position_embeddings", None)
        return LLMMetadata(
            context_window=room if isinstance(room, int) else 4096,
            num_output=self.guided_chat.max_new_tokens,
            is_chat_model=True,
            model_name=self.guided_chat.loaded.name,
        )

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """Continue a prompt; ``kwargs`` are those of `Chat.answer`, such as ``grammar``."""
        return CompletionResponse(text=self.guided_chat.answer([{"role": "user", "content": prompt}], **kwargs).text)

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponseGen:
        """As `complete`, in one piece."""

        def pieces() -> CompletionResponseGen:
            text = self.guided_chat.answer([{"role": "user", "content": prompt}], **kwargs).text
            yield CompletionResponse(text=text, delta=text)

        return pieces()

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """Answer a conversation; ``kwargs`` are those of `Chat.answer`."""
        text = self.guided_chat.answer(_told(messages), **kwargs).text
        return ChatResponse(message=ChatMessage(role="assistant", content=text))

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponseGen:
        """As `chat`, in one piece."""

        def pieces() -> ChatResponseGen:
            made = self.chat(messages, **kwargs)
            made.delta = made.message.content
            yield made

        return pieces()

    def structured_predict(
        self, output_cls: Any, prompt: Any, llm_kwargs: dict[str, Any] | None = None, **prompt_args: Any
    ) -> Any:
        """An object of a Pydantic model for a prompt template and its arguments."""
        messages = self._extend_messages(prompt.format_messages(llm=self, **prompt_args))
        return self.guided_chat.value(_told(messages), output_cls, **(llm_kwargs or {}))

    async def astructured_predict(
        self, output_cls: Any, prompt: Any, llm_kwargs: dict[str, Any] | None = None, **prompt_args: Any
    ) -> Any:
        """As `structured_predict`, on another thread."""
        return await asyncio.to_thread(self.structured_predict, output_cls, prompt, llm_kwargs, **prompt_args)

    def stream_structured_predict(
        self, output_cls: Any, prompt: Any, llm_kwargs: dict[str, Any] | None = None, **prompt_args: Any
    ) -> Any:
        """As `structured_predict`, the whole object at once."""
        yield self.structured_predict(output_cls, prompt, llm_kwargs, **prompt_args)


def _told(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    return [{"role": message.role.value, "content": message.content} for message in messages]
