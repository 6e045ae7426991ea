"""``--draft``: from a name to a draft of `guided.draft`, what it does not go with, and what it gave in words.

Nothing here imports torch before a model runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from guided.cli.methods.options import SamplerName, SamplingOptions, searches
from guided.errors import GuidedError

if TYPE_CHECKING:
    from guided.draft import Drafter, Drafting, Statistics
    from guided.hf import LoadedModel, TransformersModel
    from guided.infer import Cost
    from guided.lm import LanguageModel

__all__ = ["check_drafting", "drafting_of", "drafts_in_words", "sampled_record"]

MODEL = "model:"
"""What the name of a smaller model stands after."""

NAMES = ("auto", "lookup", "recycling", "ngrams", "trigrams", "suffixes", "copy")

PACKAGED = ("small", "hydra", "medusa", "eagle")
"""Drafts that were trained for the packaged model."""

DRAFTING_SAMPLERS = (SamplerName.SMC, SamplerName.IMPORTANCE)


def check_drafting(sampling: SamplingOptions, model: str) -> None:
    """Raise `GuidedError` for a draft that is misspelt or does not go with the sampler, before anything is loaded."""
    from difflib import get_close_matches

    from guided.eval.requests import PACKAGED as NANO

    name = sampling.draft
    if name is None:
        return
    if name in PACKAGED:
        if model != NANO:
            raise GuidedError(
                f"the draft {name!r} was trained for the packaged model alone",
                where="--draft",
                remedy=f"Use auto, which needs no training, {MODEL}NAME_OR_PATH, or --model {NANO}.",
            )
        if sampling.sampler is not None and name != "small":
            raise GuidedError(
                f"the heads of {name!r} draft for single texts, not for particles",
                where="--draft",
                remedy="Use auto or small with a sampler.",
            )
    elif name not in NAMES and (not name.startswith(MODEL) or name == MODEL):
        known = (*NAMES, *PACKAGED)
        close = get_close_matches(name, known, 1)
        meant = f"Did you mean {close[0]!r}? " if close else ""
        raise GuidedError(
            f"there is no draft {name!r}",
            where="--draft",
            remedy=f"{meant}Known: {', '.join(known)}, {MODEL}NAME_OR_PATH.",
        )
    if searches(sampling):
        raise GuidedError(
            "a search compares whole texts, and drafts are verified for one text a row",
            where="--draft",
            remedy="Leave out --draft, or --search, --must-include and --must-exclude.",
        )
    if sampling.sampler is not None and sampling.sampler not in DRAFTING_SAMPLERS:
        raise GuidedError(
            f"--sampler {sampling.sampler.value} has no speculative form",
            where="--draft",
            remedy="Draft with --sampler smc or importance, or without a sampler.",
        )


def drafting_of(name: str, target: LanguageModel, load: Callable[[str], LoadedModel], *, greedy: bool) -> Drafting:
    """The draft of a name; ``load`` loads a smaller model, whose tokens are the likeliest where decoding is greedy."""
    from guided.draft import (
        Aggressive,
        BestFirst,
        Drafting,
        Fixed,
        NGrams,
        PromptLookup,
        Recycling,
        Suffixes,
        TriGrams,
        auto,
    )

    if name == "auto":
        return auto()
    if name in PACKAGED:
        return _packaged(name, target, greedy)
    if name.startswith(MODEL):
        from guided.hf import TransformersModel

        return _by_model(TransformersModel(load(name.removeprefix(MODEL))), target, greedy)
    found: dict[str, Drafter] = {
        "lookup": PromptLookup(),
        "recycling": Recycling(),
        "ngrams": BestFirst(NGrams()),
        "trigrams": TriGrams(),
        "suffixes": Suffixes(),
        "copy": Aggressive(),
    }
    return Drafting(found[name], Fixed(10 if name in ("lookup", "copy") else 16))


def _packaged(name: str, target: LanguageModel, greedy: bool) -> Drafting:
    from guided.draft import Drafting, Fixed
    from guided.hf import TransformersModel
    from guided.hf.draft_heads import nano_eagle, nano_heads, nano_small

    assert isinstance(target, TransformersModel)
    if name == "small":
        return _by_model(nano_small(target), target, greedy)
    return Drafting(nano_eagle(target) if name == "eagle" else nano_heads(target, name), Fixed(24))


def _by_model(small: TransformersModel, target: LanguageModel, greedy: bool) -> Drafting:
    from guided.draft import Chain, Confidence, Drafting, Fixed, Model

    return Drafting(Model(small, Chain(8, Confidence()), by_rule=greedy, target=target), Fixed(8))


def drafts_in_words(counts: Statistics) -> str:
    """One line about a run.

    >>> from guided.draft import Statistics
    >>> drafts_in_words(Statistics(passes=9, row_passes=9, tokens=27, drafted=40, accepted=16))
    '27 tokens in 9 passes of the model (3.0 a pass), 16 of 40 drafted tokens accepted'
    """
    line = (
        f"{counts.tokens} tokens in {counts.passes} passes of the model ({counts.tokens_per_pass:.1f} a pass), "
        f"{counts.accepted} of {counts.drafted} drafted tokens accepted"
    )
    return line if counts.trees else f"{line}; the model takes no draft trees, so these were chains"


def sampled_record(cost: Cost) -> dict[str, Any]:
    """What a sampler's drafts gave, as JSON data."""
    return {"passes": cost.model_calls, "tokens": cost.tokens, "drafted": cost.drafted, "accepted": cost.met}
