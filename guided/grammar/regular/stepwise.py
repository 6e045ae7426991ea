"""Languages of deterministic automata that are made state by state, where they are looked at.

For automata with many states of which few are ever met, like the multiples of a number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from typing import Protocol, TypeAlias

from guided.collection import untrack
from guided.grammar.regular.expr import EMPTY, Edge, Expr, Kind, switch, untrack_edges

Step: TypeAlias = "tuple[int, int, Hashable]"
"""``(low, high, state)``: every byte in ``low..high`` (inclusive) leads to ``state``."""


class Automaton(Protocol):
    """What must be known of a state; only states from which some text is accepted may be asked about or led to."""

    def accepts(self, state: Hashable) -> bool:
        """May the text end here?"""

    def steps(self, state: Hashable) -> Iterable[Step]:
        """Ranges of bytes in ascending order; neighbours may lead to the same state."""


class Measured(ABC):
    """An automaton for `stepwise` that tells how far its states are from an end: searches need not look at all."""

    @abstractmethod
    def least(self, state: Hashable) -> int:
        """The fewest bytes of a text that a state accepts, or less."""


class _State(Expr):
    """A recursion whose body is made when it is looked at."""

    __slots__ = ("_automaton", "_made", "_state", "_whole")

    def __init__(self, automaton: Automaton, state: Hashable, made: dict[Hashable, Expr], whole: bool) -> None:
        super().__init__(Kind.RECURSION, (), automaton.accepts(state), True)
        del self.parts, self.raw
        self._automaton, self._state, self._made, self._whole = automaton, state, made, whole
        if isinstance(automaton, Measured):
            self.least = automaton.least(state)

    def __getattr__(self, name: str) -> tuple[object, ...]:
        if name == "raw":
            # All of them lead on, and they are wanted more often than a body made of them.
            if self.edges is None:
                self.edges = self._edges()
            self.raw = self.edges
            return self.edges
        if name == "parts":
            self.parts = parts = (switch(self.edges or self._edges(), self.nullable),)
            untrack(parts)
            return parts
        raise AttributeError(name)

    def _edges(self) -> tuple[Edge, ...]:
        row: list[Edge] = []
        made = self._made
        end, last = -1, None
        for low, high, target in self._automaton.steps(self._state):
            found = made.get(target)
            if found is None:
                found = made.setdefault(target, _State(self._automaton, target, made, self._whole))
            if found is last and end == low:
                row[-1] = (row[-1][0], high, found)
            else:
                row.append((low, high, found))
            end, last = high + 1, found
        edges = tuple(row)
        untrack_edges(edges)
        return edges


def stepwise(automaton: Automaton, start: Hashable, *, whole: bool = False) -> Expr:
    """The language of an automaton; ``start`` need not accept any text, all other states must.

    States are expressions of their own, so call this once for each automaton and share the result.  ``whole`` says that
    most states are met by the first text that comes to any (`is_met_whole`).
    """
    made: dict[Hashable, Expr] = {}
    first = made[start] = _State(automaton, start, made, whole)
    return EMPTY if first.parts[0] is EMPTY else first


def by_byte(steps: Iterable[Step]) -> dict[int, Hashable]:
    """Where each byte leads."""
    return {byte: target for low, high, target in steps for byte in range(low, high + 1)}


def automaton_of(expr: Expr) -> Automaton | None:
    """The automaton of which an expression is a state, if it is one."""
    return expr._automaton if isinstance(expr, _State) else None


def is_met_whole(expr: Expr) -> bool:
    """Is an expression a state of an automaton of which most states are met, if any is?"""
    return isinstance(expr, _State) and expr._whole


def state_of(expr: Expr) -> Hashable:
    """The state that an expression is of its automaton, None where it has none."""
    return expr._state if isinstance(expr, _State) else None
