"""`Request`: the arguments of one `guided.generate`, resolved once; what the runners take.

Nothing here generates.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, cast

from guided.constraint.protocol import Constrains
from guided.diffusion import Denoiser
from guided.errors import GuidedError, UnsupportedError
from guided.grammar.given import reader_of
from guided.hf.constraints import constraints_for
from guided.hf.front.encoding import check_room, is_single, prompt_ids
from guided.hf.front.joint import Joint, joined_as_asked
from guided.hf.language_model import TransformersModel, check_tokenizer, model_and_ends
from guided.hf.loading import LoadedModel, end_ids
from guided.infer.potentials.potential import Potential
from guided.lm import LanguageModel, Truncation, transformed
from guided.steer import ModelPair, Stack, Steerer, Steering
from guided.vocab import Vocabulary, vocabulary_of

if TYPE_CHECKING:
    from guided.draft import Drafting

__all__ = [
    "OWN_OPTIONS",
    "Prompt",
    "Request",
    "checked_options",
    "name_of",
    "read_model",
    "read_prompts",
    "stack_of",
    "truncated",
]

OWN_OPTIONS = ("input_ids", "inputs", "inputs_embeds", "attention_mask", "decoder_input_ids", "max_length")
"""Options of transformers' `generate` that `guided.generate` sets, or whose meaning it would have to guess."""

TRUNCATION = tuple(field.name for field in fields(Truncation))
"""Options that change the model's distribution, which is then taken for the model."""


@dataclass(frozen=True)
class Prompt:
    """One prompt and what may follow it."""

    ids: tuple[int, ...]
    goal: Constrains | Potential[Any] | None
    removed: bytes = b""
    """The end of the prompt that is generated again."""
    read: Callable[[str], Any] = str
    """From a whole text to its value."""

    @property
    def constraint(self) -> Constrains | None:
        """The goal of a prompt that is not a potential."""
        return self.goal if isinstance(self.goal, Constrains) else None


@dataclass(frozen=True)
class Request:
    """All that one call asks."""

    model: Any
    """A model of transformers, for whole texts of a sampler or a search any `LanguageModel`; not steered."""
    tokenizer: Any
    ends: Sequence[int] | None
    """The ids that end a text; None where nobody says."""
    prompts: tuple[Prompt, ...]
    max_new_tokens: int
    n: int | None = None
    """Texts of each prompt, samples, or hypotheses; None: the runner's default."""
    seed: Any = None
    stack: Stack = field(default_factory=Stack)
    """What steers."""
    same_tokenizer: bool = False
    draft: Drafting | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """What is left for transformers, the sampler or the search."""

    @property
    def constraints(self) -> list[Constrains | None]:
        """The constraint of each prompt."""
        return [prompt.constraint for prompt in self.prompts]

    @property
    def vocabulary(self) -> Vocabulary:
        """That of the constraints, or the tokenizer's."""
        for constraint in self.constraints:
            if constraint is not None:
                return constraint.vocabulary
        return vocabulary_of(self.tokenizer, self.ends)


def truncated(request: Request) -> tuple[LanguageModel, dict[str, Any]]:
    """The model of a sampler or a search, steered and then truncated, and the options that are left."""
    truncation = {name: value for name, value in request.options.items() if name in TRUNCATION}
    rest = {name: value for name, value in request.options.items() if name not in TRUNCATION}
    model = cast(LanguageModel, request.model)
    if request.stack:
        model = request.stack.over(model, same_tokenizer=request.same_tokenizer)
    return (transformed(model, **truncation) if truncation else model), rest


def read_model(model: Any, tokenizer: Any, *, whole: bool) -> tuple[Any, Any, list[int] | None]:
    """The model, its tokenizer and the ids that end a text, from what users pass.

    For a sampler or a search, which look at ``whole`` texts, a `LanguageModel`; else a model of transformers.
    """
    if whole:
        return model_and_ends(model, tokenizer)
    if isinstance(model, (LoadedModel, TransformersModel)):
        tokenizer = model.tokenizer if tokenizer is None else tokenizer
        model = model.model
    check_tokenizer(model, tokenizer)
    return model, tokenizer, end_ids(model, tokenizer)


