"""Parts that are states of minimal automata, written from their register many at a time.

Python takes 10 to 25 microseconds for a state of a minimal automaton: it makes an expression of the state, and one of
each state that it leads to.  The register has it all in numbers, so a kernel writes hundreds of states in the time of
ten (`guided.kernels.lexing.minimal.write_states`).  Expressions are made only of states that something else uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from guided.automata.lexer.traits import Reading
from guided.grammar.regular.condensed import place_of
from guided.grammar.regular.expr import Expr, Kind
from guided.kernels.data.layout import CANONICAL
from guided.kernels.jit import direct
from guided.kernels.lexing import minimal as kernel
from guided.kernels.lexing.part_pairs import EXPENSIVE, LOOPS, SPELLED_ONCE, TEXTUAL

if TYPE_CHECKING:
    from guided.grammar.regular.minimal import Register

__all__ = ["MinimalParts", "Room", "WrittenParts"]

AT_ONCE = 512
"""States whose edges are written at once, a tenth of a microsecond each; nearly all automata have fewer."""


class Room(Protocol):
    """A table that parts are written in."""

    n_edges: int

    def __len__(self) -> int:
        """Of how many parts."""

    def table_address(self) -> int:
        """Where the kernels find its arrays."""

    def part(self, content: Expr, mode: int) -> int:
        """The part of a language that is no state written here."""

    def grow(self) -> None:
        """Make room for more parts and edges."""


class MinimalParts:
    """Which parts the states of minimal automata are."""

    def __init__(self) -> None:
        self._of: dict[tuple[Register, int], _Places] = {}

    def find(self, content: Expr, mode: int) -> int | None:
        """The part that a language is, None where it is no state of an automaton, or no part yet."""
        place = place_of(content) if content.kind is Kind.RECURSION else None
        return None if place is None else self._places(place[0], mode).part(place[1])

    def note(self, content: Expr, mode: int, part: int) -> None:
        """A new part is a language; that matters where it is a state of an automaton."""
        place = place_of(content) if content.kind is Kind.RECURSION else None
        if place is not None:
            self._places(place[0], mode).note(place[1], part)

    def write(self, content: Expr, mode: int, room: Room) -> WrittenParts | None:
        """Make known the edges of a state of an automaton, and of those around it; the new parts, None: it is none."""
        place = place_of(content) if content.kind is Kind.RECURSION else None
        return None if place is None else self._places(place[0], mode).write(place[1], room)

    def _places(self, register: Register, mode: int) -> _Places:
        found = self._of.get((register, mode))
        if found is None:
            found = self._of[register, mode] = _Places(register, mode)
        return found


class WrittenParts:
    """Parts written together, from one number on."""

    __slots__ = ("_first", "_mode", "_register", "numbers")

    def __init__(self, register: Register, mode: int, first: int, numbers: NDArray[np.int32]) -> None:
        self._register, self._mode = register, mode
        self._first = first
        self.numbers = numbers
        """The states of the register that they are."""

    def reading(self, part: int) -> Reading:
        """What a part is."""
        return self._register.expr(int(self.numbers[part - self._first])), self._mode

    def made(self) -> list[tuple[int, Reading]]:
        """The parts of which there are expressions already."""
        is_made = self._register.is_made
        return [(i, self.reading(i)) for i, state in enumerate(self.numbers.tolist(), self._first) if is_made(state)]


class _Places:
    """Which parts the states of one register are, in one mode."""

    def __init__(self, register: Register, mode: int) -> None:
        self._register, self._mode = register, mode
        self._parts = np.zeros((0, 2), np.int32)
        self._order = np.zeros(0, np.int32)
        self._about = np.zeros(kernel.N_ABOUT, np.int64)
        self._about[kernel.MOST] = AT_ONCE
        self._about[kernel.SEEDED] = register.n_seeded
        spelled = (TEXTUAL | SPELLED_ONCE if mode & CANONICAL else TEXTUAL) if mode else 0
        self._about[kernel.TRAITS] = EXPENSIVE | LOOPS | spelled

    def part(self, number: int) -> int | None:
        """The part that a state is, None where it is none yet."""
        found = int(self._parts[number, 0]) if number < len(self._parts) else 0
        return found - 1 if found else None

    def note(self, number: int, part: int) -> None:
        """Let a state be that part."""
        self._make_room()
        self._parts[number, 0] = part + 1

    def write(self, number: int, room: Room) -> WrittenParts:
        """Write a state and those around it."""
        self._make_room()
        about = self._about
        while True:
            first = about[kernel.PARTS] = len(room)
            about[kernel.EDGES] = room.n_edges
            self._order[0] = number
            arrays = self._register.arrays
            n = int(direct(kernel.write_states)(room.table_address(), *arrays, self._parts, self._order, about))
            if n >= 0:
                room.n_edges = int(about[kernel.EDGES])
                return WrittenParts(self._register, self._mode, first, self._order[:n].copy())
            if n == kernel.NO_ROOM:
                room.grow()
            else:
                for other in self._order[:-n].tolist():
                    self.note(other, room.part(self._register.expr(other), self._mode))

    def _make_room(self) -> None:
        n = len(self._register)
        if n > len(self._parts):
            grown = np.zeros((2 * n, 2), np.int32)
            grown[: len(self._parts)] = self._parts
            self._parts = grown
            self._order = np.zeros(2 * n, np.int32)
