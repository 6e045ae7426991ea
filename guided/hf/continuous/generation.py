"""`generate_batch`: many prompts, each with its own grammar, by transformers' continuous batching."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any

from guided.errors import GuidedError, UnsupportedError
from guided.hf.front.generation import Generation, generation_of
from guided.hf.front.request import Prompt, read_model, read_prompts
from guided.vocab import Vocabulary, vocabulary_of

if TYPE_CHECKING:
    from transformers import ContinuousBatchingConfig, GenerationConfig

    from guided.hf.front.encoding import Conversation

__all__ = ["generate_batch"]

OPTIONS = ("do_sample", "temperature", "top_k", "top_p")
"""Options that continuous batching keeps; it drops others with a warning, or keeps them without looking."""

WAIT_SECONDS = 1.0
"""How long to wait for a result before looking whether the batch still runs."""


def generate_batch(
    model: Any,
    prompts: Sequence[str] | Sequence[Conversation],
    grammars: Any = None,
    *,
    tokenizer: Any = None,
    max_new_tokens: int | Sequence[int] = 256,
    chat: bool = False,
    seed: int | None = None,
    config: ContinuousBatchingConfig | None = None,
    **options: Any,
) -> list[Generation]:
    """Generate a text for each prompt, each in its grammar's language, whole, by continuous batching.

    ``model`` and ``tokenizer`` are those of `guided.generate`, and so are ``prompts``, ``chat`` and what may stand for
    a grammar; ``grammars`` is one for all prompts or a list of one for each, where None leaves a text free.
    ``max_new_tokens`` may also be a list.  ``options`` are ``do_sample``, ``temperature``, ``top_k`` and ``top_p``.
    ``config`` is a `ContinuousBatchingConfig`; asynchronous batching is off, since a mask needs the last token.

    Prompts come and go as there is room, so that none waits for the longest, and greedily each text is that of
    `guided.generate`.  Raises `LimitError` before the model runs when a text does not fit its budget, and
    `UnsupportedError` for a model or a release of transformers without continuous batching.
    """
    from transformers.generation.continuous_batching.utils import WorkloadHints

    network, tokenizer, ends = read_model(model, tokenizer, whole=False)
    given = list(prompts)
    if isinstance(prompts, str) or not given:
        raise GuidedError("generate_batch takes a list of prompts, at least one", remedy="Pass [prompt].")
    if network.config.is_encoder_decoder or not hasattr(network, "init_continuous_batching"):
        raise UnsupportedError(f"{type(network).__name__} has no continuous batching", remedy="Use guided.generate.")
    budgets = [max_new_tokens] * len(given) if isinstance(max_new_tokens, int) else list(max_new_tokens)
    if len(budgets) != len(given):
        raise GuidedError(f"{len(budgets)} budgets for {len(given)} prompts", remedy="Pass one, or one for each.")
    read = _read(given, grammars, network, tokenizer, ends, budgets, chat)
    vocabulary = next((each.constraint.vocabulary for each in read if each.constraint), None)
    vocabulary = vocabulary or vocabulary_of(tokenizer, ends)
    hints = WorkloadHints(max(len(each.ids) for each in read), max(budgets), len(read))
    with _running(network, vocabulary, config, hints, seed, options) as (manager, processor):
        arguments = [
            {"grammar": processor.grammar(each.constraint, most)} if each.constraint else {}
            for each, most in zip(read, budgets, strict=True)
        ]
        manager.start()
        asked = [
            manager.add_request(
                list(each.ids), max_new_tokens=most, eos_token_id=list(vocabulary.eos_ids), **arguments[number]
            )
            for number, (each, most) in enumerate(zip(read, budgets, strict=True))
        ]
        results = _results(manager, asked)
    return [generation_of(each, results[name], vocabulary) for each, name in zip(read, asked, strict=True)]


def _read(
    given: Sequence[Any], grammars: Any, model: Any, tokenizer: Any, ends: Any, budgets: Sequence[int], chat: bool
) -> list[Prompt]:
    """Each prompt as ids, with its compiled grammar; prompts of no grammar are read apart."""
    listed = isinstance(grammars, Sequence) and not isinstance(grammars, str)
    goals = list(grammars) if listed else [grammars] * len(given)
    if len(goals) != len(given):
        raise GuidedError(f"{len(goals)} grammars for {len(given)} prompts", remedy="Pass one, or one for each prompt.")
    found: list[Prompt | None] = [None] * len(given)
    for free in (True, False):
        places = [place for place, goal in enumerate(goals) if (goal is None) == free]
        if places:
            read = read_prompts(
                [given[place] for place in places], None if free else [goals[place] for place in places], model,
                tokenizer, ends, max_new_tokens=max(budgets[place] for place in places), chat=chat, heal=False,
                canonical=False, potentials=False,
            )  # fmt: skip
            for place, one in zip(places, read, strict=True):
                found[place] = one
    return [one for one in found if one is not None]


@contextmanager
def _running(
    model: Any,
    vocabulary: Vocabulary,
    config: ContinuousBatchingConfig | None,
    hints: Any,
    seed: int | None,
    options: Mapping[str, Any],
) -> Iterator[tuple[Any, Any]]:
    """A manager that has not started, with the processor of its grammars; stopped at the end."""
    from transformers import ContinuousBatchingConfig

    from guided.hf.continuous.processor import ContinuousProcessor

    if hasattr(model, "_cached_continuous_batching_manager"):
        raise GuidedError(
            "the model keeps a manager of continuous batching for its next session",
            remedy="Call model.destroy_cached_continuous_batching_manager() first.",
        )
    config = ContinuousBatchingConfig() if config is None else copy(config)
    if config.use_async_batching is None:
        config.use_async_batching = False
    if seed is not None:
        config.seed = seed
    attention = model.config._attn_implementation
    manager = model.init_continuous_batching(_generation_config(model, options), config, workload_hints=hints)
    try:
        processor = ContinuousProcessor(vocabulary, model.get_output_embeddings().weight.shape[0])
        processor.attach(manager)
        manager.warmup()
        yield manager, processor
    finally:
        if manager.is_running():
            manager.stop(block=True)
        manager.destroy()
        if model.config._attn_implementation != attention:
            # A manager that never ran, or whose loop has died, leaves the model with the attention of its passes.
            model.set_attn_implementation(attention)


def _generation_config(model: Any, options: Mapping[str, Any]) -> GenerationConfig:
    """The model's own configuration with the options; greedy where they do not say."""
    unknown = [name for name in options if name not in OPTIONS]
    if unknown:
        raise UnsupportedError(
            f"continuous batching has no option {unknown[0]}",
            remedy=f"It has {', '.join(OPTIONS)}; guided.generate has the others.",
        )
    found: GenerationConfig = copy(model.generation_config)
    found.do_sample = bool(options.get("do_sample", False))
    found.num_return_sequences = 1
    for name, neutral in (("temperature", 1.0), ("top_k", None), ("top_p", 1.0)):
        # A configuration's own values are those of drawing.
        setattr(found, name, options.get(name, getattr(found, name) if found.do_sample else neutral))
    return found


def _results(manager: Any, asked: Sequence[str]) -> dict[str, list[int]]:
    """The tokens of each request.  Raises `GuidedError` for one that failed, and when the batch has died."""
    left = set(asked)
    tokens: dict[str, list[int]] = {}
    while left:
        result = manager.get_result(timeout=WAIT_SECONDS)
        if result is None:
            if not manager.is_running():
                raise GuidedError(
                    f"continuous batching has stopped: {manager.background_thread_status.fatal_error}",
                    remedy="See the log of transformers.",
                )
            continue
        if result.error is not None:
            raise GuidedError(f"request {asked.index(result.request_id)} failed: {result.error}")
        if result.is_finished():
            left.discard(result.request_id)
            tokens[result.request_id] = result.generated_tokens
    return tokens
