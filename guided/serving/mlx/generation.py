"""`generate` and `generate_batch`: prompt and grammar to text with MLX-LM."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from guided.errors import GuidedError, UnsupportedError
from guided.serving.mlx.processor import MlxProcessor, vocabulary_of_mlx
from guided.serving.texts import Goal, Text

__all__ = ["generate", "generate_batch"]


def generate(
    model: Any, tokenizer: Any, prompt: str | Sequence[int], grammar: Any, *, max_tokens: int = 256, **options: Any
) -> Text:
    """Generate a text of the grammar's language, whole, in at most ``max_tokens`` tokens, the end among them.

    ``model`` and ``tokenizer`` are those of `mlx_lm.load`; ``grammar`` is what `guided.generate` takes.  ``options`` go
    to `mlx_lm.stream_generate`: ``sampler``, ``draft_model``, ``logits_processors`` and the rest; the grammar speaks
    last.  Greedy without a ``sampler``.  Raises `LimitError` where no text fits.
    """
    from mlx_lm import stream_generate

    goal = Goal.of(grammar, vocabulary_of_mlx(tokenizer))
    processors = [*(options.pop("logits_processors", None) or ()), MlxProcessor(goal.constraint, max_tokens)]
    stream = stream_generate(model, tokenizer, prompt, max_tokens=max_tokens, logits_processors=processors, **options)
    return goal.text(_tokens(stream))


def generate_batch(
    model: Any,
    tokenizer: Any,
    prompts: Sequence[str | Sequence[int]],
    grammars: Any,
    *,
    max_tokens: int | Sequence[int] = 256,
    **options: Any,
) -> list[Text]:
    """As `generate` for a list of prompts at once, with one grammar, or a list of one for each.

    ``options`` go to MLX-LM's `BatchGenerator`: ``sampler``, ``completion_batch_size`` and the rest.
    """
    from mlx_lm.generate import BatchGenerator

    if "logits_processors" in options:
        raise UnsupportedError("a batch's processors are those of its grammars", remedy="Leave logits_processors out.")
    listed = isinstance(grammars, Sequence) and not isinstance(grammars, str)
    given = list(grammars) if listed else [grammars] * len(prompts)
    budgets = [max_tokens] * len(prompts) if isinstance(max_tokens, int) else list(max_tokens)
    if not len(given) == len(budgets) == len(prompts):
        raise GuidedError(
            f"{len(given)} grammars and {len(budgets)} budgets for {len(prompts)} prompts",
            remedy="Pass one, or one for each prompt.",
        )
    vocabulary = vocabulary_of_mlx(tokenizer)
    # The same for several rows is one constraint, with one set of memos.
    goals = {id(grammar): Goal.of(grammar, vocabulary) for grammar in given}
    ids = [tokenizer.encode(prompt) if isinstance(prompt, str) else list(prompt) for prompt in prompts]
    processors = [
        [MlxProcessor(goals[id(grammar)].constraint, most, prompt_length=len(prompt))]
        for grammar, most, prompt in zip(given, budgets, ids, strict=True)
    ]
    batch = BatchGenerator(model, stop_tokens=[[token] for token in vocabulary.eos_ids], **options)
    try:
        names = batch.insert(ids, budgets, logits_processors=processors)
        tokens: dict[int, list[int]] = {name: [] for name in names}
        while responses := batch.next_generated():
            for response in responses:
                tokens[response.uid].append(response.token)
    finally:
        batch.close()
    return [goals[id(grammar)].text(tokens[name]) for grammar, name in zip(given, names, strict=True)]


def _tokens(stream: Any) -> list[int]:
    """The tokens of a stream, whose last response repeats its last token where a text was cut between two."""
    numbered = {response.generation_tokens: response.token for response in stream}
    return [numbered[number] for number in sorted(numbered)]
