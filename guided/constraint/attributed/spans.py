"""How far the tokens of a row lead: bounds for the bytes of an end behind any of them, found beside the row.

Behind a lexeme that begins at a place, the nodes still to be read take no more than `Plan.dearest` says, and a name in
progress no more than its bytes.  Both are told by what the row itself is found from, so they are remembered with the
parts of rows.  What attributes demand besides is told by those before the token and by how much each lexeme adds at
most (`guided.grammar.attributed.pricing.Rise`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from guided.grammar.attributed.nodes import LiteralForm, Name, Spelled
from guided.grammar.attributed.threads import Place

__all__ = ["A_BYTE", "LONG", "Reached", "Span", "Spans", "longest_name", "rest_of_literal"]

A_BYTE = 3
"""Bytes that one of a name adds: two as what waits for it may have it, and one where it is still to be written, or
where USING names it again once it is over."""


LONG = 16
"""Bytes of a token up to which spans count those of free names."""


class Reached(NamedTuple):
    """Where a lexeme begins in tokens."""

    signs: int
    others: int
    """The lexemes that are over there."""
    nodes: int
    """The most bytes that nodes and names take behind it."""


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
        """Bytes for the names of the lexemes that are over."""

    def found(self) -> tuple[Reached, ...]:
        """What was gathered."""
        return tuple(Reached(signs, others, nodes) for (signs, others), nodes in self._found.items())

    def note(self, nodes: int) -> None:
        """A lexeme begins here, behind which nodes and its own bytes take so many."""
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
        """A lexeme is over: a sign (None), or another with so many bytes of a name."""
        if read is None:
            self._signs += 1
        else:
            self._others += 1
            self._names += A_BYTE * read

    def leave(self, read: int | None) -> None:
        """Back before it."""
        if read is None:
            self._signs -= 1
        else:
            self._others -= 1
            self._names -= A_BYTE * read


def longest_name(place: Place) -> int:
    """The most bytes that a listed name adds; no function or type waits for anything, or is written again."""
    found = 0
    for open_, names in place.names:
        assert isinstance(open_.terminal, Name)
        longest = names.words.longest
        # In quotes, where it ends so.
        found = max(found, longest if open_.terminal.spelled is Spelled.WORD else A_BYTE * longest + 2)
    return found


def rest_of_literal(place: Place, form: LiteralForm) -> int:
    """The most bytes of nodes behind a literal, and of what is left of one that is held to some texts."""
    found = 0
    for open_, of, values in place.literals:
        if of is form:
            price = 0 if open_.stack is None else open_.stack.price
            found = max(found, price + (0 if values is None else values.longest_quoted))
    return found
