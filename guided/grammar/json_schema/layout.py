"""How JSON is written: the order of members, white space and spelling; and what the rules of its parts begin with."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum

from guided.grammar.ir import Terminal
from guided.grammar.regular.expr import Expr


class Order(Enum):
    """In which order the members of an object may come."""

    SCHEMA = "schema"
    """Declared members in the order of the schema, others anywhere between."""
    ANY = "any"
    """Every order."""


class Spelling(Enum):
    """How a value is spelled, white space apart; what is plain is told in docs/JSON_SCHEMA.md."""

    PLAIN = "plain"
    """As programs write it: no needless escapes, integers in digits, exponents where floats have them."""
    ANY = "any"
    """In every way that JSON has."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How JSON is written."""

    order: Order
    spelling: Spelling
    space: Terminal | None
    """White space between tokens; None: none."""
    around_comma: tuple[Expr, Expr]
    """What stands before and behind the comma between items and members, which is white space."""
    around_colon: tuple[Expr, Expr]
    """The same for the colon behind a name."""
    alone: bool = True
    """Is the text alone, so that white space may stand around it, too?"""

    @property
    def outer(self) -> tuple[Terminal, ...]:
        """White space around the text."""
        return () if self.space is None or not self.alone else (self.space,)


class Rank(IntEnum):
    """Rules by what a text of them may begin with: only with rules of a higher rank."""

    START = 0
    REST = 1
    """Items of an array from some place on."""
    VALUE = 2
    OPENED = 3
    """A container without its closing bracket."""
    INNER = 4
    """What begins with a colon or comma."""
