"""Steering by transformers' own names: ``penalty_alpha`` with ``top_k``, ``dola_layers``, ``guidance_scale``.

They are read where transformers reads them: from the options of a call, its ``generation_config``, or the model's.  The
steerers are those of `guided.steer`; nothing here computes a score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from guided.errors import GuidedError, UnsupportedError
from guided.steer import Bucket, ClassifierFree, ContrastiveSearch, DoLa, LastToken, Replaced, Stack, Steerer
from guided.steer.declaration import Prompt

__all__ = ["CONFIGURED", "Configured", "NegativePrompts", "refuse_configured"]

CONFIGURED = ("dola_layers", "guidance_scale", "penalty_alpha")
"""The fields of a `GenerationConfig` that are steering."""

NEGATIVE = ("negative_prompt_ids", "negative_prompt_attention_mask")
"""Options of a call that go with ``guidance_scale``."""

TOP_K = 50
"""Candidates of contrastive search where nobody says, as in transformers."""


@dataclass(frozen=True)
class NegativePrompts:
    """For each of several prompts the negative one that its row of ``negative_prompt_ids`` says."""

    pairs: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]

    def __call__(self, prompt: tuple[int, ...]) -> Sequence[int]:
        """The negative prompt; raises `GuidedError` for a prompt that is none of them."""
        for given, negative in self.pairs:
            if given == prompt:
                return negative
        raise GuidedError(
            "a prompt has no row of negative_prompt_ids",
            where="guidance_scale",
            remedy="Pass steer=[guided.steer.ClassifierFree(scale, function of the prompt's ids)].",
        )


@dataclass(frozen=True)
class Configured:
    """What a call says by transformers' names."""

    penalty_alpha: float | None = None
    """Above 0: contrastive search."""
    top_k: int = TOP_K
    dola_layers: str | Sequence[int] | None = None
    guidance_scale: float | None = None
    """Other than 1: classifier-free guidance."""
    negative_prompt_ids: torch.Tensor | None = None
    negative_prompt_attention_mask: torch.Tensor | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any], model: Any = None) -> Configured:
        """From the options of a call, its configuration, and that of the model, the first that says something.

        Raises `UnsupportedError` for contrastive search that draws or has beams, which transformers passes over.
        """
        sources = [vars(options["generation_config"])] if options.get("generation_config") is not None else []
        own = getattr(model, "generation_config", None)
        sources += [vars(own)] if own is not None else []

        def value(name: str) -> Any:
            if name in options:
                return options[name]
            return next((found[name] for found in sources if found.get(name) is not None), None)

        penalty, scale, top_k = value("penalty_alpha"), value("guidance_scale"), value("top_k")
        found = cls(
            penalty if penalty else None,
            TOP_K if top_k is None else top_k,
            value("dola_layers"),
            None if scale == 1 else scale,
            options.get(NEGATIVE[0]),
            options.get(NEGATIVE[1]),
        )
        if found.penalty_alpha is not None:
            for name, wanted in (("do_sample", value("do_sample")), ("num_beams", (value("num_beams") or 1) > 1)):
                if wanted:
                    raise UnsupportedError(
                        f"penalty_alpha is contrastive search, which takes the best token, and {name} asks for more",
                        where="guided.generate",
                        remedy=f"Leave out {name}, or penalty_alpha.",
                    )
        return found

    @property
    def only_guidance(self) -> bool:
        """Whether it says nothing that transformers' own loop does not do."""
        return self.penalty_alpha is None and self.dola_layers is None

    def stack(self, prompts: Sequence[tuple[int, ...]]) -> Stack:
        """The steerers, in the order of transformers: the contrast of layers, then guidance, then contrastive search.

        Raises `GuidedError` for layers that are neither a bucket nor numbers, for settings that a steerer refuses, and
        for another number of negative prompts than one or that of the prompts.
        """
        steerers: list[Steerer] = []
        if self.dola_layers is not None:
            steerers.append(DoLa(self._layers()))
        if self.guidance_scale is not None:
            steerers.append(ClassifierFree(self.guidance_scale, self._negative(prompts)))
        if self.penalty_alpha is not None and self.top_k > 1:
            steerers.append(ContrastiveSearch(self.penalty_alpha, self.top_k))
        return Stack(steerers)

    def without(self, options: Mapping[str, Any], *, transformers: bool) -> dict[str, Any]:
        """The options without these, and for ``transformers`` with these switched off wherever they were said."""
        rest = {name: value for name, value in options.items() if name not in (*CONFIGURED, *NEGATIVE)}
        if not transformers:
            return rest
        # Options have the last word over both configurations, and None is "off" there.
        rest |= {name: None for name in CONFIGURED if getattr(self, name) is not None}
        if self.penalty_alpha is not None:
            rest["top_k"] = None
        return rest

    def _layers(self) -> Bucket | tuple[int, ...]:
        if isinstance(self.dola_layers, str):
            names = [bucket.value for bucket in Bucket]
            if self.dola_layers not in names:
                raise GuidedError(
                    f"dola_layers={self.dola_layers!r} is no bucket of layers",
                    where="guided.generate",
                    remedy=f"Pass {' or '.join(map(repr, names))}, or numbers of layers.",
                )
            return Bucket(self.dola_layers)
        return tuple(self.dola_layers or ())

    def _negative(self, prompts: Sequence[tuple[int, ...]]) -> Prompt:
        if self.negative_prompt_ids is None:
            return LastToken()
        mask = self.negative_prompt_attention_mask
        shown = torch.ones_like(self.negative_prompt_ids) if mask is None else mask
        rows = [tuple(row[kept.bool()].tolist()) for row, kept in zip(self.negative_prompt_ids, shown, strict=True)]
        if len(set(rows)) == 1:
            return Replaced(rows[0])
        if len(rows) != len(prompts):
            raise GuidedError(
                f"{len(rows)} negative prompts for {len(prompts)} prompts",
                where="negative_prompt_ids",
                remedy="Pass one row, or one for each prompt.",
            )
        pairs = dict(zip(prompts, rows, strict=True))
        if any(pairs[prompt] != row for prompt, row in zip(prompts, rows, strict=True)):
            raise GuidedError(
                "one prompt has two negative prompts",
                where="negative_prompt_ids",
                remedy="Ask for them in calls of their own.",
            )
        return NegativePrompts(tuple(pairs.items()))


def refuse_configured(config: Any, where: str) -> None:
    """Raise `UnsupportedError` for steering named in a configuration where it would not be heeded.

    Guidance is a processor there, which is refused as such.
    """
    found = Configured.of(vars(config))
    for name in ("penalty_alpha", "dola_layers"):
        if getattr(found, name) is not None:
            raise UnsupportedError(
                f"{name} of the generation configuration is not read here",
                where=where,
                remedy="Pass steer=[...] to what makes custom_generate, or use guided.generate.",
            )
