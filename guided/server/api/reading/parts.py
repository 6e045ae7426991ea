"""What a text is made of for who reads it: `Content`, `Reasoning`, `CallBegins`, `CallArguments`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

__all__ = ["CallArguments", "CallBegins", "Content", "Part", "PartReader", "Reasoning", "held_back"]


@dataclass(frozen=True)
class Content:
    """Some of the answer's text."""

    text: str


@dataclass(frozen=True)
class Reasoning:
    """Some of the reasoning before it."""

    text: str


@dataclass(frozen=True)
class CallBegins:
    """A call of a function; ``index`` counts the calls of a text."""

    index: int
    name: str


@dataclass(frozen=True)
class CallArguments:
    """Some of the JSON object that a call's arguments are."""

    index: int
    text: str


Part: TypeAlias = "Content | Reasoning | CallBegins | CallArguments"


class PartReader(Protocol):
    """Reads one text as it comes."""

    def read(self, text: str) -> list[Part]:
        """What some more text says; what may be the beginning of a delimiter is held back."""

    def close(self) -> list[Part]:
        """What was held back when the text ended."""


def held_back(text: str, mark: str) -> int:
    """How many of the last characters may be the beginning of ``mark``.

    >>> held_back("a <thi", "<think>")
    4
    """
    for n in range(min(len(text), len(mark) - 1), 0, -1):
        if mark.startswith(text[-n:]):
            return n
    return 0
