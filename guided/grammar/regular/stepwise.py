"""Languages of deterministic automata that are made state by state, where they are looked at.

For automata with many states of which few are ever met, like the multiples of a number.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Protocol

from guided.collection import untrack
from guided.grammar.regular.expr import EMPTY, Edge, Expr, Kind, switch


class Automaton(Protocol):
    """What must be known of a state; only states from which some text is accepted may be asked about or led to."""

    def accepts(self, state: Hashable) -> bool:
        """May the text end here?"""

    def steps(self, state: Hashable) -> Iterable[tuple[int, Hashable]]:
        """Bytes in ascending order, and the states that they lead to."""


class _State(Expr):
    """A recursion whose body is made when it is looked at."""

    __slots__ = ("_automaton", "_made", "_state")

    def __init__(self, automaton: Automaton, state: Hashable, made: dict[Hashable, Expr]) -> None:
        super().__init__(Kind.RECURSION, (), automaton.accepts(state), True)
        del self.parts
        self._automaton, self._state, self._made = automaton, state, made

    def __getattr__(self, name: str) -> tuple[object, ...]:
        if name != "parts":
            raise AttributeError(name)
        # Bytes in a row that lead to the same object are one edge, and that is looked up once.
        ways: list[tuple[int, int, Hashable]] = []
        low = high = -2
        last: Hashable = None
        for byte, target in self._automaton.steps(self._state):
            if target is not last or byte != high + 1:
                ways.append((low, high, last))
                low, last = byte, target
            high = byte
        ways.append((low, high, last))
        made = self._made
        row: list[Edge] = []
        for low, high, target in ways[1:]:
            found = made.get(target)
            if found is None:
                found = made.setdefault(target, _State(self._automaton, target, made))
            row.append((low, high, found))
        self.parts = parts = (switch(row, self.nullable),)
        untrack(parts)
        return parts


def stepwise(automaton: Automaton, start: Hashable) -> Expr:
    """The language of an automaton; ``start`` need not accept any text, all other states must.

    States are expressions of their own, so call this once for each automaton and share the result.
    """
    made: dict[Hashable, Expr] = {}
    first = made[start] = _State(automaton, start, made)
    return EMPTY if first.parts[0] is EMPTY else first


def automaton_of(expr: Expr) -> Automaton | None:
    """The automaton of which an expression is a state, if it is one."""
    return expr._automaton if isinstance(expr, _State) else None


def state_of(expr: Expr) -> Hashable:
    """The state that an expression is of its automaton, None where it has none."""
    return expr._state if isinstance(expr, _State) else None
