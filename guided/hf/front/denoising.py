"""The runner of denoisers: what is behind `guided.generate` where the model is one.

The grammar is solved along the whole canvas in each step (`guided.diffusion.Constrained`), so every text is whole and
fits, in however few steps.  Nothing here computes a score.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from guided.constraint.protocol import Constrains
from guided.diffusion import Constrained, Denoised, Denoiser, Denoising, Free, Job, LatticeLimits, Law, denoise
from guided.errors import GuidedError, UnsupportedError
from guided.hf.front.generation import Generation, generation_of
from guided.hf.front.request import Request

__all__ = ["DENOISING_OPTIONS", "run_denoising"]

DENOISING_OPTIONS = ("denoising", "lattice", "law", "do_sample", "temperature", "num_return_sequences")

NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "num_beams": (1,),
    "logits_processor": (None,),
    "top_k": (0, None),
    "top_p": (1.0, None),
    "min_p": (None,),
    "typical_p": (1.0, None),
    "epsilon_cutoff": (0.0, None),
    "eta_cutoff": (0.0, None),
}
"""Options of transformers' `generate` with the values that change nothing."""


def run_denoising(request: Request, denoiser: Denoiser) -> list[Generation]:
    """The texts of each prompt, in order, all written together."""
    _check(request)
    options = request.options
    how = options.get("denoising") or Denoising()
    if not isinstance(how, Denoising):
        raise GuidedError(f"denoising is {how!r}", remedy="Pass a guided.diffusion.Denoising.")
    temperature = float(options.get("temperature", 1.0)) if options.get("do_sample") else 0.0
    n_texts = int(options.get("num_return_sequences", 1))
    if n_texts < 1:
        raise GuidedError(f"num_return_sequences is {n_texts}", remedy="Ask for at least one.")
    jobs: list[Job] = []
    for prompt in request.prompts:
        constraint = prompt.constraint
        law = _law(constraint, denoiser, temperature, options)
        jobs += [Job(prompt.ids, request.max_new_tokens, law)] * n_texts
    made = denoise(denoiser, jobs, how, request.seed)
    each = len(made) // len(request.prompts)
    vocabulary = request.vocabulary
    return [
        generation_of(request.prompts[row // each], _whole(text), vocabulary, denoised=text)
        for row, text in enumerate(made)
    ]


def _whole(text: Denoised) -> tuple[int, ...]:
    """The tokens with the end, by which a text without a grammar is known to be whole."""
    return text.tokens[: text.n_text + 1]


def _law(constraint: Constrains | None, denoiser: Denoiser, temperature: float, options: Mapping[str, Any]) -> Law:
    made = options.get("law")
    if constraint is None:
        if made is not None:
            raise GuidedError("law is made of a grammar, and there is none", remedy="Pass a grammar, or leave out law.")
        return Free(temperature)
    if made is not None:
        return _given(made, constraint, denoiser, temperature, options)
    limits = options.get("lattice") or LatticeLimits()
    if not isinstance(limits, LatticeLimits):
        raise GuidedError(f"lattice is {limits!r}", remedy="Pass a guided.diffusion.LatticeLimits.")
    return Constrained(constraint, temperature, denoiser.pad_id, limits)


def _given(
    made: Any, constraint: Constrains, denoiser: Denoiser, temperature: float, options: Mapping[str, Any]
) -> Law:
    """The law that the caller makes of a constraint, such as a published decoder to compare with."""
    if temperature > 0 or options.get("lattice") is not None:
        raise UnsupportedError(
            "law is given together with sampling or lattice", remedy="Say in the law itself how it decides."
        )
    law: Law = made(constraint, denoiser.pad_id)
    if not callable(getattr(law, "proposal", None)):
        raise GuidedError(
            f"law made {law!r}",
            remedy="Pass what makes a guided.diffusion.Law of a constraint and a padding id: baselines.Intersection.",
        )
    return law


def _check(request: Request) -> None:
    """Raise `UnsupportedError` for what is not known of canvases."""
    for name, value in request.options.items():
        if name not in DENOISING_OPTIONS and value not in NEUTRAL.get(name, ()):
            raise UnsupportedError(
                f"the option {name} is not one for denoisers",
                where="guided.generate",
                remedy=f"A denoiser has {', '.join(DENOISING_OPTIONS)}.",
            )