def read_prompts(
    prompt: Any,
    grammar: Any,
    model: Any,
    tokenizer: Any,
    ends: list[int] | None,
    *,
    max_new_tokens: int,
    chat: bool,
    heal: bool,
    canonical: bool,
    potentials: bool,
) -> tuple[Prompt, ...]:
    """Prompts as ids with compiled goals, joined as asked.

    With ``potentials`` a `Potential` may stand for a grammar.  Raises `GuidedError` for no prompt, for other numbers of
    prompts and grammars, and for prompts that are too long.
    """
    given: Sequence[Any] = [prompt] if is_single(prompt) else list(prompt)
    if not given:
        raise GuidedError("no prompt given", remedy="Pass a text, or a list of at least one.")
    encoded = [prompt_ids(item, tokenizer, chat) for item in given]
    network = model.model if isinstance(model, TransformersModel) else model
    # What brings no configuration checks its own room.
    any_model = isinstance(network, (LanguageModel, Denoiser))
    encoder = bool(
        network.can.encoder
        if isinstance(network, LanguageModel)
        else not any_model and network.config.is_encoder_decoder
    )
    prompts: list[Prompt] = []
    for ids, (goal, read) in zip(encoded, _goals(grammar, len(given), tokenizer, ends, potentials), strict=True):
        one = Prompt(tuple(ids), goal, read=read)
        if heal or canonical:
            one = _joined(one, tokenizer, heal, canonical, encoder)
        if not encoder and not any_model:
            check_room(network, len(one.ids), max_new_tokens)
        prompts.append(one)
    return tuple(prompts)


def _joined(prompt: Prompt, tokenizer: Any, heal: bool, canonical: bool, encoder: bool) -> Prompt:
    """A prompt whose end is taken back, or whose text is spelled as the tokenizer spells it."""
    if prompt.constraint is None:
        raise UnsupportedError("heal= and canonical= need a grammar", remedy="Leave them out, or pass one.")
    joint = joined_as_asked(Joint(prompt.ids, prompt.constraint), tokenizer, heal, canonical, encoder)
    return Prompt(tuple(joint.ids), joint.constraint, joint.removed, prompt.read)


def _goals(
    grammar: Any, n: int, tokenizer: Any, ends: list[int] | None, potentials: bool
) -> list[tuple[Constrains | Potential[Any] | None, Callable[[str], Any]]]:
    """For each of ``n`` prompts what its text must satisfy, None without a grammar, and how it is read back."""
    if grammar is None:
        return [(None, str)] * n
    given = list(grammar) if isinstance(grammar, Sequence) and not isinstance(grammar, str) else [grammar]
    grammars = [item for item in given if not (potentials and isinstance(item, Potential))]
    known = None if isinstance(tokenizer, Vocabulary) else ends
    compiled = constraints_for(grammars, tokenizer, known) if grammars or not given else ()
    by_item = {id(item): constraint for item, constraint in zip(grammars, compiled, strict=True)}
    goals: list[tuple[Constrains | Potential[Any] | None, Callable[[str], Any]]]
    goals = [(by_item[id(item)], reader_of(item)) if id(item) in by_item else (item, str) for item in given]
    if len(goals) not in (1, n):
        raise GuidedError(f"{len(goals)} grammars for {n} prompts", remedy="Pass one grammar, or one for each prompt.")
    return goals * (n // len(goals))


def stack_of(steer: Steering | None) -> Stack:
    """Steerers as one stack, which is empty for None."""
    if steer is None or isinstance(steer, Stack):
        return steer or Stack()
    return Stack([steer] if isinstance(steer, (Steerer, ModelPair)) else steer)


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
