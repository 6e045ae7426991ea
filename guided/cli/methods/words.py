"""The command line's small language ``NAME:KEY=VALUE,KEY=VALUE``: taken apart and checked against what is known.

A value with a comma, or with spaces at its ends, goes in double quotes, inside which a backslash keeps the next
character.  A setting that may be given several times is written several times.  What the values mean is for others.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from guided.errors import GuidedError

__all__ = ["Setting", "Words", "listed", "parse_words", "read_value", "signature"]


@dataclass(frozen=True)
class Setting:
    """One ``KEY``; ``many`` if it may be given several times."""

    kind: Enum
    """What its value is; the value of the member is how help shows it."""
    required: bool = False
    many: bool = False


@dataclass(frozen=True)
class Words:
    """A specification taken apart: the name, and each setting's texts in order."""

    name: str
    settings: Mapping[str, tuple[str, ...]]


def parse_words(specification: str, option: str, what: str, known: Mapping[str, Mapping[str, Setting]]) -> Words:
    """Take a specification apart; ``option`` and ``what`` a name is called are for messages.

    Raises `GuidedError` for a name or setting that is not known, given twice, or missing.
    """
    where = f"{option} {specification}"
    name, _, rest = specification.partition(":")
    name = name.strip()
    if name not in known:
        remedy = f"{_suggestion(name, known)}Known: {', '.join(known)}."
        raise GuidedError(f"no {what} is called {name!r}", where=where, remedy=remedy)
    settings = known[name]
    usage = f"Write {signature(name, settings)}"
    found: dict[str, list[str]] = {}
    for part in _split(rest, where):
        key, equals, value = part.partition("=")
        key = key.strip().replace("-", "_")
        setting = settings.get(key)
        if setting is None or not equals:
            wrong = f"{name} has no setting {key!r}" if equals else f"{part.strip()!r} is not KEY=VALUE"
            raise GuidedError(wrong, where=where, remedy=_suggestion(key, settings) + usage)
        if key in found and not setting.many:
            raise GuidedError(f"{key} is given twice", where=where, remedy=usage)
        found.setdefault(key, []).append(_unquoted(value.strip()))
    missing = [key for key, setting in settings.items() if setting.required and key not in found]
    if missing:
        raise GuidedError(f"{name} needs {' and '.join(missing)}", where=where, remedy=usage)
    return Words(name, {key: tuple(values) for key, values in found.items()})


def read_value(reader: Callable[[str], Any], kind: Enum, text: str, where: str) -> Any:
    """What a reader makes of a value's text; its `KeyError` or `ValueError` becomes a `GuidedError`."""
    try:
        return reader(text)
    except (KeyError, ValueError):
        raise GuidedError(f"{text!r} is not {kind.value}", where=where, remedy=f"Write {kind.value}.") from None


def signature(name: str, settings: Mapping[str, Setting]) -> str:
    """How a specification is written."""
    shown = []
    for key, setting in settings.items():
        text = f"{key}={setting.kind.value}" + ("..." if setting.many else "")
        shown.append(text if setting.required else f"[{text}]")
    return name + (f":{','.join(shown)}" if shown else "")


def listed(
    title: str, known: Mapping[str, tuple[Mapping[str, Setting], str]], examples: Sequence[str], remark: str
) -> str:
    """All names for people: how each is written, and under it what it is; then examples and a remark."""
    lines = [title, ""]
    for name, (settings, summary) in known.items():
        lines += [f"  {signature(name, settings)}", f"      {summary}"]
    return "\n".join(
        [
            *lines,
            "",
            "Settings in [brackets] may be left out; those with ... may be given again.",
            remark,
            "",
            "Examples:",
            *(f"  {each}" for each in examples),
        ]
    )


def _suggestion(name: str, known: Mapping[str, object]) -> str:
    close = difflib.get_close_matches(name, list(known), 1)
    return f"Did you mean {close[0]!r}? " if close else ""


def _split(text: str, where: str) -> list[str]:
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
        raise GuidedError("a quote is not closed", where=where, remedy='End the value with ".')
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
