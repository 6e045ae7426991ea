"""The command line's words for steering: ``contrastive:model=PATH,alpha=0.1`` to steerer objects.

``NAME`` or ``NAME:KEY=VALUE,KEY=VALUE``; a value with a comma, or with spaces at its ends, goes in double quotes,
inside which a backslash keeps the next character.  A setting that may be given several times is written several times.
Nothing here imports torch until a stack is built, and nothing loads a model but through `Sources`.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from guided.cli.steering_methods import METHODS, Kind, Sources
from guided.errors import GuidedError

if TYPE_CHECKING:
    from guided.hf.loading import LoadedModel
    from guided.lm.model import LanguageModel
    from guided.steer import Stack, Steerer

__all__ = ["Words", "parse_steering", "sources_of", "steering_help", "steering_stack"]


@dataclass(frozen=True)
class Words:
    """A specification taken apart: the method's name, and each setting's texts in order."""

    name: str
    settings: Mapping[str, tuple[str, ...]]


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
    from guided.hf.language_model import TransformersModel
    from guided.lm.retokenized import retokenized

    tokenizer = loaded.tokenizer
    known: dict[str, LanguageModel] = {}

    def load_model(name: str) -> LanguageModel:
        if name not in known:
            other = load(name)
            model: LanguageModel = TransformersModel(other)
            if other.tokenizer.get_vocab() != tokenizer.get_vocab():
                model = retokenized(model, other.vocabulary, loaded.vocabulary)
            known[name] = model
        return known[name]

    return Sources(
        TransformersModel(loaded),
        load_model,
        lambda text, special: list(tokenizer(text, add_special_tokens=special)["input_ids"]),
        lambda ids: str(tokenizer.decode(list(ids), skip_special_tokens=True)),
    )


def parse_steering(specification: str) -> Words:
    """Take a specification apart and check names, without building anything.

    >>> parse_steering('contrastive:model=small,alpha=0.1').settings
    {'model': ('small',), 'alpha': ('0.1',)}
    """
    name, _, rest = specification.partition(":")
    name = name.strip()
    method = METHODS.get(name)
    if method is None:
        raise GuidedError(
            f"no steering method is called {name!r}",
            where=f"--steer {specification}",
            remedy=_suggestion(name, METHODS) + f"Known: {', '.join(METHODS)}.",
        )
    found: dict[str, list[str]] = {}
    for part in _split(rest, specification):
        key, equals, value = part.partition("=")
        key = key.strip().replace("-", "_")
        setting = method.settings.get(key)
        if setting is None or not equals:
            what = f"{name} has no setting {key!r}" if equals else f"{part.strip()!r} is not KEY=VALUE"
            raise GuidedError(
                what, where=f"--steer {specification}", remedy=_suggestion(key, method.settings) + _usage(name)
            )
        if key in found and not setting.many:
            raise GuidedError(f"{key} is given twice", where=f"--steer {specification}", remedy=_usage(name))
        found.setdefault(key, []).append(_unquoted(value.strip()))
    missing = [key for key, setting in method.settings.items() if setting.required and key not in found]
    if missing:
        raise GuidedError(
            f"{name} needs {' and '.join(missing)}", where=f"--steer {specification}", remedy=_usage(name)
        )
    return Words(name, {key: tuple(values) for key, values in found.items()})


def steering_help() -> str:
    """All methods and their settings, one a line."""
    return "\n".join(f"{_signature(name)}  {method.summary}" for name, method in METHODS.items())


def _signature(name: str) -> str:
    settings = METHODS[name].settings
    shown = []
    for key, setting in settings.items():
        text = f"{key}={setting.kind.value}" + ("..." if setting.many else "")
        shown.append(text if setting.required else f"[{text}]")
    return name + (f":{','.join(shown)}" if shown else "")


def _usage(name: str) -> str:
    return f"Write {_signature(name)}"


def _suggestion(name: str, known: Mapping[str, object]) -> str:
    close = difflib.get_close_matches(name, list(known), 1)
    return f"Did you mean {close[0]!r}? " if close else ""


def _split(text: str, specification: str) -> list[str]:
    """The parts between commas that are not in quotes; none for an empty text."""
    parts, current, quoted, escaped = [], "", False, False
    for character in text:
        if escaped:
            escaped = False
        elif quoted and character == "\\":
            escaped = True
        elif character == '"':
            quoted = not quoted
        elif character == "," and not quoted:
            parts.append(current)
            current = ""
            continue
        current += character
    if quoted:
        raise GuidedError("a quote is not closed", where=f"--steer {specification}", remedy='End the value with ".')
    return [*parts, current] if text.strip() else []


def _unquoted(value: str) -> str:
    if len(value) < 2 or not (value.startswith('"') and value.endswith('"')):
        return value
    plain, escaped = "", False
    for character in value[1:-1]:
        if character == "\\" and not escaped:
            escaped = True
            continue
        plain += character
        escaped = False
    return plain


def _built(words: Words, sources: Sources) -> Steerer:
    method = METHODS[words.name]
    values: dict[str, Any] = {}
    for key, texts in words.settings.items():
        setting = method.settings[key]
        where = f"--steer {words.name}:{key}={texts[0]}"
        found = tuple(_value(setting.kind, text, sources, where) for text in texts)
        values[key] = found if setting.many else found[0]
    return method.build(values, sources)


def _value(kind: Kind, text: str, sources: Sources, where: str) -> Any:
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
    reader = _READERS[kind]
    try:
        return reader(text)
    except (KeyError, ValueError):
        raise GuidedError(f"{text!r} is not {kind.value}", where=where, remedy=f"Write {kind.value}.") from None


def _head(text: str) -> tuple[int, int]:
    block, head = text.split(".")
    return int(block), int(head)


def _bucket(text: str) -> Any:
    from guided.steer import Bucket

    return Bucket(text)


def _divergence(text: str) -> Any:
    from guided.steer import Divergence

    return Divergence(text)


_READERS: dict[Kind, Callable[[str], Any]] = {
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

    module, _, name = text.partition(":")
    try:
        function = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise GuidedError(
            f"no reward function {text!r}: {error}",
            where=where,
            remedy="Write MODULE:FUNCTION, of a function from a list of texts to a list of numbers.",
        ) from error
    if not callable(function):
        raise GuidedError(f"{text} is no function", where=where, remedy="Write MODULE:FUNCTION.")
    return TextReward(function, sources.decode)


def _corpus(text: str, sources: Sources, where: str) -> Any:
    try:
        lines = Path(text).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise GuidedError(
            f"the corpus cannot be read: {error}", where=where, remedy="Give a file with one text a line."
        ) from error
    return [tuple(sources.encode(line, True)) for line in lines if line.strip()]
