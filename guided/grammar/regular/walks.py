"""Steps of several operands at once, over the ranges of bytes that none of them tells apart: rows for the kernels.

Operands are walked apart, each by derivatives of its own, which are few and remembered.  Their states are numbered, and
a kernel combines the numbers (`guided.kernels.product`); when it misses the row of a state, it is filled in here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from guided.grammar.regular.any_text import text_states
from guided.grammar.regular.expr import ALL, EMPTY, Expr, Kind, n_expressions
from guided.grammar.regular.least import least_length
from guided.grammar.regular.product import Program, RawEdges, UndecidedError, boundaries, remembered_edges
from guided.kernels import product as kernel

Ints: TypeAlias = "NDArray[np.int32]"

MAX_WALKS = 4
"""Walks whose rows are kept for questions about what is left of their operands."""
MAX_NUMBERED = 10_000
"""Numbered operand states after which a walk is not used for further questions; about 1 KB each."""
MAX_OPS = 1 << 12
"""Operands and connectives of a combination."""
FAR = 1 << 15
"""From where on it does not matter how far an end is; so many, as often as there may be operands, are not infinite."""
MAX_CELLS = 1 << 22
"""Numbers in the states of a space that is still made eight times as large: 128 MB."""
FEW = 1024
"""States for which there is room at first; a power of two."""
MANY = 1 << 16
"""Room for states from which on a space is not kept for further questions."""
MAX_SPACES = 8
"""Sets of states kept with a walk."""

_walks: deque[Walk] = deque(maxlen=MAX_WALKS)


class Automaton(NamedTuple):
    """All states of a combination that may lead on, from state 0."""

    table: Ints
    """``[state, range of bytes]``: where it leads, -1 for nowhere."""
    operands: Ints
    """``[state, operand]``: what each stands for, by the numbers of the walk."""
    accepting: NDArray[np.bool_]


class Space:
    """States of a combination that have been met, and what is known of them."""

    def __init__(self, program: Program, capacity: int, width: int = 0) -> None:
        self.program = np.array(program.ops, np.int32)
        self.stack = np.zeros(len(program.ops) + 1, np.int64)
        self.states = np.zeros(program.size, np.int32)
        self.counters = np.zeros(kernel.N_COUNTERS, np.int64)
        self.counters[kernel.WANTED] = program.wanted
        self.counters[kernel.SEARCHING] = not width
        self.pool = np.empty((capacity, program.size), np.int32)
        self.slots = np.zeros(2 * capacity, np.int32)
        self.marks = np.empty((capacity, 3), np.int32)
        self.heap = np.empty(1 if width else capacity, np.int64)
        self.table = np.empty((capacity, width), np.int32)

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.counters[kernel.COUNT])


class Walk:
    """The states of operands, numbered: 0 is the empty language, 1 that of all bytes."""

    def __init__(self, cuts: Sequence[int], raw_edges: RawEdges) -> None:
        self.cuts = np.array([*cuts, 256], np.int32)
        """Where ranges of bytes begin, ascending, 0 first; then the end."""
        self.exprs: list[Expr] = []
        """What the numbers stand for."""
        self.numbers: dict[Expr, int] = {}
        """The expressions that tell no more bytes apart: the operands, and all that was met."""
        self._width = len(cuts)
        self._index = {cut: position for position, cut in enumerate([*cuts, 256])}
        self._raw_edges = raw_edges
        self._rows = np.zeros((64, self._width), np.int32)
        self._about = np.zeros((64, 6), np.int32)
        self._fresh: list[tuple[int, int, bool, int]] = []
        self._texts = text_states(raw_edges)
        self._spaces: dict[Program, Space] = {}
        for expr in (EMPTY, ALL):
            number = self.number(expr)
            self._rows[number] = number
        self._write_fresh()
        self._about[:2, kernel.AHEAD] = kernel.INFINITE, 0
        self._about[:2, kernel.AHEAD + 1] = 0, kernel.INFINITE
        self._about[:2, kernel.KNOWN] = 1

    def tells_apart(self, cuts: set[int]) -> bool:
        """Are these among the places where ranges begin?"""
        return self._index.keys() >= cuts

    def number(self, expr: Expr) -> int:
        """The number of a state of an operand."""
        found = self.numbers.get(expr)
        if found is None:
            if expr.inhabited is False and self.exprs:
                return 0
            found = self.numbers[expr] = len(self.exprs)
            self.exprs.append(expr)
            cover = found
            if expr.kind is Kind.ALTERNATION:
                # What looks for a pattern anywhere ends in such states, where it is any text and something else.
                for part in cast("tuple[Expr, ...]", expr.parts):
                    if part in self._texts:
                        cover = self.number(part)
            self._fresh.append((found, min(least_length(expr), FAR), expr.nullable, cover))
        return found

    def _write_fresh(self) -> None:
        """Put what is known of new numbers into the arrays that kernels read."""
        if not self._fresh:
            return
        if len(self.exprs) > self._rows.shape[0]:
            for name in ("_rows", "_about"):
                old = getattr(self, name)
                new = np.zeros((2 * len(self.exprs), old.shape[1]), np.int32)
                new[: old.shape[0]] = old
                setattr(self, name, new)
        numbers, least, nullable, covers = np.array(self._fresh, np.int32).T
        self._about[numbers, kernel.AHEAD] = least
        self._about[numbers, kernel.ACCEPTS] = kernel.INFINITE * (1 - nullable)
        self._about[numbers, kernel.ACCEPTS + 1] = kernel.INFINITE * nullable
        self._about[numbers, kernel.COVERS] = covers
        self._fresh.clear()

    def leads_on(self, program: Program, leaves: Sequence[Expr], limit: int) -> bool:
        """Does a combination of these hold any string?  `UndecidedError` when that takes ``limit`` states to tell."""
        if len(program.ops) > MAX_OPS:
            raise UndecidedError
        if len(self._spaces) == MAX_SPACES and program not in self._spaces:
            self._spaces.clear()
        space = self._spaces.get(program)
        if space is None or space.count == space.pool.shape[0]:
            space = Space(program, FEW)
        while (code := self._run(space, leaves, limit)) == kernel.FULL:
            if space.pool.size > MAX_CELLS:
                code = kernel.SPENT
                break
            space = Space(program, 8 * space.pool.shape[0])
        if code == kernel.SPENT:
            self._spaces.pop(program, None)
            raise UndecidedError
        if space.pool.shape[0] <= MANY:
            self._spaces[program] = space
        if code == kernel.FOUND:
            at = int(space.counters[kernel.AT])
            while at >= 0:
                space.marks[at, kernel.STATUS] = kernel.ALIVE
                at = int(space.marks[at, kernel.BEFORE])
            return True
        marks = space.marks[: space.count]
        marks[marks[:, kernel.SEEN] == space.counters[kernel.ROUND], kernel.STATUS] = kernel.DEAD
        return False

    def automaton(self, program: Program, leaves: Sequence[Expr], most: int, expressions: int) -> Automaton | None:
        """All states of a combination; None if they are too many, or take more new expressions."""
        if len(program.ops) > MAX_OPS:
            return None
        space = Space(program, FEW, self._width)
        while (code := self._run(space, leaves, most, expressions)) == kernel.FULL:
            if max(space.pool.size, space.table.size) > MAX_CELLS:
                return None
            space = Space(program, 8 * space.pool.shape[0], self._width)
        if code == kernel.SPENT:
            return None
        operands = space.pool[: space.count]
        ends = self._about[:, kernel.ACCEPTS] == 0
        stack: list[NDArray[np.bool_]] = []
        for op in program.ops:
            if op >= 0:
                stack.append(ends[operands[:, op >> 1]] == bool(op & 1))
            else:
                n = -op >> 1
                stack[-n:] = [(np.logical_and if -op & 1 else np.logical_or).reduce(stack[-n:])]
        return Automaton(space.table[: space.count], operands, stack[0])

    def _run(self, space: Space, leaves: Sequence[Expr], most: int, expressions: int | None = None) -> int:
        """Take up states until the kernel is done."""
        counters = space.counters
        counters[kernel.AT] = -1
        counters[kernel.TAKEN] = counters[kernel.WAITING] = 0
        counters[kernel.ROUND] += 1
        stop = None if expressions is None else n_expressions() + expressions
        counters[kernel.MOST] = most
        space.states[:] = [self.number(leaf) for leaf in leaves]
        self._write_fresh()
        while True:
            code = int(
                kernel.walk(
                    self._rows, self._about, space.program, space.stack, space.states, space.pool, space.slots,
                    space.marks, space.heap, space.table, counters,
                )
            )  # fmt: skip
            if code != kernel.UNKNOWN:
                return code
            if stop is not None and n_expressions() > stop:
                return int(kernel.SPENT)
            states = space.pool[counters[kernel.AT]]
            if stop is not None:
                # All that wait are taken up sooner or later.
                states = np.unique(space.pool[counters[kernel.TAKEN] : counters[kernel.COUNT]])
                states = states[self._about[states, kernel.KNOWN] == 0]
            self._learn(states.tolist())

    def _learn(self, numbers: list[int]) -> None:
        """Fill in the rows of states."""
        rows: dict[int, list[int]] = {}
        for number in numbers:
            if number not in rows and not self._about[number, kernel.KNOWN]:
                row = rows[number] = [0] * self._width
                for low, high, target in remembered_edges(self.exprs[number], self._raw_edges):
                    first, last = self._index[low], self._index[high + 1]
                    row[first:last] = [self.number(target)] * (last - first)
        self._write_fresh()
        for number, row in rows.items():
            self._rows[number] = row
            self._about[number, kernel.KNOWN] = 1


def walk_of(leaves: Sequence[Expr], raw_edges: RawEdges) -> Walk | None:
    """A walk that knows these operands, an earlier one if there is one; None for operands not read byte by byte."""
    for walk in _walks:
        if walk.numbers.keys() >= set(leaves) and len(walk.exprs) < MAX_NUMBERED:
            return walk
    cuts: set[int] = {0}
    for leaf in leaves:
        found = boundaries(leaf)
        if found is None:
            return None
        cuts |= found
    cuts.discard(256)
    for walk in _walks:
        if walk.tells_apart(cuts) and len(walk.exprs) < MAX_NUMBERED:
            return walk
    walk = Walk(sorted(cuts), raw_edges)
    _walks.appendleft(walk)
    return walk


def merged(table: Ints, accepting: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Labels of states, the same for equal ones and -1 for those that lead nowhere; and a state of each label."""
    n = table.shape[0]
    # What leads all states to the same need be looked at once; nowhere is a state that leads to itself.
    columns = {column.tobytes(): column for column in np.ascontiguousarray(table.T)}
    arrows = np.full((len(columns), n + 1), n, np.int32)
    arrows[:, :n] = list(columns.values())
    arrows[arrows < 0] = n
    ends = np.append(accepting, False)
    labels, some = np.empty(n + 1, np.int32), np.empty(n + 1, np.int32)
    room = np.empty((15, arrows.size + n + 2), np.int32)
    count = kernel.merge(arrows, ends, labels, some, room)
    nowhere = int(labels[n])
    kept = np.arange(count, dtype=np.int32)
    kept[nowhere:] -= 1
    kept[nowhere] = -1
    return kept[labels[:n]], np.delete(some[:count], nowhere)
