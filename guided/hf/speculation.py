"""`draft_generate`: speculative decoding under grammars for ``model.generate(..., custom_generate=...)``.

Unlike transformers' own assisted generation it takes batches, a grammar for each row, and any draft of `guided.draft`.
`guided.generate(..., draft=)` goes through it.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import torch
from transformers import PreTrainedModel
from transformers.generation.utils import GenerateDecoderOnlyOutput, GenerateEncoderDecoderOutput

from guided.constraint.protocol import Constrains
from guided.draft.auto import Drafting, auto
from guided.draft.guessers.lookup import PromptLookup
from guided.draft.loop.speculate import Speculated, Watch, speculate
from guided.draft.loop.statistics import Statistics
from guided.draft.masks import MaskedRows, RowMasks, fill_positions
from guided.draft.models.confidence import Confidence
from guided.draft.models.model import Model
from guided.draft.models.shapes import Chain
from guided.draft.policies.policy import Fixed
from guided.errors import GuidedError, UnsupportedError
from guided.hf.constraints import too_few
from guided.hf.generate_call import prompts_of_call, sequences_of_call
from guided.hf.language_model import TransformersModel, wrapped
from guided.hf.loading import LoadedModel
from guided.hf.questions import name_of, stack_of
from guided.hf.reshaping import ProcessorReshaping
from guided.hf.streaming import ends_streamer, watch_of_call
from guided.lm import LanguageModel, language_model
from guided.steer import Stack, Steerer, Steering
from guided.steer.layout import check_vocabulary

__all__ = [
    "ChainsOnly",
    "Draft",
    "DraftGenerate",
    "check_combination",
    "check_loop_options",
    "draft_generate",
    "drafting_for",
]

INSTEAD = {
    "assistant_model": "draft=guided.draft.Drafting(guided.draft.Model(TransformersModel(assistant)), Fixed(8))",
    "prompt_lookup_num_tokens": "draft=guided.draft.Drafting(guided.draft.PromptLookup(), Fixed(10))",
    "assistant_early_exit": "draft=guided.draft.Drafting(guided.draft.EarlyExit(...), Fixed(8))",
    "custom_generate": "draft=, which is itself a custom_generate: guided.hf.speculation.draft_generate",
    "guidance_scale": "steer=[guided.steer.ClassifierFree(...)]",
    "penalty_alpha": "steer=[guided.steer.ContrastiveSearch(...)]",
    "dola_layers": "steer=[guided.steer.DoLa(...)]",
    "constraints": "search=guided.search.dynamic_beam_search, without draft=",
    "force_words_ids": "search=guided.search.dynamic_beam_search, without draft=",
}
"""Options of transformers' `generate` that drafts do not go with, and what to use in their place."""


class ChainsOnly(UserWarning):
    """Drafts are chains here: the model takes no draft trees."""


UNHEEDED = ("output_scores", "output_logits", "output_attentions", "output_hidden_states")
"""Settings that ask for what positions without a pass of their own do not have."""


