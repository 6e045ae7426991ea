"""The runner by the loop of `guided.draft`: drafts are verified, steering runs the model once a step, rows are a batch.

Settings are those that transformers makes of the options, so what they say stays where it is in its own loops.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch

from guided.constraint.protocol import Constrains
from guided.draft.auto import Drafting
from guided.draft.loop.speculate import Speculated, Watch, speculate
from guided.draft.loop.statistics import Statistics
from guided.draft.masks import MaskedRows, RowMasks, fill_positions
from guided.errors import UnsupportedError
from guided.hf.constraints import too_few
from guided.hf.front.draft_argument import check_adaptive, check_loop_options
from guided.hf.front.generate_call import GenerateCall
from guided.hf.front.generation import Generation, generation_of
from guided.hf.front.request import Request
from guided.hf.front.reshaping import ProcessorReshaping
from guided.hf.front.streaming import watch_of_call
from guided.hf.front.transformers_loop import call_transformers, run_transformers
from guided.hf.language_model import TransformersModel, wrapped
from guided.lm import LanguageModel
from guided.steer import Stack, Steerer
from guided.vocab import Vocabulary

__all__ = ["ChainsOnly", "OwnLoop", "run_own_loop"]


class ChainsOnly(UserWarning):
    """Drafts are chains here: the model takes no draft trees."""


UNHEEDED = ("output_scores", "output_logits", "output_attentions", "output_hidden_states")
"""Settings that ask for what positions without a pass of their own do not have."""

OTHER_CACHES = ("quantized", "offloaded", "offloaded_static", "offloaded_hybrid", "offloaded_hybrid_chunked")
"""Kinds of caches that hold other numbers, or hold them elsewhere.  The cache here writes into buffers in place, as
static ones do, so that static and dynamic kinds have nothing to ask of it."""


@dataclass(frozen=True)
class OwnLoop:
    """A call that is ready to run: nothing of it is refused any more, and no pass was made."""

    model: LanguageModel
    """Steered."""
    prompts: Sequence[Sequence[int]]
    masks: Sequence[RowMasks]
    max_tokens: int
    greedy: bool
    drafting: Drafting | None
    reshaping: ProcessorReshaping
    watch: Watch | None
    rng: np.random.Generator = field(repr=False)

    @classmethod
    def of(
        cls,
        model: TransformersModel,
        prompts: Sequence[Sequence[int]],
        constraints: Sequence[Constrains | None],
        call: GenerateCall,
        rng: np.random.Generator,
        *,
        drafting: Drafting | None,
        stack: Stack,
        same_tokenizer: bool,
    ) -> OwnLoop:
        """The loop for the rows of a call, each with its prompt and its constraint.

        Raises `UnsupportedError` for beams, settings that ask for scores, processors that may keep a state of their
        own, and in batches for streamers and criteria of one's own; `LimitError` where no text fits.
        """
        if call.config.num_beams != 1:
            raise UnsupportedError(
                "drafts are not verified for beams, and two models in turn not run for them",
                remedy="Leave out num_beams, or pass search=guided.search.beam_search without draft=.",
            )
        for name in UNHEEDED:
            if getattr(call.config, name, None):
                raise UnsupportedError(
                    f"drafts leave out passes, and {name}=True asks for something of each", remedy="Leave it out."
                )
        check_cache_kind(getattr(call.config, "cache_implementation", None))
        if drafting is not None:
            check_cache(model)
        max_length = int(call.config.max_length)
        max_tokens = max_length - call.input_ids.shape[1]
        watch = watch_of_call(call.streamer, call.criteria, call.input_ids, max_length, model.eos_ids)
        reshaping = ProcessorReshaping(call.processors, call.input_ids)
        masks = [RowMasks(constraint, end_in_time=True) for constraint in constraints]
        target: LanguageModel = model
        if stack.steerers:
            # The processors that come first, what the grammar allows, and the steerers, in this order.
            pair = [] if stack.adaptive is None else [stack.adaptive]
            first: list[Steerer] = []
            if reshaping.changes_all:
                processors_first, reshaping = reshaping.as_steerer()
                first = [processors_first]
            masked = MaskedRows({row: (own, max_tokens) for row, own in enumerate(masks)})
            stack = Stack([*pair, *first, masked, *stack.steerers])
        if stack:
            target = stack.over(model, same_tokenizer=same_tokenizer)
        fill_positions((own, own.start, max_tokens) for own in masks)
        for row, own in enumerate(masks):
            if own.constraint is not None and not own.packed(own.start, max_tokens).any():
                raise too_few(constraints, row, max_tokens)
        return cls(
            target, prompts, masks, max_tokens, not call.config.do_sample, drafting, reshaping, watch, rng
        )  # fmt: skip

    def run(self) -> tuple[list[Speculated], Statistics]:
        """The text of each row, and what all of them cost."""
        with torch.no_grad():
            return speculate(
                self.rng,
                self.model,
                self.prompts,
                [own.constraint for own in self.masks],
                None if self.drafting is None else self.drafting.drafter,
                masks=self.masks,
                max_tokens=self.max_tokens,
                greedy=self.greedy,
                policy=None if self.drafting is None else self.drafting.policy,
                by_block=self.drafting is not None and self.drafting.by_block,
                reshaping=self.reshaping if self.reshaping else None,
                watch=self.watch,
            )


def run_own_loop(request: Request) -> list[Generation]:
    """The texts of each prompt, in order.

    What only transformers' own loops do goes to them where steering alone asked for this one; with a draft, or with
    two models in turn, it is refused.
    """
    check_adaptive(request.draft, request.stack)
    vocabulary = request.vocabulary
    seed = int(torch.randint(1 << 62, ())) if request.seed is None else request.seed
    try:
        pair = request.stack.adaptive
        check_loop_options(request.options, "drafts and steering" if pair is None else type(pair).__name__)
        # transformers would make such a cache before it asks us, and on a machine without its driver that fails.
        check_cache_kind(request.options.get("cache_implementation"))
        call = _prepared(request, vocabulary)
        repeats = len(call.input_ids) // len(request.prompts)
        prompts = [prompt for prompt in request.prompts for _ in range(repeats)]
        loop = OwnLoop.of(
            wrapped(request.model, eos_ids=vocabulary.eos_ids or call.eos_ids or None),
            [prompt.ids for prompt in prompts],
            [prompt.constraint for prompt in prompts],
            call,
            np.random.default_rng(seed),
            drafting=request.draft,
            stack=request.stack,
            same_tokenizer=request.same_tokenizer,
        )
    except UnsupportedError:
        if request.draft is not None or request.stack.adaptive is not None:
            raise
        return run_transformers(request)
    if call.streamer is not None:
        call.streamer.put(call.input_ids.cpu())
    texts, statistics = loop.run()
    drafts = None if request.draft is None else statistics
    return [generation_of(prompt, text.tokens, vocabulary, drafts) for prompt, text in zip(prompts, texts, strict=True)]


def _prepared(request: Request, vocabulary: Vocabulary) -> GenerateCall:
    """What transformers makes of the request: its `generate` with a decoding method that only looks."""
    found: list[GenerateCall] = []

    def look(model: Any, input_ids: torch.Tensor, **given: Any) -> torch.Tensor:
        found.append(GenerateCall.of(input_ids, **given))
        return input_ids

    options = {name: value for name, value in request.options.items() if name != "streamer"}
    call_transformers(replace(request, options=options), vocabulary, custom_generate=look)
    return replace(found[0], streamer=request.options.get("streamer"))


def check_cache_kind(kind: str | None) -> None:
    """Raises `UnsupportedError` for a cache that our loop has no use for, by transformers' name."""
    if kind in OTHER_CACHES:
        raise UnsupportedError(
            f"cache_implementation={kind!r} asks for a cache of transformers' own loop,"
            " and rows with drafts or steering have one that forks and rolls back",
            remedy='Leave it out; "static" and "dynamic" change nothing here.',
        )


def check_cache(model: TransformersModel) -> None:
    """Say so where drafts are chains."""
    if not model.can.tree:
        name = type(model.model).__name__
        warnings.warn(f"{name} takes no draft trees, so drafts are chains", ChainsOnly, stacklevel=2)
