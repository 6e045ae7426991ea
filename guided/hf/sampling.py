"""What is behind ``guided.generate(..., sampler=)``: prompts in words, a grammar, and a sampler of `guided.infer`.

A sampler is a function of `guided.infer` (`smc`, `importance`, `local`, `smc_steer`, `asap`, `cars`, `mcmc`,
`rejection`, `best_of_n`, `exact`), or a partial of one that fixes its options.  Nothing here draws anything.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, TypeAlias

from guided.constraint.canonical import canonical as make_canonical
from guided.constraint.protocol import Constrains
from guided.errors import GuidedError, UnsupportedError
from guided.grammar.ir import Grammar
from guided.hf.constraints import constraints_for
from guided.hf.encoding import Conversation, check_room, is_single, prompt_ids
from guided.hf.language_model import TransformersModel
from guided.hf.loading import LoadedModel, end_ids
from guided.hf.sampling_bar import sampling_bar
from guided.infer.best_of_n import Ranked
from guided.infer.enumeration import Enumeration
from guided.infer.potential import Potential
from guided.infer.result import Population, Samples
from guided.lm import LanguageModel, transformed
from guided.steer import Stack, Steerer
from guided.vocab import Vocabulary

__all__ = ["Sampled", "Sampler", "run_sampler", "sample", "stack_of"]

Sampled: TypeAlias = "Population | Samples | Enumeration | Ranked"
"""What samplers return."""

Sampler: TypeAlias = "Callable[..., Sampled]"
"""``sampler(rng, model, prompt, potential, *, n, max_tokens, ...)``; `exact` has no ``rng`` and no ``n``."""

_TRUNCATION = ("temperature", "top_k", "top_p", "min_p")
"""Options that change the model's distribution, which is what the sampler then takes for the model."""


def sample(
    model: Any,
    prompt: str | Conversation | Sequence[int] | Sequence[str] | Sequence[Conversation] | Sequence[Sequence[int]],
    grammar: Any,
    sampler: Sampler,
    *,
    tokenizer: Any = None,
    n: int | None = None,
    seed: Any = 0,
    steer: Stack | Iterable[Steerer | Stack] | None = None,
    max_new_tokens: int = 256,
    chat: bool = False,
    canonical: bool = False,
    show_progress: bool = False,
    **options: Any,
) -> Sampled | list[Sampled]:
    """As `guided.hf.generate.generate` with a sampler, which documents the arguments; a list for a list of prompts.

    ``model`` may also be any `LanguageModel`, prompts token ids, and a grammar any `Potential`.
    """
    ready, tokenizer, ends = _model_of(model, tokenizer)
    truncation = {name: options.pop(name) for name in _TRUNCATION if name in options}
    room = _room_of(ready)
    if steer is not None:
        ready = stack_of(steer).over(ready)
    if truncation:
        ready = transformed(ready, **truncation)
    single = is_single(prompt)
    prompts: Sequence[Any] = [prompt] if single else list(prompt)
    if not prompts:
        raise GuidedError("no prompt given", remedy="Pass a text, or a list of at least one.")
    encoded = [prompt_ids(item, tokenizer, chat) for item in prompts]
    given = list(grammar) if isinstance(grammar, Sequence) else [grammar]
    if len(given) not in (1, len(prompts)):
        raise GuidedError(
            f"{len(given)} grammars for {len(prompts)} prompts", remedy="Pass one grammar, or one for each prompt."
        )
    goals = _goals(given, tokenizer, ends)
    results: list[Sampled] = []
    for i, ids in enumerate(encoded):
        goal = goals[i % len(goals)]
        if canonical:
            if not isinstance(goal, Constrains):
                raise UnsupportedError("canonical=True needs a grammar", remedy="Leave it out with a potential.")
            goal = make_canonical(goal, tokenizer, before=() if ready.can.encoder else ids)
        if room is not None:
            check_room(room, len(ids), max_new_tokens)
        known = dict(options)
        with sampling_bar(_name(sampler)) if show_progress and "progress" not in known else nullcontext(None) as bar:
            if bar is not None:
                known["progress"] = bar
            results.append(run_sampler(sampler, seed, ready, ids, goal, n=n, max_tokens=max_new_tokens, options=known))
    return results[0] if single else results


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
    wanted = {**(options or {}), "max_tokens": max_tokens}
    for name in wanted:
        if name not in parameters and not takes_all:
            known = [each.name for each in parameters.values() if each.kind is inspect.Parameter.KEYWORD_ONLY]
            raise GuidedError(
                f"{_name(sampler)} has no option {name!r}",
                where="guided.generate",
                remedy=f"It has {', '.join(known)}; without sampler= the options are those of transformers.",
            )
    if n is not None and ("n" in parameters or takes_all):
        wanted["n"] = n
    leading: tuple[Any, ...] = (seed,) if "rng" in parameters or takes_all else ()
    return sampler(*leading, model, prompt, potential, **wanted)


def stack_of(steer: Stack | Steerer | Iterable[Steerer | Stack]) -> Stack:
    """Steerers as one stack."""
    if isinstance(steer, Stack):
        return steer
    return Stack([steer] if isinstance(steer, Steerer) else steer)


def _model_of(model: Any, tokenizer: Any) -> tuple[LanguageModel, Any, list[int] | None]:
    """The model behind the interface, its tokenizer if there is any, and the ids that end a text."""
    if isinstance(model, str):
        raise TypeError("model is a name: load it once with guided.hf.load(name) and pass the result")
    if isinstance(model, LoadedModel):
        tokenizer = model.tokenizer if tokenizer is None else tokenizer
        model = model.model
    if isinstance(model, LanguageModel):
        tokenizer = getattr(model, "tokenizer", None) if tokenizer is None else tokenizer
        return model, tokenizer, sorted(model.eos_ids) or None
    if tokenizer is None:
        raise GuidedError(
            "a model of transformers comes without its tokenizer",
            remedy="Pass tokenizer=, or load both with guided.hf.load(name).",
        )
    return TransformersModel(model, tokenizer), tokenizer, end_ids(model, tokenizer)


def _goals(given: Sequence[Any], tokenizer: Any, ends: list[int] | None) -> list[Constrains | Potential[Any]]:
    grammars: list[Grammar | Constrains] = [item for item in given if not isinstance(item, Potential)]
    ends = None if isinstance(tokenizer, Vocabulary) else ends
    compiled = iter(constraints_for(grammars, tokenizer, ends) if grammars else ())
    return [item if isinstance(item, Potential) else next(compiled) for item in given]


def _room_of(model: LanguageModel) -> Any:
    """A decoder-only model of transformers, whose context is bounded; else None."""
    return model.model if isinstance(model, TransformersModel) and not model.can.encoder else None


def _name(sampler: Any) -> str:
    return str(getattr(getattr(sampler, "func", sampler), "__name__", type(sampler).__name__))
