"""The runner by a sampler of `guided.infer`: what is behind ``guided.generate(..., sampler=)``.

A sampler is a function of `guided.infer` (`smc`, `importance`, `local`, `smc_steer`, `asap`, `cars`, `mcmc`,
`rejection`, `best_of_n`, `exact`), or a partial of one that fixes its options.  Nothing here draws anything.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, TypeAlias

from guided.constraint.protocol import Constrains
from guided.hf.front.request import Request, checked_options, name_of, truncated
from guided.hf.front.sampling_bar import sampling_bar
from guided.infer.analysis.enumeration import Enumeration
from guided.infer.potentials.potential import Potential
from guided.infer.result import Population, Samples
from guided.infer.sequences.best_of_n import Ranked
from guided.lm import LanguageModel

__all__ = ["Sampled", "Sampler", "run_sampler", "run_samplers"]

Sampled: TypeAlias = "Population | Samples | Enumeration | Ranked"
"""What samplers return."""

Sampler: TypeAlias = "Callable[..., Sampled]"
"""``sampler(rng, model, prompt, potential, *, n, max_tokens, ...)``; `exact` has no ``rng`` and no ``n``."""


def run_samplers(request: Request, sampler: Sampler, *, show_progress: bool = False) -> list[Sampled]:
    """What the sampler returns for each prompt, in order; ``show_progress`` shows a bar on a terminal."""
    model, options = truncated(request)
    if request.draft is not None:
        options["draft"] = request.draft
    results: list[Sampled] = []
    for prompt in request.prompts:
        assert prompt.goal is not None
        known = dict(options)
        with sampling_bar(name_of(sampler)) if show_progress and "progress" not in known else nullcontext(None) as bar:
            if bar is not None:
                known["progress"] = bar
            results.append(
                run_sampler(
                    sampler, request.seed, model, prompt.ids, prompt.goal, n=request.n,
                    max_tokens=request.max_new_tokens, options=known,
                )
            )  # fmt: skip
    return results


def run_sampler(
    sampler: Sampler,
    seed: Any,
    model: LanguageModel,
    prompt: Sequence[int],
    potential: Constrains | Potential[Any],
    *,
    n: int | None,
    max_tokens: int,
    options: Mapping[str, Any] | None = None,
) -> Sampled:
    """Call a sampler with those arguments that it has; raises `GuidedError` for an option that it has not.

    A sampler without randomness gets no seed, one without a number of samples no ``n``; None leaves its own default.
    """
    if not callable(sampler):
        raise TypeError(f"sampler is {sampler!r}: pass a function of guided.infer, such as guided.infer.smc")
    parameters = inspect.signature(sampler).parameters
    takes_all = any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    wanted = checked_options(sampler, {**(options or {}), "max_tokens": max_tokens})
    if n is not None and ("n" in parameters or takes_all):
        wanted["n"] = n
    leading: tuple[Any, ...] = (seed,) if "rng" in parameters or takes_all else ()
    return sampler(*leading, model, prompt, potential, **wanted)
