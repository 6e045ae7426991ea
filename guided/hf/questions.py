"""What `guided.generate` asks of a sampler or a search: a model behind `guided.lm`, prompts as ids, compiled goals.

Nothing here generates.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from guided.constraint.canonical import canonical as make_canonical
from guided.constraint.protocol import Constrains
from guided.errors import GuidedError, UnsupportedError
from guided.hf.constraints import constraints_for
from guided.hf.encoding import check_room, is_single, prompt_ids
from guided.hf.language_model import TransformersModel, model_and_ends
from guided.infer.potential import Potential
from guided.lm import LanguageModel, transformed
from guided.steer import EntropyAdaptive, Stack, Steerer, Steering
from guided.vocab import Vocabulary

__all__ = ["Question", "Questions", "checked_options", "name_of", "read_questions", "stack_of"]

TRUNCATION = ("temperature", "top_k", "top_p", "min_p")
"""Options that change the model's distribution, which is then taken for the model."""


@dataclass(frozen=True)
class Question:
    """One prompt and what may follow it."""

    ids: list[int]
    goal: Constrains | Potential[Any]


@dataclass(frozen=True)
class Questions:
    """All that a call asks."""

    model: LanguageModel
    """Steered, and then truncated."""
    tokenizer: Any
    each: tuple[Question, ...]
    single: bool
    """True where one prompt was given, not in a list."""
    options: Mapping[str, Any]
    """The options of the call that are left."""


def read_questions(
    model: Any,
    prompt: Any,
    grammar: Any,
    *,
    tokenizer: Any,
    steer: Steering | None,
    max_new_tokens: int,
    chat: bool,
    canonical: bool,
    options: Mapping[str, Any],
) -> Questions:
    """Read the arguments of a call; temperature and truncation are taken from ``options``.

    ``model`` may be any `LanguageModel`, prompts token ids, and a grammar any `Potential`.
    """
    ready, tokenizer, ends = model_and_ends(model, tokenizer)
    truncation = {name: options[name] for name in TRUNCATION if name in options}
    room, encoder = _room_of(ready), ready.can.encoder
    if steer is not None:
        ready = stack_of(steer).over(ready, same_tokenizer=bool(options.get("same_tokenizer", False)))
    if truncation:
        ready = transformed(ready, **truncation)
    single = is_single(prompt)
    prompts: Sequence[Any] = [prompt] if single else list(prompt)
    if not prompts:
        raise GuidedError("no prompt given", remedy="Pass a text, or a list of at least one.")
    encoded = [prompt_ids(item, tokenizer, chat) for item in prompts]
    if grammar is None:
        raise UnsupportedError(
            "a sampler and a search need a grammar or a potential",
            remedy="Leave out sampler= and search=, or pass one.",
        )
    given = list(grammar) if isinstance(grammar, Sequence) and not isinstance(grammar, str) else [grammar]
    if len(given) not in (1, len(prompts)):
        raise GuidedError(
            f"{len(given)} grammars for {len(prompts)} prompts", remedy="Pass one grammar, or one for each prompt."
        )
    goals = _goals(given, tokenizer, ends)
    each: list[Question] = []
    for i, ids in enumerate(encoded):
        goal = goals[i % len(goals)]
        if canonical:
            if not isinstance(goal, Constrains):
                raise UnsupportedError("canonical=True needs a grammar", remedy="Leave it out with a potential.")
            goal = make_canonical(goal, tokenizer, before=() if encoder else ids)
        if room is not None:
            check_room(room, len(ids), max_new_tokens)
        each.append(Question(ids, goal))
    rest = {name: value for name, value in options.items() if name not in (*truncation, "same_tokenizer")}
    return Questions(ready, tokenizer, tuple(each), single, rest)


def stack_of(steer: Steering) -> Stack:
    """Steerers as one stack."""
    if isinstance(steer, Stack):
        return steer
    return Stack([steer] if isinstance(steer, (Steerer, EntropyAdaptive)) else steer)


def checked_options(function: Callable[..., Any], wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The options, all of which the function has; raises `GuidedError` for one that it has not."""
    parameters = inspect.signature(function).parameters
    if not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values()):
        for name in wanted:
            if name not in parameters:
                known = [each.name for each in parameters.values() if each.kind is inspect.Parameter.KEYWORD_ONLY]
                raise GuidedError(
                    f"{name_of(function)} has no option {name!r}",
                    where="guided.generate",
                    remedy=f"It has {', '.join(known)}; without sampler= and search= the options are those of"
                    " transformers.",
                )
    return dict(wanted)


def name_of(function: Any) -> str:
    """The name of a function or of a partial of one."""
    return str(getattr(getattr(function, "func", function), "__name__", type(function).__name__))


def _goals(given: Sequence[Any], tokenizer: Any, ends: list[int] | None) -> list[Constrains | Potential[Any]]:
    grammars = [item for item in given if not isinstance(item, Potential)]
    ends = None if isinstance(tokenizer, Vocabulary) else ends
    compiled = iter(constraints_for(grammars, tokenizer, ends) if grammars else ())
    return [item if isinstance(item, Potential) else next(compiled) for item in given]


def _room_of(model: LanguageModel) -> Any:
    """A decoder-only model of transformers, whose context is bounded; else None."""
    return model.model if isinstance(model, TransformersModel) and not model.can.encoder else None
