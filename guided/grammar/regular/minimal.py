"""Minimal automata as expressions: one register of states in which each language stands once.

An automaton is placed in the register by a kernel (`guided.kernels.lexing.minimal`), a state becomes an expression when
it is looked at.  `guided.grammar.regular.condensed` says what is made of what.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from guided.collection import untrack
from guided.grammar.regular.expr import (
    ALL,
    EPSILON,
    Edge,
    Expr,
    Kind,
    Trie,
    concat,
    literal,
    switch,
    untrack_edges,
)
from guided.kernels.data.pages import gradual_zeros
from guided.kernels.lexing import minimal as kernel

Ints: TypeAlias = "NDArray[np.int32]"

MAX_EDGES = 4_000_000
"""Edges after which a new register is begun: 24 MB."""

MOST_STATES = 1 << 16
"""States that there is room for at first, and four edges and four slots for each: eight times those of eight thousand
schemas.  Memory that is not written to is not taken, and placing all of them anew took 8 ms in the middle of a mask."""


class Lengths(NamedTuple):
    """How long the texts of a state are, in characters that begin: bytes that continue one do not count."""

    near: int
    """The length of a shortest text."""
    around: int | None
    """A length from which on there are texts of every length; None where none was seen."""
    infinite: bool
    text: Expr | None
    """Any characters, from the same place in a character, if all texts are made of them."""


class Register:
    """States of minimal automata, and the expressions that they are."""

    def __init__(self) -> None:
        self.numbers: dict[Expr, int] = {}
        """The states of the expressions that have been made."""
        self._exprs: dict[int, Expr] = {}
        room = 4 * MOST_STATES
        self._states = gradual_zeros(4 * kernel.N_FIELDS * MOST_STATES).view(np.int32).reshape(-1, kernel.N_FIELDS)
        self._edges = gradual_zeros(12 * room).view(np.int32).reshape(-1, 3)
        self._slots = gradual_zeros(4 * room).view(np.int32)
        self._digests = gradual_zeros(8 * room).view(np.int64)
        self._counters = np.zeros(2, np.int64)
        for expr, edges in ((EPSILON, []), (ALL, [0])):
            self.seed([expr], [[(0, 255, i) for i in edges]])

    def __len__(self) -> int:
        return int(self._counters[kernel.N_STATES])

    @property
    def is_full(self) -> bool:
        """Should another be begun?"""
        return int(self._counters[kernel.N_EDGES]) > MAX_EDGES

    def seed(self, exprs: Sequence[Expr], rows: Sequence[Sequence[tuple[int, int, int]]], texts: bool = False) -> None:
        """Place states that are expressions already, with their edges; all are reached from the first.

        ``texts``: they are any text, from some place in a character.
        """
        cuts = sorted({0, 256} | {at for row in rows for low, high, _ in row for at in (low, high + 1)})
        index = {cut: i for i, cut in enumerate(cuts)}
        table = np.full((len(rows), len(cuts) - 1), -1, np.int32)
        for state, row in enumerate(rows):
            for low, high, target in row:
                table[state, index[low] : index[high + 1]] = target
        ends = np.array([expr.nullable for expr in exprs], np.bool_)
        everyone = np.arange(len(exprs), dtype=np.int32)
        found = self.place(table, ends, everyone, everyone, np.array(cuts, np.int32), np.full(len(exprs), -1, np.int32))
        for expr, number in zip(exprs, found.tolist(), strict=True):
            self._exprs[number] = expr
            self.numbers[expr] = number
            if texts:
                self._states[number, kernel.TEXT] = number

    def place(
        self, table: Ints, accepting: NDArray[np.bool_], labels: Ints, some: Ints, cuts: Ints, texts: Ints
    ) -> Ints:
        """The states, by label, of an automaton without equal states; see the kernel."""
        before, edges = self._counters.tolist()
        states = before + some.size
        self._grow(states, edges + some.size * table.shape[1])
        numbers = np.empty(some.size, np.int32)
        kernel.place(
            table, accepting, labels, some, cuts, texts, numbers, self._states, self._edges, self._slots,
            self._digests, self._counters, np.zeros((8, some.size), np.int64),
        )  # fmt: skip
        return numbers

    def _grow(self, states: int, edges: int) -> None:
        for name, needed in (("_states", states + 1), ("_edges", edges)):
            old = getattr(self, name)
            if old.shape[0] < needed:
                new = np.zeros((2 * needed, old.shape[1]), np.int32)
                new[: old.shape[0]] = old
                setattr(self, name, new)
        if 2 * states > self._slots.size:
            taken = np.flatnonzero(self._slots)
            pairs = list(zip(self._slots[taken].tolist(), self._digests[taken].tolist(), strict=True))
            size = 1 << (4 * states).bit_length()
            self._slots = np.zeros(size, np.int32)
            self._digests = np.zeros(size, np.int64)
            for number, digest in pairs:
                slot = digest & (size - 1)
                while self._slots[slot]:
                    slot = (slot + 1) & (size - 1)
                self._slots[slot], self._digests[slot] = number, digest

    def lengths(self, number: int) -> Lengths:
        """How long the texts of a state are."""
        _, _, near, around, infinite, text, *_ = self._states[number].tolist()
        return Lengths(
            near, None if around == kernel.NEVER else around, bool(infinite), None if text < 0 else self.expr(text)
        )

    def is_endless(self, number: int) -> bool:
        """Has a state endlessly many texts, and every state that it leads to?"""
        return bool(self._states[number, kernel.ENDLESS])

    def text(self, expr: Expr) -> int:
        """The state of any text that an expression is part of; -1 where none is known."""
        number = self.numbers.get(expr)
        return -1 if number is None else int(self._states[number, kernel.TEXT])

    def row(self, number: int) -> list[tuple[int, int, int]]:
        """The edges of a state."""
        start, stop = self._states[number : number + 2, kernel.FIRST].tolist()
        return [(low, high, target) for low, high, target in self._edges[start:stop].tolist()]

    def edges(self, number: int) -> tuple[Edge, ...]:
        """The edges of a state, as expressions."""
        return tuple([(low, high, self.expr(target)) for low, high, target in self.row(number)])

    def expr(self, number: int) -> Expr:
        """The language of a state."""
        found = self._exprs.get(number)
        return self._make(number) if found is None else found

    def _make(self, number: int) -> Expr:
        # What begins as a literal is one, so that state tables write it at once.
        begun: list[tuple[int, int]] = []
        row = self.row(number)
        while len(row) == 1 and row[0][0] == row[0][1] and not self._states[number, kernel.END]:
            begun.append((number, row[0][0]))
            number = row[0][2]
            if number in self._exprs:
                break
            row = self.row(number)
        found = self._exprs.get(number)
        if found is None:
            found = self._keep(number, self._state(number, row))
        for state, byte in reversed(begun):
            found = self._keep(state, concat(literal(bytes([byte])), found))
        return found

    def _state(self, number: int, row: list[tuple[int, int, int]]) -> Expr:
        ends = bool(self._states[number, kernel.END])
        if self._states[number, kernel.INFINITE]:
            return MinimalState(self, number, ends)
        if not ends and all(self._exprs.get(target) is EPSILON for _, _, target in row):
            return switch([(low, high, EPSILON) for low, high, _ in row], False)
        return FiniteState(self, number, ends)

    def _keep(self, number: int, expr: Expr) -> Expr:
        found = self._exprs.setdefault(number, expr)
        self.numbers[found] = number
        return found


class MinimalState(Expr):
    """A recursion whose body is made when it is looked at."""

    __slots__ = ("_number", "_register")

    def __init__(self, register: Register, number: int, nullable: bool) -> None:
        super().__init__(Kind.RECURSION, (), nullable, True)
        del self.parts, self.edges
        self.least = max(register.lengths(number).near, not nullable)
        self._register, self._number = register, number

    def __getattr__(self, name: str) -> tuple[object, ...]:
        if name == "edges":
            row = self._register.edges(self._number)
            untrack_edges(row)
            self.edges = row
            return row
        if name == "parts":
            self.parts = parts = (switch(self.edges or (), self.nullable),)
            untrack(parts)
            return parts
        raise AttributeError(name)


class FiniteState(Trie):
    """As a trie of words, for states of finite languages."""

    __slots__ = ("_number", "_register")

    def __init__(self, register: Register, number: int, nullable: bool) -> None:
        super().__init__(nullable, register.lengths(number).near)
        self._register, self._number = register, number

    def branches(self) -> tuple[Edge, ...]:
        """As the register has them."""
        return self._register.edges(self._number)
