"""`generate`: prompt and grammar to text with llama-cpp-python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from guided.errors import GuidedError
from guided.serving.llama_cpp.processor import LlamaCppProcessor, Processors
from guided.serving.llama_cpp.tokenizer import vocabulary_of_llama
from guided.serving.texts import Goal, Text

__all__ = ["generate"]


def generate(
    llama: Any,
    prompt: str | Sequence[int],
    grammar: Any,
    *,
    max_tokens: int = 256,
    temperature: float = 0.0,
    **options: Any,
) -> Text:
    """Generate a text of the grammar's language, whole, in at most ``max_tokens`` tokens, the end among them.

    ``llama`` is a `llama_cpp.Llama`; ``grammar`` is what `guided.generate` takes.  ``options`` go to `Llama.generate`:
    ``top_k``, ``top_p``, ``min_p``, ``repeat_penalty``, ``logits_processor`` and the rest; the grammar speaks after
    those processors and before the samplers.  Greedy unless ``temperature`` is given.  Raises `LimitError` where no
    text fits, and `GuidedError` where prompt and text do not fit the context.
    """
    goal = Goal.of(grammar, vocabulary_of_llama(llama))
    ids = llama.tokenize(prompt.encode(), special=True) if isinstance(prompt, str) else list(prompt)
    if len(ids) + max_tokens > llama.n_ctx():
        raise GuidedError(
            f"the prompt takes {len(ids)} tokens and max_tokens is {max_tokens}, but the context holds {llama.n_ctx()}",
            remedy="Shorten the prompt, pass a smaller max_tokens, or make the Llama with a larger n_ctx.",
        )
    processor = LlamaCppProcessor(llama, goal.constraint, max_tokens)
    processors = Processors([*(options.pop("logits_processor", None) or ()), processor])
    tokens: list[int] = []
    for token in llama.generate(ids, temp=temperature, logits_processor=processors, **options):
        processor.check()
        tokens.append(token)
        if token in goal.constraint.vocabulary.eos_ids or len(tokens) == max_tokens:
            break
    return goal.text(tokens)
