"""How JSON is written: the order of members, white space and spelling; and what the rules of its parts begin with."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum

from guided.grammar.ir import Terminal


class Order(Enum):
    """In which order the members of an object may come."""

    SCHEMA = "schema"
    """Declared members in the order of the schema, others anywhere between."""
    ANY = "any"
    """Every order."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How JSON is written: order of members, white space between tokens (None: none), one or every spelling."""

    order: Order
    space: Terminal | None
    compact: bool


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
