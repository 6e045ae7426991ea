"""What is behind ``guided.generate(..., sampler=)``: prompts in words, a grammar, and a sampler of `guided.infer`.

A sampler is a function of `guided.infer` (`smc`, `importance`, `local`, `smc_steer`, `asap`, `cars`, `mcmc`,
`rejection`, `best_of_n`, `exact`), or a partial of one that fixes its options.  Nothing here draws anything.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, TypeAlias

from guided.constraint.protocol import Constrains
from guided.hf.encoding import Conversation
from guided.hf.questions import checked_options, name_of, read_questions
from guided.hf.sampling_bar import sampling_bar
from guided.infer.best_of_n import Ranked
from guided.infer.enumeration import Enumeration
from guided.infer.potential import Potential
from guided.infer.result import Population, Samples
from guided.lm import LanguageModel
from guided.steer import Steering

__all__ = ["Sampled", "Sampler", "run_sampler", "sample"]

Sampled: TypeAlias = "Population | Samples | Enumeration | Ranked"
"""What samplers return."""

Sampler: TypeAlias = "Callable[..., Sampled]"
"""``sampler(rng, model, prompt, potential, *, n, max_tokens, ...)``; `exact` has no ``rng`` and no ``n``."""


def sample(
    model: Any,
    prompt: str | Conversation | Sequence[int] | Sequence[str] | Sequence[Conversation] | Sequence[Sequence[int]],
    grammar: Any,
    sampler: Sampler,
    *,
    tokenizer: Any = None,
    n: int | None = None,
    seed: Any = 0,
    steer: Steering | None = None,
    max_new_tokens: int = 256,
    chat: bool = False,
    canonical: bool = False,
    show_progress: bool = False,
    **options: Any,
) -> Sampled | list[Sampled]:
    """As `guided.hf.generate.generate` with a sampler, which documents the arguments; a list for a list of prompts.

    ``model`` may also be any `LanguageModel`, prompts token ids, and a grammar any `Potential`.
    """
    asked = read_questions(
        model,
        prompt,
        grammar,
        tokenizer=tokenizer,
        steer=steer,
        max_new_tokens=max_new_tokens,
        chat=chat,
        canonical=canonical,
        options=options,
    )
    results: list[Sampled] = []
    for question in asked.each:
        known = dict(asked.options)
        with sampling_bar(name_of(sampler)) if show_progress and "progress" not in known else nullcontext(None) as bar:
            if bar is not None:
                known["progress"] = bar
            ids, goal = question.ids, question.goal
            results.append(
                run_sampler(sampler, seed, asked.model, ids, goal, n=n, max_tokens=max_new_tokens, options=known)
            )
    return results[0] if asked.single else results


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
