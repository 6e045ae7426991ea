"""`Chat`: a loaded model that answers conversations under a grammar, with what the frameworks' options mean for it.

It is not a server: one request at a time, in this process.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from guided.errors import GuidedError, UnsupportedError
from guided.grammar.given import reader_of
from guided.hf.front.encoding import encode_prompt
from guided.hf.generate import Generation, generate
from guided.hf.loading import LoadedModel, load

__all__ = ["Answer", "Chat", "chat_of"]


@dataclass(frozen=True)
class Answer:
    """What a model answered."""

    text: str
    finished: bool
    """False where the budget, or a stop text, cut it."""
    n_prompt: int
    """Tokens of the conversation, as the model read them."""
    n_generated: int
    """Tokens of the answer, without its end."""


@dataclass(frozen=True)
class Chat:
    """A loaded model, and the options of `guided.generate` that all its answers have."""

    loaded: LoadedModel
    max_new_tokens: int = 512
    options: Mapping[str, Any] = field(default_factory=dict)

    def answer(
        self,
        messages: Sequence[Mapping[str, Any]],
        grammar: Any = None,
        *,
        stop: Sequence[str] | None = None,
        max_new_tokens: int | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        seed: int | None = None,
    ) -> Answer:
        """Answer a conversation: messages with ``role`` and ``content``; ``grammar`` as `guided.generate` takes it.

        A temperature of 0 takes the likeliest tokens; None, as the options of this object have it.  ``stop`` are texts
        before which free text ends; a text under a grammar ends where the grammar ends it, so both are refused
        together.  Raises what `guided.generate` does.
        """
        if stop and grammar is not None:
            raise UnsupportedError(
                "a stop text would cut what the grammar makes whole", remedy="Leave out one of them."
            )
        options = dict(self.options)
        if temperature is not None:
            options |= {"do_sample": temperature > 0}
            options |= {"temperature": temperature} if temperature > 0 else {}
        if top_p is not None:
            options["top_p"] = top_p
        prompt = prompt_of(self.loaded.tokenizer, messages)
        made: Generation = generate(
            self.loaded,
            prompt,
            grammar,
            max_new_tokens=max_new_tokens or self.max_new_tokens,
            seed=seed,
            **options,
        )
        text, finished = made.text, made.finished
        cuts = [at for each in stop or () if each and (at := text.find(each)) >= 0]
        if cuts:
            text, finished = text[: min(cuts)], True
        return Answer(
            text, finished, len(encode_prompt(prompt, self.loaded.tokenizer, chat=False)), len(made.token_ids)
        )

    def value(self, messages: Sequence[Mapping[str, Any]], kind: Any, **options: Any) -> Any:
        """An object of a type, or the data of a schema; ``options`` as for `answer`.

        Raises `TextError` where the answer was cut, and what the type's own validation raises.
        """
        return reader_of(kind)(whole(self.answer(messages, kind, **options)).text)


def chat_of(model: str | LoadedModel | Chat) -> Chat:
    """The chat itself, that of a loaded model, or of one to be loaded by name."""
    if isinstance(model, Chat):
        return model
    return Chat(load(model) if isinstance(model, str) else model)


def whole(answer: Answer) -> Answer:
    """The answer; raises `GuidedError` where it was cut."""
    if not answer.finished:
        raise GuidedError("the answer was cut before it was whole", remedy="Allow more tokens.")
    return answer


def prompt_of(tokenizer: Any, messages: Sequence[Mapping[str, Any]]) -> Any:
    """A conversation as `guided.generate` takes it; for models without a chat template, its texts by paragraphs.

    Raises `UnsupportedError` for messages that hold anything but text.
    """
    plain = [{"role": str(message["role"]), "content": _text(message.get("content"))} for message in messages]
    if not plain:
        raise GuidedError("the conversation has no messages", remedy="Ask something.")
    if getattr(tokenizer, "chat_template", None):
        return plain
    return "\n\n".join(message["content"] for message in plain)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, Sequence) and all(
        isinstance(part, Mapping) and part.get("type") == "text" for part in content
    ):
        return "".join(str(part["text"]) for part in content)
    raise UnsupportedError("a message holds more than text", remedy="Send text: images and tool results are not read.")
