"""The tree of a grammar in a dialect of Lark's notation, with the places that errors name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

from guided.grammar.lark_dialects.parameters import Argument, Condition

__all__ = [
    "Alternatives",
    "Both",
    "CharacterRange",
    "Conditional",
    "Counted",
    "Dialect",
    "Document",
    "Import",
    "Json",
    "Literal",
    "Nested",
    "Node",
    "NotIn",
    "OtherGrammar",
    "Pattern",
    "Row",
    "RuleDefinition",
    "SpecialToken",
    "Structured",
    "Symbol",
]


class Dialect(Enum):
    """Whose notation a text is in; what is Lark's own, Lark itself reads (`guided.grammar.lark`)."""

    LARK = "lark"
    LLGUIDANCE = "llguidance"
    XGRAMMAR = "xgrammar"


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """The parts one after another."""

    parts: tuple[Node, ...]
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Alternatives:
    """Any one of the options."""

    options: tuple[Node, ...]
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Both:
    """``a & b``: texts of all parts at once."""

    parts: tuple[Node, ...]
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class NotIn:
    """``~a``: all other texts."""

    body: Node
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """``low`` to ``high`` (None: no bound) copies."""

    body: Node
    low: int
    high: int | None
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A quoted text; ``ignore_case``: with an ``i`` behind it."""

    text: str
    ignore_case: bool
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class CharacterRange:
    """One character between two, both included."""

    low: int
    high: int
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Pattern:
    """``/pattern/flags``."""

    pattern: str
    flags: str
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Symbol:
    """A rule or terminal by its name, with what it passes on to a rule that has a parameter."""

    name: str
    offset: int
    argument: Argument | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Conditional:
    """An alternative for those parameters of its rule for which the condition holds."""

    body: Node
    condition: Condition
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class SpecialToken:
    """``<name>`` or ``<[ids]>``, as written."""

    reference: str
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Json:
    """``%json {...}``."""

    schema: Any
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Structured:
    """``%regex {...}``."""

    value: Any
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Nested:
    """``%lark {...}``."""

    document: Document
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class OtherGrammar:
    """``@name``."""

    name: str
    offset: int


Node: TypeAlias = (
    "Row | Alternatives | Both | NotIn | Counted | Literal | CharacterRange | Pattern | Symbol | SpecialToken | Json"
    " | Structured | Nested | OtherGrammar | Conditional"
)


@dataclass(frozen=True, slots=True, eq=False)
class RuleDefinition:
    """A rule or terminal; ``attributes`` as they are written between brackets, a text's without its quotes."""

    name: str
    body: Node
    offset: int
    attributes: Mapping[str, Node | str | None] = field(default_factory=dict)
    has_parameter: bool = False

    @property
    def is_terminal(self) -> bool:
        """Is it a lexeme, whose name begins with a capital letter?"""
        return self.name.lstrip("_")[:1].isupper()

    @property
    def marker(self) -> Node | None:
        """What ``stop`` or ``suffix`` says that the rule ends with."""
        found = self.attributes.get("stop") or self.attributes.get("suffix")
        return None if isinstance(found, str) else found


@dataclass(frozen=True, slots=True, eq=False)
class Import:
    """``%import path -> name``."""

    path: str
    name: str
    offset: int


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """A whole grammar; ``options`` are the members of all ``%llguidance`` or ``%grammar_options`` objects."""

    definitions: tuple[RuleDefinition, ...]
    ignored: tuple[Node, ...]
    imports: tuple[Import, ...]
    options: Mapping[str, Any]
    offset: int
