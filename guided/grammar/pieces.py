"""The rules of a grammar as its text writes them: literals, classes, names, groups, repetitions.

What the readers of grammar notations without a lexer produce (`guided.grammar.gbnf_syntax`) and
`guided.grammar.folding` lowers.  Plain data, with the places that errors name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from guided.grammar.ir import Grammar
from guided.grammar.regular.characters import CharacterSet
from guided.grammar.regular.expr import Expr


@dataclass(frozen=True, slots=True, eq=False)
class Text:
    """A quoted text; may be empty."""

    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Class:
    """One character of a set."""

    ranges: CharacterSet


@dataclass(frozen=True, slots=True, eq=False)
class Name:
    """A rule by its name; ``offset`` is where the grammar mentions it."""

    name: str
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Special:
    """Any one of these special tokens."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Regular:
    """A regular language that the notation says in a way of its own, such as a pattern; never folded away."""

    language: Expr
    label: str
    is_text: bool = True
    """Is it known to hold nothing but UTF-8?"""
    most_tokens: int | None = None
    """The tokens that a text of it may take.  Then it stands for itself, and is a part of no other regular language."""


@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    """A text of another grammar; ``where`` is its place in this one."""

    grammar: Grammar
    where: str


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """The parts one after another; none: the empty text."""

    parts: tuple[Piece, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Either:
    """Any one of the options."""

    options: tuple[Piece, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Repeated:
    """``low`` to ``high`` (None: no bound) copies."""

    body: Piece
    low: int
    high: int | None


Piece: TypeAlias = "Text | Class | Name | Special | Regular | Whole | Row | Either | Repeated"


@dataclass(frozen=True, slots=True)
class Definition:
    """A rule: its body, and where its name stands."""

    body: Piece
    offset: int


def pieces_of(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """The pieces, and all that they are made of."""
    stack = list(pieces)
    while stack:
        piece = stack.pop()
        yield piece
        stack.extend(inner(piece))


def row(parts: Sequence[Piece]) -> Piece:
    """The parts one after another; a single one as it is."""
    return parts[0] if len(parts) == 1 else Row(tuple(parts))


def inner(piece: Piece) -> tuple[Piece, ...]:
    """The pieces that a piece is made of."""
    match piece:
        case Row(parts):
            return parts
        case Either(options):
            return options
        case Repeated(body):
            return (body,)
        case _:
            return ()
