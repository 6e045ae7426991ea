"""The command line's words for steering: ``contrastive:model=PATH,alpha=0.1`` to steerer objects.

How a specification is written is `guided.cli.methods.words`'.  Nothing here imports torch until a stack is built, and
nothing loads a model but through `Sources`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guided.cli.methods.rewards import reward_function
from guided.cli.methods.steering_methods import METHODS, Kind, Sources
from guided.cli.methods.words import Words, listed, parse_words, read_value
from guided.errors import GuidedError

if TYPE_CHECKING:
    from guided.hf.loading import LoadedModel
    from guided.lm.model import LanguageModel
    from guided.steer import ModelPair, Stack, Steerer

__all__ = ["parse_steering", "sources_of", "steering_help", "steering_stack"]


def steering_stack(specifications: Sequence[str], sources: Sources) -> Stack:
    """The stack of these specifications, in order; raises `GuidedError` for what is misspelt or does not fit."""
    words = [parse_steering(each) for each in specifications]
    from guided.steer import Stack

    return Stack([_built(each, sources) for each in words])


def sources_of(loaded: LoadedModel, load: Callable[[str], LoadedModel]) -> Sources:
    """Where a command's models and tokens come from: ``loaded`` is steered, ``load`` loads others, each name once.

    A model of another tokenizer is read in the tokens of the steered one, through its bytes.  All models then have the
    steered one's ids, some more padding than others: pass ``same_tokenizer=True`` on.
    """
    from guided.hf.language_model import in_tokens_of, wrapped

    tokenizer = loaded.tokenizer
    known: dict[str, LanguageModel] = {}

    def load_model(name: str) -> LanguageModel:
        if name not in known:
            known[name] = in_tokens_of(loaded, load(name))
        return known[name]

    return Sources(
        wrapped(loaded),
        load_model,
        lambda text, special: list(tokenizer(text, add_special_tokens=special)["input_ids"]),
        lambda ids: str(tokenizer.decode(list(ids), skip_special_tokens=True)),
    )


def parse_steering(specification: str) -> Words:
    """Take a specification apart and check names, without building anything.

    >>> parse_steering('contrastive:model=small,alpha=0.1').settings
    {'model': ('small',), 'alpha': ('0.1',)}
    """
    return parse_words(
        specification, "--steer", "steering method", {name: method.settings for name, method in METHODS.items()}
    )


def steering_help() -> str:
    """What ``--steer help`` prints: all methods and their settings, and how they are put together."""
    return listed(
        "--steer METHOD:KEY=VALUE,...: steering methods, applied in the order given",
        {name: (method.settings, method.summary) for name, method in METHODS.items()},
        [
            "guided extract -s schema.json --steer contrastive:model=nano-amateur,alpha=0.1 letter.txt",
            "guided extract -s schema.json --steer cfg:scale=1.5 --steer rad:reward=mymodule:score letter.txt",
            "guided extract -s schema.json --steer adaptive:model=nano-amateur,threshold=1.5 letter.txt",
        ],
        "MODEL is a packaged name (nano, nano-amateur, reviews-positive, ..), a folder or a name on the hub; a model of"
        " another tokenizer is read through its bytes. MODULE:FUNCTION takes a list of texts and gives a number for"
        " each. All but `adaptive` and `fast-slow` only change scores; these go first.",
    )


def _built(words: Words, sources: Sources) -> Steerer | ModelPair:
    method = METHODS[words.name]
    values: dict[str, Any] = {}
    for key, texts in words.settings.items():
        setting = method.settings[key]
        where = f"--steer {words.name}:{key}={texts[0]}"
        found = tuple(_value(setting.kind, text, sources, where) for text in texts)
        values[key] = found if setting.many else found[0]
    return method.build(values, sources)


def _value(kind: Enum, text: str, sources: Sources, where: str) -> Any:
    """What a setting's text stands for; raises `GuidedError`."""
    if kind in (Kind.NUMBER_OR_NONE, Kind.COUNT_OR_NONE) and text.lower() == "none":
        return None
    if kind is Kind.MODEL:
        return sources.load_model(text)
    if kind in (Kind.TOKENS, Kind.PROMPT):
        return tuple(sources.encode(text, kind is Kind.PROMPT))
    if kind is Kind.REWARD:
        return _reward(text, sources, where)
    if kind is Kind.CORPUS:
        return _corpus(text, sources, where)
    return read_value(_READERS[kind], kind, text, where)


def _head(text: str) -> tuple[int, int]:
    block, head = text.split(".")
    return int(block), int(head)


def _bucket(text: str) -> Any:
    from guided.steer import Bucket

    return Bucket(text)


def _divergence(text: str) -> Any:
    from guided.steer import Divergence

    return Divergence(text)


_READERS: dict[Enum, Callable[[str], Any]] = {
    Kind.NUMBER: float,
    Kind.NUMBER_OR_NONE: float,
    Kind.COUNT: int,
    Kind.COUNT_OR_NONE: int,
    Kind.FLAG: lambda text: {"yes": True, "true": True, "no": False, "false": False}[text.lower()],
    Kind.LAYER: int,
    Kind.HEAD: _head,
    Kind.BUCKET: _bucket,
    Kind.DIVERGENCE: _divergence,
}


def _reward(text: str, sources: Sources, where: str) -> Any:
    from guided.steer import TextReward

    return TextReward(reward_function(text, where), sources.decode)


def _corpus(text: str, sources: Sources, where: str) -> Any:
    try:
        lines = Path(text).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise GuidedError(
            f"the corpus cannot be read: {error}", where=where, remedy="Give a file with one text a line."
        ) from error
    return [tuple(sources.encode(line, True)) for line in lines if line.strip()]