class DraftGenerate:
    """What ``custom_generate=`` takes; made by `draft_generate`.  `drafting` learns from call to call.

    Without one it decodes token by token, as `guided.generate` does for a stack that puts another model in place of the
    one that transformers' loop would run.
    """

    def __init__(
        self,
        constraint: Constrains | Sequence[Constrains | None] | None,
        drafting: Drafting | None,
        seed: np.random.Generator | int | None,
        stack: Stack,
        same_tokenizer: bool = False,
    ) -> None:
        self.constraint, self.drafting, self.stack = constraint, drafting, stack
        self.same_tokenizer = same_tokenizer
        self.rng = np.random.default_rng(seed)
        self.results: list[Speculated] = []
        """The texts of the last call."""
        self.statistics = Statistics()
        """What the last call cost."""
        self._model: tuple[Any, TransformersModel] | None = None

    @ends_streamer
    def __call__(
        self,
        model: Any,
        input_ids: torch.Tensor,
        logits_processor: Any = None,
        stopping_criteria: Any = None,
        generation_config: Any = None,
        synced_gpus: bool = False,
        streamer: Any = None,
        inputs_tensor: torch.Tensor | None = None,
        **model_kwargs: Any,
    ) -> Any:
        """Prompts and a text after each, padded on the right: ``int64[n, len]``.

        Greedy without ``do_sample``.  A streamer gets each token when it is certain, and the end in any case.  Raises
        `UnsupportedError` for beams, settings that ask for scores, processors that may keep a state of their own, and
        in batches for streamers and criteria of one's own.
        """
        if generation_config.num_beams != 1:
            raise UnsupportedError(
                "drafts are not verified for beams, and two models in turn not run for them",
                remedy="Leave out num_beams, or pass search=guided.search.beam_search without draft=.",
            )
        for name in UNHEEDED:
            if getattr(generation_config, name, None):
                raise UnsupportedError(
                    f"drafts leave out passes, and {name}=True asks for something of each", remedy="Leave it out."
                )
        repeats = max(generation_config.num_return_sequences or 1, 1)
        prompts = prompts_of_call(model, input_ids, inputs_tensor, model_kwargs, repeats)
        constraints = [each for each in self._constraints(len(prompts)) for _ in range(repeats)]
        ready = self._ready(model, generation_config)
        max_length = int(generation_config.max_length)
        watch = watch_of_call(streamer, stopping_criteria or (), input_ids, max_length, ready.eos_ids)
        self.results, self.statistics = self._decode(
            ready,
            [prompt for prompt in prompts for _ in range(repeats)],
            constraints,
            max_length - input_ids.shape[1],
            not generation_config.do_sample,
            logits_processor or (),
            input_ids,
            watch,
        )
        sequences = sequences_of_call(input_ids, [text.tokens for text in self.results], generation_config)
        if not generation_config.return_dict_in_generate:
            return sequences
        output: Any = GenerateEncoderDecoderOutput if model.config.is_encoder_decoder else GenerateDecoderOnlyOutput
        return output(sequences=sequences)

    def _decode(
        self,
        model: TransformersModel,
        prompts: Sequence[Sequence[int]],
        constraints: Sequence[Constrains | None],
        max_tokens: int,
        greedy: bool,
        processors: Sequence[Any],
        input_ids: torch.Tensor,
        watch: Watch | None,
    ) -> tuple[list[Speculated], Statistics]:
        """All rows at once; ``constraints`` and ``prompts`` are one for each row of ``input_ids``."""
        masks = [RowMasks(constraint, end_in_time=True) for constraint in constraints]
        fill_positions((own, own.start, max_tokens) for own in masks)
        for row, own in enumerate(masks):
            if own.constraint is not None and not own.packed(own.start, max_tokens).any():
                raise too_few(constraints, row, max_tokens)
        reshaping = ProcessorReshaping(processors, input_ids)
        target: LanguageModel = model
        if self.stack:
            stack = self.stack
            if stack.steerers:
                # The processors that come first, what the grammar allows, and the steerers, in this order.
                pair = [] if stack.adaptive is None else [stack.adaptive]
                first: list[Steerer] = []
                if reshaping.changes_all:
                    processors_first, reshaping = reshaping.as_steerer()
                    first = [processors_first]
                stack = Stack([*pair, *first, MaskedRows(masks, max_tokens), *stack.steerers])
            target = stack.over(model, same_tokenizer=self.same_tokenizer)
        return speculate(
            self.rng,
            target,
            prompts,
            constraints,
            None if self.drafting is None else self.drafting.drafter,
            masks=masks,
            max_tokens=max_tokens,
            greedy=greedy,
            policy=None if self.drafting is None else self.drafting.policy,
            reshaping=reshaping if reshaping else None,
            watch=watch,
        )

    def _constraints(self, n: int) -> list[Constrains | None]:
        if self.constraint is None or isinstance(self.constraint, Constrains):
            return [self.constraint] * n
        if len(self.constraint) != n:
            raise GuidedError(
                f"{n} prompts have {len(self.constraint)} constraints",
                where="draft_generate",
                remedy="Pass one for all, or one for each prompt.",
            )
        return list(self.constraint)

    def _ready(self, model: Any, config: Any) -> TransformersModel:
        if self._model is None or self._model[0] is not model:
            known = [self.constraint] if isinstance(self.constraint, Constrains) else self.constraint or ()
            ends = {end for constraint in known if constraint is not None for end in constraint.vocabulary.eos_ids}
            if not ends and config.eos_token_id is not None:
                declared = config.eos_token_id
                ends = {declared} if isinstance(declared, int) else set(declared)
            ready = wrapped(model, eos_ids=ends or None)
            if self.drafting is not None:
                _check_cache(ready)
            self._model = (model, ready)
        return self._model[1]


