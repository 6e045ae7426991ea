"""What is open of a query while it is read, in entries of the stack of the engine's parser.

`guided.grammar.sql.query.limits` says what opens how many.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

__all__ = ["Around", "Binding", "Nesting"]


class Binding(Enum):
    """How tightly operators bind, as far as it matters for what is open."""

    # Python's own hashes the name, in Python; queries are looked up all the time.
    __hash__ = object.__hash__

    OR = 0
    AND = 1
    NOT = 2
    RANGE = 3
    """BETWEEN, LIKE and IS, which have words in them."""
    COMPARISON = 4
    VALUE = 5


class Around(NamedTuple):
    """What is open around an expression: `Nesting.held` and `Nesting.operators` there."""

    held: int
    operators: frozenset[Binding]
    is_bracket: bool
    """Is the expression in brackets only, which leave no trace in the engine's tree?"""


class Nesting(NamedTuple):
    """What is open of a query; entries are those of the engine's parser (`guided.grammar.sql.query.limits`)."""

    around: int = 0
    """Entries of all that is around the query."""
    held: int = 0
    """Entries of what is open in the clause, but for the operators of the innermost expression."""
    operators: frozenset[Binding] = frozenset()
    """Those of that expression whose right operand is being read."""
    outer: tuple[Around, ...] = ()
    """What is open around that expression."""
    chained: int = 0
    """Operators whose left operand was made by one of the same precedence."""
