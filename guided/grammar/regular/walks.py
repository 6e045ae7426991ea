"""Steps of several operands at once, over the ranges of bytes that none of them tells apart: rows for the kernels.

Operands are walked apart, each by derivatives of its own, which are few and remembered.  Their states are numbered, and
a kernel combines the numbers (`guided.kernels.lexing.product`); when it misses the row of a state, it is filled in
here.  One walk serves all questions, so a pattern that is compared with many others is read once; a range of bytes is
divided when the first state is met that tells its parts apart.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from guided.grammar.regular.any_text import text_states
from guided.grammar.regular.combinations import Program, RawEdges, UndecidedError, remembered_edges
from guided.grammar.regular.expr import ALL, EMPTY, Expr, Kind, concat, n_expressions
from guided.grammar.regular.least import least_length
from guided.kernels.jit import direct
from guided.kernels.lexing import product as kernel

Ints: TypeAlias = "NDArray[np.int32]"

MAX_NUMBERED = 20_000
"""Numbered operand states after which a new walk is begun; about half a KB each."""
MAX_OPS = 1 << 12
"""Operands and connectives of a combination."""
_USUAL = 16
"""Operands up to which a state counts as one; what it takes to go on from more grows with their number."""
FAR = 1 << 15
"""From where on it does not matter how far an end is; so many, as often as there may be operands, are not infinite."""
MAX_CELLS = 1 << 22
"""Numbers in the states of a space that is still made eight times as large: 128 MB."""
MOST_READ = 25_000
"""Alternatives of operands that are read for all states of a combination: 20 to 50 microseconds each."""
MOST_WALKED = 100_000
"""States from which on a search may read as much as it takes."""
MAX_TABLE = 1 << 26
"""The same for what the states lead to: 2 GB at most, of which nine tenths are never written to."""
FEW = 4096
"""States for which there is room at first; a power of two."""
MANY = 1 << 14
"""Room for states up to which a space is kept for further questions."""
MAX_SPACES = 16
"""Sets of states kept with a walk; 0.2 to 1 MB each."""
_CUTS = (*b' !"#-./0:@A[_`a{', 0x80)
"""Where patterns often tell bytes apart."""


class Automaton(NamedTuple):
    """All states of a combination that may lead on, from state 0."""

    table: Ints
    """``[state, range of bytes]``: where it leads, -1 for nowhere."""
    cuts: Ints
    """Where the ranges begin, ascending, 0 first; then 256."""
    operands: Ints
    """``[state, operand]``: what each stands for, by the numbers of the walk."""
    accepting: NDArray[np.bool_]


class Space:
    """States of a combination that have been met, and what is known of them."""

    def __init__(self, program: Program, capacity: int, width: int = 0, parting: int = 0) -> None:
        self.program = np.array(program.ops, np.int32)
        self.stack = np.zeros(len(program.ops) + 1, np.int64)
        self.states = np.zeros(program.size, np.int32)
        self.whole = np.zeros(program.size, np.int32)
        self.counters = np.zeros(kernel.N_COUNTERS, np.int64)
        self.counters[kernel.WANTED] = program.wanted
        self.counters[kernel.SEARCHING] = not width
        self.counters[kernel.PARTING] = parting
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

    def __init__(self, raw_edges: RawEdges) -> None:
        self.exprs: list[Expr] = []
        """What the numbers stand for."""
        self.numbers: dict[Expr, int] = {}
        self.taken = 0
        """States that were taken up the last time, or alternatives that were read, if they were more."""
        self.read = 0
        """Alternatives of operands that were read so far."""
        self._raw_edges = raw_edges
        self._texts = text_states(raw_edges)
        self._spaces: dict[tuple[Program, bool], Space] = {}
        self._cuts: list[int] = []
        self._rows = np.zeros((FEW, 0), np.int32)
        self._about = np.zeros((FEW, kernel.N_ABOUT), np.int32)
        self._ways = np.zeros(FEW, np.int32)
        """The alternatives of states, one after another."""
        self._n_ways = 0
        self._notes = _cells(self._about)
        self._cut({0, *_CUTS, *(at for row in self._texts.values() for low, high, _ in row for at in (low, high + 1))})
        for expr in (EMPTY, ALL):
            number = self.number(expr)
            self._rows[number] = number
        self._about[:2, kernel.AHEAD] = kernel.INFINITE, 0
        self._about[:2, kernel.AHEAD + 1] = 0, kernel.INFINITE
        self._about[:2, kernel.KNOWN] = 1

    def _cut(self, more: set[int]) -> None:
        """Let ranges of bytes begin at more places."""
        before = self._cuts
        self._cuts = sorted({*before, *more} - {256})
        """Where ranges of bytes begin, ascending, 0 first: wherever one of those met so far begins or has ended."""
        self._width = len(self._cuts)
        self._column = [-1] * 257
        for position, cut in enumerate([*self._cuts, 256]):
            self._column[cut] = position
        rows = np.zeros((self._rows.shape[0], self._width), np.int32)
        if before:
            # Those of no state yet are zeros, which are not copied.
            used = len(self.exprs)
            rows[:used] = self._rows[:used].take(_parents(before, self._cuts), axis=1)
        self._rows = rows
        self._cells = _cells(self._rows)

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
            if len(self.exprs) > self._about.shape[0]:
                self._grow()
            notes, at, ends = self._notes, kernel.N_ABOUT * found, expr.nullable
            notes[at + kernel.AHEAD] = min(least_length(expr), FAR)
            notes[at + kernel.ACCEPTS] = 0 if ends else kernel.INFINITE
            notes[at + kernel.ACCEPTS + 1] = kernel.INFINITE if ends else 0
            notes[at + kernel.COVERS] = cover
            notes[at + kernel.N_WAYS] = -(expr.kind is Kind.ALTERNATION or expr.kind is Kind.CONCAT)
        return found

    def _grow(self) -> None:
        for name in ("_rows", "_about"):
            old = getattr(self, name)
            new = np.zeros((2 * len(self.exprs), old.shape[1]), np.int32)
            new[: old.shape[0]] = old
            setattr(self, name, new)
        self._cells = _cells(self._rows)
        self._notes = _cells(self._about)

    def leads_on(self, program: Program, leaves: Sequence[Expr], limit: int, parting: bool = False) -> bool:
        """Does a combination of these hold any string?  `UndecidedError` when that takes ``limit`` states to tell.

        With ``parting`` alternatives of the operands of a conjunction are walked apart: there are never more states of
        them than a pattern is long, where there may be very many of what they are together.
        """
        if len(program.ops) > MAX_OPS:
            raise UndecidedError
        # Out of reach for questions that reading an operand may ask in turn.
        key, read = (program, parting), self.read
        space = self._spaces.pop(key, None) or Space(program, FEW, parting=int(parting))
        while (code := self._run(space, leaves, limit, _reads(limit))) == kernel.FULL:
            if space.pool.size > MAX_CELLS:
                code = kernel.SPENT
                break
            # Earlier searches may have filled it.
            n = space.pool.shape[0]
            space = Space(program, n if space.counters[kernel.ROUND] > 1 else _more(n, limit), parting=int(parting))
        self.taken = max(int(space.counters[kernel.TAKEN]), self.read - read)
        if code == kernel.SPENT:
            raise UndecidedError
        if space.pool.shape[0] <= MANY:
            if len(self._spaces) >= MAX_SPACES:
                self._spaces.clear()
            self._spaces[key] = space
        if code == kernel.FOUND:
            at = int(space.counters[kernel.AT])
            while at >= 0:
                space.marks[at, kernel.STATUS] = kernel.ALIVE
                at = int(space.marks[at, kernel.BEFORE])
            return True
        marks = space.marks[: space.count]
        marks[marks[:, kernel.SEEN] == space.counters[kernel.ROUND], kernel.STATUS] = kernel.DEAD
        return False

    def n_parted(self, program: Program, leaves: Sequence[Expr], most: int) -> int | None:
        """How many states a conjunction has where alternatives are walked apart; None if more than ``most``."""
        if len(program.ops) > MAX_OPS or program.wanted < 0:
            return None
        space = Space(program, FEW, parting=2)
        while (code := self._run(space, leaves, most, MOST_READ)) == kernel.FULL and space.pool.size <= MAX_CELLS:
            space = Space(program, _more(space.pool.shape[0], most), parting=2)
        return space.count if code == kernel.DONE else None

    def automaton(self, program: Program, leaves: Sequence[Expr], most: int, expressions: int) -> Automaton | None:
        """All states of a combination; None if they are too many, or take more new expressions."""
        if len(program.ops) > MAX_OPS:
            return None
        space = Space(program, FEW // 4, self._width)  # most are small, and tables wide
        while True:
            code = self._run(space, leaves, most, max(expressions, FEW), expressions)
            self.taken = int(space.counters[kernel.TAKEN])
            if code != kernel.FULL:
                break
            if space.pool.size > MAX_CELLS or space.table.size > MAX_TABLE:
                return None
            space = Space(program, _more(space.pool.shape[0], most), self._width)
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
        # Ranges that nothing here tells apart are one.
        table = space.table[: space.count]
        told = np.flatnonzero((table[:, 1:] != table[:, :-1]).any(axis=0)) + 1
        told = np.concatenate((np.zeros(1, np.intp), told))
        cuts = np.array([*self._cuts, 256], np.int32)
        return Automaton(table.take(told, axis=1), np.append(cuts[told], np.int32(256)), operands, stack[0])

    def _run(
        self, space: Space, leaves: Sequence[Expr], most: int, reads: int | None, expressions: int | None = None
    ) -> int:
        """Take up states until the kernel is done; spent, too, after so many ``reads``."""
        reads = None if reads is None else self.read + reads
        counters = space.counters
        counters[kernel.AT] = -1
        counters[kernel.TAKEN] = counters[kernel.WAITING] = 0
        counters[kernel.ROUND] += 1
        stop = None if expressions is None else n_expressions() + expressions
        counters[kernel.MOST] = most * _USUAL // max(space.states.size, _USUAL)
        space.states[:] = [self.number(leaf) for leaf in leaves]
        wanted = int(counters[kernel.WANTED]) if counters[kernel.PARTING] else 0
        self._part(space.states[:wanted].tolist())
        walk = _kernel()
        cuts = self._cuts
        while True:
            code = walk(
                self._rows, self._about, self._ways, space.program, space.stack, space.states, space.whole, space.pool,
                space.slots, space.marks, space.heap, space.table, counters,
            )  # fmt: skip
            if code != kernel.UNKNOWN:
                return code
            states = space.pool[counters[kernel.AT]]
            if stop is not None:
                # All that wait are taken up sooner or later.
                states = np.unique(space.pool[counters[kernel.TAKEN] : counters[kernel.COUNT]])
            if not self._learn(states.tolist(), stop, reads):
                return int(kernel.SPENT)
            if wanted:
                self._part(np.unique(self._rows[states[:wanted]]).tolist())
            if stop is not None and len(cuts) != self._width:
                space.table = space.table.take(_parents(cuts, self._cuts), axis=1)
                cuts = self._cuts

    def _part(self, numbers: Sequence[int]) -> None:
        """Number the alternatives of states."""
        for number in numbers:
            if self._notes[kernel.N_ABOUT * number + kernel.N_WAYS] >= 0:
                continue
            ways = [self.number(way) for way in _ways(self.exprs[number])]
            n = len(ways) if len(ways) > 1 else 0
            first = self._n_ways
            self._n_ways += n
            while self._n_ways > self._ways.size:
                self._ways = np.concatenate((self._ways, np.zeros_like(self._ways)))
            self._ways[first : first + n] = ways[:n]
            self._about[number, kernel.FIRST_WAY], self._about[number, kernel.N_WAYS] = first, n

    def _learn(self, numbers: Sequence[int], expressions: int | None, reads: int | None) -> bool:
        """Fill in the rows of states; ranges of bytes may be divided for that.

        False when there are more than so many ``expressions`` on the way, or were so many ``reads``: a thousand states
        may wait together, each of a hundred alternatives.
        """
        learnt: dict[int, list[tuple[int, int, int]]] = {}
        column, known = self._column, self.numbers
        more: set[int] = set()
        for number in numbers:
            if self._notes[kernel.N_ABOUT * number + kernel.KNOWN] or number in learnt:
                continue
            if (expressions is not None and n_expressions() > expressions) or (reads is not None and self.read > reads):
                return False
            spans = learnt[number] = []
            expr = self.exprs[number]
            self.read += len(expr.parts) if expr.kind is Kind.ALTERNATION else 1
            for low, high, target in remembered_edges(expr, self._raw_edges):
                stop = high + 1
                if column[low] < 0:
                    more.add(low)
                if column[stop] < 0:
                    more.add(stop)
                to = known.get(target)
                spans.append((low, stop, self.number(target) if to is None else to))
        if more:
            self._cut(more)
        column, cells, notes = self._column, self._cells, self._notes
        for number, spans in learnt.items():
            base = number * self._width
            for low, stop, to in spans:
                if to:
                    first, last = base + column[low], base + column[stop]
                    if last - first == 1:
                        cells[first] = to
                    else:
                        cells[first:last] = array("i", (to,)) * (last - first)
            notes[kernel.N_ABOUT * number + kernel.KNOWN] = 1
        return True


def _ways(expr: Expr) -> Iterator[Expr]:
    """The alternatives of a language, also where they have the same end."""
    if expr.kind is Kind.ALTERNATION:
        for part in cast("tuple[Expr, ...]", expr.parts):
            yield from _ways(part)
    elif expr.kind is Kind.CONCAT:
        head, tail = cast("tuple[Expr, Expr]", expr.parts)
        if head.kind is Kind.ALTERNATION:
            for way in _ways(head):
                yield concat(way, tail)
        else:
            yield expr
    else:
        yield expr


def _more(n: int, most: int) -> int:
    """Room for more states than ``n``: for ``most`` and those that wait where that is near, since all is done anew."""
    return max(8 * n, 1 << (2 * most).bit_length()) if most <= 64 * n else 8 * n


def _reads(limit: int) -> int | None:
    return None if limit >= MOST_WALKED else max(limit, FEW)


def _cells(table: Ints) -> memoryview:
    """A table row after row: its entries cost a third of what they cost through the array."""
    return table.reshape(-1).data


def _parents(before: Sequence[int], now: Sequence[int]) -> NDArray[np.intp]:
    """For each range of bytes the one that it was part of, by where they begin."""
    return np.searchsorted(np.array(before), np.array(now), "right") - 1


_walk: list[Walk] = []


def the_walk(raw_edges: RawEdges) -> Walk:
    """The walk in use, which knows the operands of earlier questions."""
    if not _walk or len(_walk[0].exprs) >= MAX_NUMBERED:
        _walk[:] = [Walk(raw_edges)]
    return _walk[0]


_direct: list[Callable[..., int]] = []


def _kernel() -> Callable[..., int]:
    if _direct:
        return _direct[0]
    found = direct(kernel.walk)
    if found is not kernel.walk:
        _direct.append(found)
    return found


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