def draft_generate(
    constraint: Constrains | Sequence[Constrains | None] | None = None,
    draft: Drafting | None = None,
    *,
    seed: np.random.Generator | int | None = None,
    steer: Steering | None = None,
    same_tokenizer: bool = False,
) -> DraftGenerate:
    """Make what ``model.generate(..., custom_generate=draft_generate(constraint))`` decodes with.

    ``constraint`` is compiled: one for all prompts, or one (or None) for each.  ``draft`` is `guided.draft.auto` by
    default.  The output is that of transformers' own loop with a `GuidedLogitsProcessor`: greedily the same tokens, and
    with ``do_sample=True`` the same law, temperature and truncation of the generation configuration included.
    ``steer`` speaks before the grammar, and is told beforehand what the grammar allows, as in `guided.generate`;
    ``same_tokenizer`` is that of `Stack.over`.
    `statistics` of what is returned say what the last call cost.
    """
    stack = Stack() if steer is None else stack_of(steer)
    if stack.adaptive is not None:
        raise UnsupportedError(
            "entropy adaptive decoding asks after each token which model is next, so drafts would save nothing",
            where="drafts",
            remedy="Leave out draft=, or EntropyAdaptive: speculative decoding with the small model is lossless.",
        )
    drafting = auto() if draft is None else drafting_for(draft) or auto()
    return DraftGenerate(constraint, drafting, seed, stack, same_tokenizer)


def _check_cache(model: TransformersModel) -> None:
    """Refuse a model for which drafts save nothing, and say so where they are chains."""
    name = type(model.model).__name__
    if not model.can.crop:
        raise UnsupportedError(
            f"{name} remembers a text as a state, which cannot be rolled back: each drafted token would be a pass of"
            " its own, and each refused one a text that is read again",
            where="drafts",
            remedy="Leave out draft=; batches of texts and guided.infer share what there is to share.",
        )
    if not model.can.tree:
        warnings.warn(f"{name} takes no draft trees, so drafts are chains", ChainsOnly, stacklevel=2)


Draft: TypeAlias = "Drafting | bool | str | Any"
"""What ``draft=`` takes: a `Drafting`, True, ``"lookup"``, or a smaller model."""

LOOKED_UP = 10
"""Tokens that ``draft="lookup"`` copies at most, as the command line does."""

DRAWN = 8
"""Tokens that a smaller model drafts at most, ended before by its confidence."""


def drafting_for(draft: Draft, target: Any = None, tokenizer: Any = None, *, greedy: bool = False) -> Drafting | None:
    """What ``draft=`` says: True the draft for when nothing is known, False none, a model one that drafts its tokens.

    Raises `GuidedError` for what is no draft, and says how one is made; `VocabularyError` for a model of other ids.
    """
    if isinstance(draft, Drafting):
        return draft
    if draft is True:
        return auto()
    if draft is False:
        return None
    if draft == "lookup":
        return Drafting(PromptLookup(), Fixed(LOOKED_UP))
    if isinstance(draft, (LanguageModel, LoadedModel, PreTrainedModel)):
        large, small = language_model(target, tokenizer), language_model(draft)
        check_vocabulary(large, small, "draft=", same_tokenizer=True)
        return Drafting(Model(small, Chain(DRAWN, Confidence()), by_rule=greedy), Fixed(DRAWN))
    remedy = (
        'Pass True, "lookup", a smaller model, guided.draft.auto(), or guided.draft.Drafting(drafter, policy) and keep'
        " it."
    )
    if all(hasattr(draft, name) for name in ("draft", "learn", "leave")):
        remedy = f"Say how much to draft: guided.draft.Drafting({type(draft).__name__}(...), guided.draft.Fixed(8))."
    raise GuidedError(f"{type(draft).__name__} is no draft and policy", where="draft", remedy=remedy)


def check_combination(
    sampler: object, searches: bool, options: Mapping[str, Any], *, where: str = "guided.generate"
) -> None:
    """Raise `UnsupportedError` for what drafts cannot be combined with, and say what can be."""
    if searches:
        raise UnsupportedError(
            "a search compares whole texts, and drafts are verified for one text a row",
            where=where,
            remedy="Leave out search= (greedy decoding and drawing take drafts), or draft=.",
        )
    if sampler is not None and "draft" not in inspect.signature(cast(Any, sampler)).parameters:
        raise UnsupportedError(
            f"{name_of(sampler)} has no speculative form",
            where=where,
            remedy="Draft with sampler=guided.infer.smc or importance, or without a sampler, or leave out draft=.",
        )
    if sampler is None:
        check_loop_options(options, "draft=", where=where)


def check_loop_options(options: Mapping[str, Any], what: str, *, where: str = "guided.generate") -> None:
    """Raise `UnsupportedError` for options of transformers' own loop, which ``what`` does not go through."""
    for name, instead in INSTEAD.items():
        if options.get(name) is not None:
            raise UnsupportedError(f"{name} cannot be combined with {what}", where=where, remedy=f"Use {instead}.")
