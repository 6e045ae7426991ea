"""The syntax tree of a regular expression, at the level of characters.

Parsed from Python's or ECMA-262's notation by `guided.grammar.regex.parse`, turned into a byte language by
`guided.grammar.regex.lower`.  Flags, case folding and class escapes are already resolved into plain character sets;
the order of alternatives and the greediness of quantifiers are kept, because lexers need the preferred match.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from guided.grammar.regular.characters import CharacterSet


class Dialect(Enum):
    """Whose notation and meaning a pattern has."""

    PYTHON = "python"
    ECMA = "ecma"
    RUST = "rust"
    """Rust's `regex` crate, which llguidance uses; `guided.grammar.regex.notations` reads it."""
    XGRAMMAR = "xgrammar"
    """XGrammar's, read there too."""


@dataclass(frozen=True, slots=True)
class Characters:
    """One character out of a set."""

    ranges: CharacterSet


@dataclass(frozen=True, slots=True)
class Concatenation:
    """The parts one after another; no parts: the empty string."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """The options, most preferred first."""

    options: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Quantified:
    """``low`` to ``high`` (None: no bound) copies; ``greedy`` says whether more or fewer are preferred."""

    body: Node
    low: int
    high: int | None
    greedy: bool = True


@dataclass(frozen=True, slots=True)
class Look:
    """A look-ahead or look-behind assertion at this position."""

    body: Node
    ahead: bool
    negative: bool


class Anchor(Enum):
    """Zero-width assertions about the position in the text (``word`` is the dialect's ``\\w``)."""

    TEXT_START = "start"
    TEXT_END = "end"
    LINE_START = "line start"
    LINE_END = "line end"
    """End of text or before a line feed."""
    TEXT_END_OR_FINAL_NEWLINE = "end or final newline"
    """Python's ``$`` without MULTILINE."""


@dataclass(frozen=True, slots=True)
class At:
    """An anchor."""

    anchor: Anchor


@dataclass(frozen=True, slots=True)
class WordBoundary:
    """``\\b`` (or ``\\B`` when ``negative``) with the set of word characters in force.

    ``in_empty_text``: does ``\\B`` hold in a text without characters?  In Python before 3.14 it does not.
    """

    word: CharacterSet
    negative: bool
    in_empty_text: bool = True


@dataclass(frozen=True, slots=True)
class Group:
    """A capturing group that a reference may name.  Only while a pattern is parsed: see `references`."""

    number: int
    body: Node


@dataclass(frozen=True, slots=True)
class Reference:
    """The text of a group once more.  Only while a pattern is parsed: see `references`."""

    number: int
    offset: int
    ignore_case: bool
    ascii_only: bool


Node: TypeAlias = (
    "Characters | Concatenation | Alternatives | Quantified | Look | At | WordBoundary | Group | Reference"
)
