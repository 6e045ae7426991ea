"""LangChain: `ChatGuided`, a chat model whose structured outputs are exact (langchain-core 1.x).

``with_structured_output`` takes what `guided.json_schema` takes; ``bind(grammar=...)`` any grammar.  Tools are refused:
which texts are calls is the model family's own, and servers know it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, convert_to_openai_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableLambda
from pydantic import ConfigDict

from guided.errors import TextError, UnsupportedError
from guided.grammar.given import reader_of
from guided.hf.loading import LoadedModel
from guided.serving.frameworks.chat import Chat, chat_of

__all__ = ["ChatGuided"]


class ChatGuided(BaseChatModel):
    """A model of transformers, loaded by guided: ``ChatGuided.of("nano")``."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    chat: Chat

    @classmethod
    def of(cls, model: str | LoadedModel | Chat) -> ChatGuided:
        """Of a name or path that `guided.hf.load` takes, a loaded model, or a `Chat` with options of its own."""
        return cls(chat=chat_of(model))

    @property
    def _llm_type(self) -> str:
        return "guided"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": self.chat.loaded.name, "max_new_tokens": self.chat.max_new_tokens, **self.chat.options}

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        *,
        grammar: Any = None,
        max_tokens: int | None = None,
        **options: Any,
    ) -> ChatResult:
        """One answer; ``options`` are ``temperature``, ``top_p`` and ``seed``."""
        options.pop("ls_structured_output_format", None)
        told: Any = convert_to_openai_messages(messages)
        made = self.chat.answer(told, grammar, stop=stop, max_new_tokens=max_tokens, **options)
        message = AIMessage(
            content=made.text,
            response_metadata={
                "model_name": self.chat.loaded.name,
                "finish_reason": "stop" if made.finished else "length",
            },
            usage_metadata={
                "input_tokens": made.n_prompt,
                "output_tokens": made.n_generated,
                "total_tokens": made.n_prompt + made.n_generated,
            },
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        """Refused."""
        raise UnsupportedError(
            "tools are not called here", remedy="Use with_structured_output, or a server with guided's grammars."
        )

    def with_structured_output(self, schema: Any, *, include_raw: bool = False, **kwargs: Any) -> Runnable[Any, Any]:
        """A runnable that returns objects of a type (Pydantic, dataclass, TypedDict, ...), or the data of a schema.

        Raises `guided.GuidedError` at once for a schema that cannot be enforced.  ``include_raw`` returns ``raw``,
        ``parsed`` and ``parsing_error`` instead, as LangChain's own models do.
        """
        from guided.grammar.given import grammar_of

        if kwargs:
            raise UnsupportedError(f"{', '.join(sorted(kwargs))}: not known here", remedy="Leave it out.")
        grammar_of(schema)
        read = reader_of(schema)
        model = self.bind(grammar=schema)

        def parsed(message: Any) -> Any:
            if message.response_metadata["finish_reason"] == "length":
                raise TextError("the answer was cut before it was whole", remedy="Allow more tokens.")
            return read(message.content)

        def both(message: Any) -> dict[str, Any]:
            try:
                return {"raw": message, "parsed": parsed(message), "parsing_error": None}
            except Exception as error:  # whatever the type's validation raises
                return {"raw": message, "parsed": None, "parsing_error": error}

        return model | RunnableLambda(both if include_raw else parsed)
