"""The rules of an ANTLR 4 grammar as its text writes them: plain data, with the places that errors name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from guided.errors import GuidedError
from guided.grammar.folding import place_of
from guided.grammar.regular.characters import CharacterSet

__all__ = [
    "Alternative",
    "Any_",
    "Block",
    "CharacterClass",
    "Element",
    "End",
    "Literal",
    "Located",
    "Name",
    "Not",
    "Rule",
    "Suffixed",
]


@dataclass(frozen=True, slots=True)
class Name:
    """A rule by its name."""

    name: str
    offset: int


@dataclass(frozen=True, slots=True)
class Literal:
    """A text in quotes."""

    text: str
    offset: int


@dataclass(frozen=True, slots=True)
class CharacterClass:
    """One character of a set, in a lexer rule."""

    ranges: CharacterSet
    offset: int


@dataclass(frozen=True, slots=True)
class Any_:
    """A dot: any character in a lexer rule, any token in a parser rule."""

    offset: int


@dataclass(frozen=True, slots=True)
class End:
    """``EOF``."""

    offset: int


@dataclass(frozen=True, slots=True)
class Not:
    """``~``: a character or token other than these."""

    elements: tuple[Element, ...]
    offset: int


@dataclass(frozen=True, slots=True)
class Alternative:
    """Elements one after another; ``commands`` stand behind them, as name, argument and place."""

    elements: tuple[Element, ...]
    offset: int
    commands: tuple[tuple[str, str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Block:
    """Any one of the alternatives."""

    alternatives: tuple[Alternative, ...]
    offset: int


@dataclass(frozen=True, slots=True)
class Suffixed:
    """``low`` to ``high`` (None: no bound) copies."""

    element: Element
    low: int
    high: int | None
    greedy: bool
    offset: int


Element: TypeAlias = "Name | Literal | CharacterClass | Any_ | End | Not | Block | Suffixed"


@dataclass(frozen=True, slots=True)
class Rule:
    """A parser rule, or a lexer rule, by the case of its name's first letter."""

    name: str
    alternatives: tuple[Alternative, ...]
    offset: int
    fragment: bool = False

    @property
    def is_lexer(self) -> bool:
        """Is it of the lexer?"""
        return self.name[:1].isupper()


class Located:
    """What reads a grammar's text, and says at which place of it something is wrong."""

    text: str

    def error(self, kind: type[GuidedError], what: str, offset: int, remedy: str) -> GuidedError:
        """An error of this kind, at line and column of the offset."""
        return kind(what, where=place_of(self.text, offset), remedy=remedy)
