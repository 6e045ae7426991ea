"""How far the tokens of a row lead: bounds for the tokens of an end behind any of them, found beside the row.

Behind a lexeme that begins at a place, the nodes still to be read take no more than `Counts.begun` says, and a name
in progress no more than its own tokens some times.  Both are told by what the row itself is found from, so they are
remembered with the parts of rows.  What attributes demand besides is told by those before the token and by how much
each lexeme adds at most (`guided.grammar.attributed.pricing.Rise`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from guided.constraint.attributed.counts import A_NAME

__all__ = ["Reached", "Span", "Spans"]


class Reached(NamedTuple):
    """Where a lexeme begins in tokens."""

    signs: int
    others: int
    """The lexemes that are over there."""
    nodes: int
    """The most that nodes and names take behind it."""


class Span(NamedTuple):
    """What is behind tokens that begin with some attributes."""

    attributes: tuple[object, ...]
    """Those of the threads before the token, or before what is left of it."""
    reached: tuple[Reached, ...]


class Spans:
    """Gathers them while a row is written."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, int], int] = {}
        self._signs = 0
        self._others = 0
        self._names = 0
        """For the names of the lexemes that are over."""

    def found(self) -> tuple[Reached, ...]:
        """What was gathered."""
        return tuple(Reached(signs, others, nodes) for (signs, others), nodes in self._found.items())

    def note(self, nodes: int) -> None:
        """A lexeme begins here, behind which nodes and its own bytes take so much."""
        self._add(self._signs, self._others, nodes)

    def note_part(self, reached: Iterable[Reached]) -> None:
        """A part of a row that was found before begins here."""
        for signs, others, nodes in reached:
            self._add(self._signs + signs, self._others + others, nodes)

    def _add(self, signs: int, others: int, nodes: int) -> None:
        key = (signs, others)
        nodes += self._names
        if nodes > self._found.get(key, -1):
            self._found[key] = nodes

    def enter(self, read: int | None) -> None:
        """A lexeme is over: a sign (None), or another of which a name takes so many tokens."""
        if read is None:
            self._signs += 1
        else:
            self._others += 1
            self._names += A_NAME * read

    def leave(self, read: int | None) -> None:
        """Back before it."""
        if read is None:
            self._signs -= 1
        else:
            self._others -= 1
            self._names -= A_NAME * read
