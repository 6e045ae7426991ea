"""What ``draft=`` of `guided.generate` may be, and what it does not go with."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from transformers import PreTrainedModel

from guided.draft.auto import Drafting, auto
from guided.draft.guessers.lookup import PromptLookup
from guided.draft.models.confidence import Confidence
from guided.draft.models.model import Model
from guided.draft.models.shapes import Chain
from guided.draft.policies.policy import Fixed
from guided.errors import GuidedError, UnsupportedError
from guided.hf.front.request import name_of
from guided.hf.loading import LoadedModel
from guided.lm import LanguageModel, language_model
from guided.steer import Stack
from guided.steer.layout import check_vocabulary

__all__ = ["Draft", "check_adaptive", "check_combination", "check_loop_options", "drafting_for"]

INSTEAD = {
    "assistant_model": "draft=guided.draft.Drafting(guided.draft.Model(TransformersModel(assistant)), Fixed(8))",
    "prompt_lookup_num_tokens": "draft=guided.draft.Drafting(guided.draft.PromptLookup(), Fixed(10))",
    "assistant_early_exit": "draft=guided.draft.Drafting(guided.draft.EarlyExit(...), Fixed(8))",
    "custom_generate": "draft=, which is itself a custom_generate: guided.hf.speculation.draft_generate",
    "constraints": "search=guided.search.dynamic_beam_search, without draft=",
    "force_words_ids": "search=guided.search.dynamic_beam_search, without draft=",
}
"""Options of transformers' `generate` that drafts do not go with, and what to use in their place."""

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


def check_adaptive(draft: Drafting | None, stack: Stack) -> None:
    """Raise `UnsupportedError` for a draft under a pair of models that take turns."""
    if draft is not None and stack.adaptive is not None:
        raise UnsupportedError(
            f"{type(stack.adaptive).__name__} asks after each token which model is next, so drafts would save nothing",
            where="drafts",
            remedy=f"Leave out draft=, or {type(stack.adaptive).__name__}: speculative decoding with the small model is"
            " lossless.",
        )
