"""The declared members of a record, made one by one when a text comes to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol

from guided.collection import untrack
from guided.grammar.ir import AnyTerminal, Body, ListedTerminal, Terminal
from guided.grammar.json_schema.layout import Layout
from guided.grammar.json_schema.lowering.terminals import key_of
from guided.grammar.json_schema.reading.document import escape
from guided.grammar.json_schema.satisfiability.graph import Graph
from guided.grammar.json_schema.sets.shape import Need

__all__ = ["DeclaredMembers"]

_PLACELESS = frozenset(("string", "number", "integer"))
"""Labels of terminals that stand at no place of their own."""


class Lowers(Protocol):
    """What makes the values of members, which is `guided.grammar.json_schema.lowering.lower.Lowering`."""

    graph: Graph
    layout: Layout

    def value(self, need: Need) -> Body:
        """The text of a value."""

    def at_hand(self, needs: list[Need]) -> list[Body | None]:
        """The texts of values that are there already."""


class DeclaredMembers:
    """What members are, by index: a `guided.grammar.ir.MemberSource`."""

    __slots__ = ("_at", "_lowering", "_names", "_needs")

    def __init__(self, lowering: Lowers, names: tuple[str, ...], needs: Mapping[str, Need], at: str) -> None:
        """``at``: the place in the schema where the members are declared, with a slash; empty where it is not said."""
        self._lowering = lowering
        self._names = names
        self._needs = needs
        self._at = at
        # The lowering holds on to no record.
        untrack(self)

    def key(self, index: int) -> Terminal:
        """The key."""
        return key_of(self._names[index], self._lowering.layout.spelling)

    def value(self, index: int) -> Body:
        """The value."""
        return self._lowering.value(self._needs[self._names[index]])

    def at_hand(self, first: int, stop: int) -> list[Body | None]:
        """The values that are there already."""
        needs = self._needs
        return self._lowering.at_hand([needs[name] for name in self._names[first:stop]])

    def is_soon_made(self, index: int) -> bool:
        """Is the value soon made?  Bounds of numbers may take milliseconds to write out, others some microseconds."""
        return not self._lowering.graph.shapes[self._needs[self._names[index]]].numbers

    def placed(self, index: int, terminal: AnyTerminal) -> AnyTerminal:
        """A value that is a terminal with its place in the label, where that is known and not there already."""
        if not self._at or terminal.label not in _PLACELESS or isinstance(terminal, ListedTerminal):
            return terminal
        return replace(terminal, label=f"{terminal.label} at {self._at}{escape(self._names[index])}")
