"""DSPy 3.4: `GuidedEngine`, for ``dspy.LM("guided/nano", engine=GuidedEngine("nano"))``.

With ``dspy.JSONAdapter`` a signature's outputs are a JSON Schema, which is enforced exactly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dspy.lm15 as lm15

from guided.hf.loading import LoadedModel
from guided.serving.frameworks.chat import Chat, chat_of
from guided.serving.frameworks.completions import grammar_of_format

__all__ = ["GuidedEngine"]


class GuidedEngine:
    """Answers DSPy's requests by a model in this process; a name or path, a loaded model, or a `Chat`."""

    supports_function_calling = False
    supports_reasoning = False
    supports_response_schema = True
    supported_params = frozenset({"response_format", "temperature", "top_p", "max_tokens", "stop", "seed"})

    def __init__(self, model: str | LoadedModel | Chat = "nano") -> None:
        self.chat = chat_of(model)

    def complete(self, request: Any) -> Any:
        """One answer.  Raises DSPy's ``UnsupportedFeatureError`` for tools and for options that are not known here."""
        config = request.config
        unknown = [
            name
            for name in ("top_k", "reasoning", "frequency_penalty", "presence_penalty", "logprobs", "probabilities")
            if getattr(config, name) not in (None, 0)
        ]
        if request.tools or unknown:
            raise lm15.UnsupportedFeatureError(f"guided: {', '.join(unknown) or 'tools'}: not supported here")
        messages = [{"role": message.role, "content": _text(message.parts)} for message in request.messages]
        if request.system:
            system = request.system if isinstance(request.system, str) else _text(request.system)
            messages.insert(0, {"role": "system", "content": system})
        made = self.chat.answer(
            messages,
            None if config.response_format is None else grammar_of_format(config.response_format),
            stop=config.stop or None,
            max_new_tokens=config.max_tokens,
            temperature=config.temperature,
            top_p=config.top_p,
            seed=config.seed,
        )
        return lm15.Response(
            id=None,
            model=request.model,
            message=lm15.Message.assistant(made.text),
            finish_reason="stop" if made.finished else "length",
            usage=lm15.Usage(input_tokens=made.n_prompt, output_tokens=made.n_generated),
        )

    def stream(self, request: Any) -> Iterator[Any]:
        """Refused: answers come whole."""
        raise lm15.UnsupportedFeatureError("guided: answers come whole; call the LM without streaming")

    def close(self) -> None:
        """Nothing to give back."""


def _text(parts: Any) -> str:
    texts = [getattr(part, "text", None) for part in parts]
    if not all(isinstance(text, str) for text in texts):
        raise lm15.UnsupportedFeatureError("guided: a message holds more than text")
    return "".join(str(text) for text in texts)
