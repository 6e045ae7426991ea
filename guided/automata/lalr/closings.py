"""How many bytes are enough to end a text from a stack of an LALR parser, whatever matches owe: an upper bound.

A text that ends soon is put together from terminals in their shortest texts.  A terminal counts only if its match is
settled there: by what may come next, or by one ignored byte that is put behind it.  So the terminals can be counted one
by one, and the parser reads what is counted, since its tables have no conflicts: every item of a state can be completed
(Knuth, "On the translation of languages from left to right", 1965). Beside it, `guided.automata.lalr.stack_costs` is a
lower bound, and `guided.automata.endings.endings` exact, at a price that grammars of whole languages do not allow.
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Hashable, Iterable, Iterator
from functools import cached_property, reduce
from typing import cast

import numpy as np
from numpy.typing import NDArray

from guided.automata.endings.lexemes import Lexemes
from guided.automata.endings.obligations import Owed, Work
from guided.automata.lexer.lexer_state import LexerState
from guided.automata.lexer.ordered import OrderedLexer, OrderedState
from guided.grammar.lexing import LalrTables
from guided.kernels.data.layout import FAR

__all__ = ["ENDED", "Closings", "Rows", "item_costs"]

ENDED = -1
"""In the place of a nonterminal: the text may end here."""


class Closings:
    """Bytes that are enough, by lexer state to the end of its terminals, and by LALR states to what is below them."""

    def __init__(self, tables: LalrTables, ignored: frozenset[int], lexer: OrderedLexer) -> None:
        self._tables = tables
        self._ignored = ignored
        self._lexemes = Lexemes(Work(sys.maxsize))
        self._alive: dict[OrderedState, int] = {}
        contexts = [(context, lexer.start(context)) for context in dict.fromkeys(tables.accepts) if context]
        self._breaks, self._avoided = self._separators(contexts)
        firsts = {context: _bytes(state) & ~self._avoided for context, state in contexts}
        self._following = self._what_follows(firsts)
        self._terminals = self._price_terminals(contexts)

    def _separators(self, contexts: list[tuple[tuple[int, ...], OrderedState]]) -> tuple[int, int]:
        """The bytes that are an ignored terminal wherever they come, and those that may not follow such a byte."""
        breaks = avoided = 0
        for byte in b" \n\t":
            owed: set[Owed] = set()
            for _, state in contexts:
                target = next((target for low, high, target in state.edges() if low <= byte <= high), None)
                ends = [] if target is None else [exit_ for exit_ in target.exits if exit_.tag in self._ignored]
                if not ends:
                    break
                owed.add(self._lexemes.obligations.one(ends[0].obligation))
            else:
                if not any(each.violated_at_end for each in owed if each is not None):
                    breaks |= 1 << byte
                    avoided |= reduce(int.__or__, map(self._alive_on, owed), 0)
        return breaks, avoided

    def _alive_on(self, owed: Owed) -> int:
        """The bytes on which an obligation is not settled, as bits."""
        if owed is None:
            return 0
        if owed not in self._alive:
            self._alive[owed] = sum(
                ((1 << (high + 1)) - 1) & -(1 << low) for low, high, _ in self._lexemes.obligations.after(owed)
            )
        return self._alive[owed]

    def _what_follows(self, firsts: dict[tuple[int, ...], int]) -> dict[int, int]:
        """By terminal, the bytes with which a text may go on behind it, as bits; -1: behind an ignored one."""
        found: dict[int, int] = {-1: reduce(int.__or__, firsts.values(), 0)}
        for row in self._tables.shift:
            for terminal, target in row.items():
                found[terminal] = found.get(terminal, 0) | firsts.get(self._tables.accepts[target], 0)
        return found

    def _settled(self, terminal: int, owed: Owed) -> int:
        """Bytes that settle what a match of a terminal owes, `FAR` where none do."""
        alive = self._alive_on(owed)
        follows = self._following.get(-1 if terminal in self._ignored else terminal, 0)
        if not alive & follows and (owed is None or not owed.violated_at_end):
            return 0
        return 1 if self._breaks & ~alive else FAR

    def _price_terminals(self, contexts: list[tuple[tuple[int, ...], OrderedState]]) -> dict[int, int]:
        """Bytes that are enough for a terminal, in whichever lexer it is read."""
        most: dict[int, int] = {}
        for context, state in contexts:
            least = dict.fromkeys(context, FAR)
            for low, high, target in state.edges():
                begins = ((1 << (high + 1)) - 1) & -(1 << low) & ~self._avoided
                if begins:
                    for terminal, cost in self._ends(target, None).items():
                        least[terminal] = min(least.get(terminal, FAR), cost + 1)
            for terminal, cost in least.items():
                most[terminal] = max(cost, most.get(terminal, 0))
        return {terminal: cost for terminal, cost in most.items() if cost < FAR and terminal not in self._ignored}

    def _ends(self, state: OrderedState, owed: Owed) -> dict[int, int]:
        """Bytes that are enough to end a terminal from inside, and to settle its match; those that can be."""
        found: dict[int, int] = {}
        for (terminal, left), distance in self._exits(state, owed):
            cost = distance + self._settled(terminal, left)
            found[terminal] = min(found.get(terminal, FAR), cost)
        return {terminal: cost for terminal, cost in found.items() if cost < FAR}

    def _exits(self, state: OrderedState, owed: Owed) -> Iterator[tuple[tuple[int, Owed], int]]:
        """How a match can end here or after more bytes, what is owed then, and how many they are."""
        obligations = self._lexemes.obligations
        for exit_ in state.exits:
            yield (exit_.tag, obligations.both(owed, obligations.one(exit_.obligation))), 0
        yield from self._lexemes.exits(state, owed).items()

    def exits(self, state: OrderedState, obligations: Iterable[OrderedState]) -> Hashable:
        """What `rest` looks at, of whichever grammar with these terminals."""
        return frozenset(self._exits(state, self._joined(obligations)))

    def rest(self, state: OrderedState, obligations: Iterable[OrderedState]) -> list[tuple[int, int]]:
        """From a lexer state, the terminals that can be ended, with the bytes that are enough, the nearest first."""
        return sorted(self._ends(state, self._joined(obligations)).items(), key=lambda end: (end[1], end[0]))

    def _joined(self, obligations: Iterable[OrderedState]) -> Owed:
        one, both = self._lexemes.obligations.one, self._lexemes.obligations.both
        return reduce(both, map(one, obligations), cast(Owed, None))

    @cached_property
    def _items(self) -> tuple[list[dict[tuple[int, int], int]], dict[int, int]]:
        return item_costs(self._tables, self._terminals)

    def options(self, below: int, top: int) -> list[tuple[int, int, int]]:
        """How a state above another (-1: at the bottom) can be left, each as ``(nonterminal, states popped, bytes)``.

        What is read leaves a nonterminal in the place of at least two states, so the stack gets lower, or `ENDED`.
        """
        items, names = self._items
        tables = self._tables
        if below < 0:
            starts = [
                names[name] for name, target in tables.goto[top].items() if target == tables.final and name in names
            ]
            return [(ENDED, 0, min(starts))] if starts else []
        found: dict[tuple[int, int], int] = {}
        distance = {top: 0}
        queue = [(0, top)]
        while queue:
            cost, at = heapq.heappop(queue)
            if cost > distance[at]:
                continue
            if at == tables.final:
                found[ENDED, 0] = min(cost, found.get((ENDED, 0), cost))
            for (name, read), more in items[at].items():
                if read > 1:
                    found[name, read] = min(cost + more, found.get((name, read), FAR))
                elif name in tables.goto[below]:
                    target = tables.goto[below][name]
                    if cost + more < distance.get(target, FAR):
                        distance[target] = cost + more
                        heapq.heappush(queue, (cost + more, target))
        return [(name, read, cost) for (name, read), cost in found.items() if cost < FAR]


class Rows:
    """Rows of numbers for kernels, one behind the other: row ``i`` is ``numbers[first[i] : first[i + 1]]``.

    The arrays are replaced when they grow; rows stay what they are.
    """

    def __init__(self) -> None:
        self.first: NDArray[np.int32] = np.zeros(64, np.int32)
        self.numbers: NDArray[np.int64] = np.zeros(256, np.int64)
        self._known: dict[tuple[int, ...], int] = {}

    def add(self, row: tuple[int, ...]) -> int:
        """The index of a row, which is there once."""
        found = self._known.get(row)
        if found is None:
            found = self._known[row] = len(self._known)
            begin = int(self.first[found])
            if found + 2 > self.first.size:
                self.first = np.concatenate([self.first, np.zeros_like(self.first)])
            while begin + len(row) > self.numbers.size:
                self.numbers = np.concatenate([self.numbers, np.zeros_like(self.numbers)])
            self.numbers[begin : begin + len(row)] = row
            self.first[found + 1] = begin + len(row)
        return found


def _bytes(state: LexerState) -> int:
    """The bytes that a lexer state can be left by, as bits."""
    return sum(((1 << (high + 1)) - 1) & -(1 << low) for low, high, _ in state.edges())


def item_costs(
    tables: LalrTables, terminals: dict[int, int]
) -> tuple[list[dict[tuple[int, int], int]], dict[int, int]]:
    """For each state the least to the end of its items, as ``{(nonterminal, symbols already read): bytes}``.

    And the least for each nonterminal, from what each terminal takes; those that cannot be read are left out.
    """
    before: list[list[tuple[int, int, bool]]] = [[] for _ in tables.shift]
    for state, (shift, goto) in enumerate(zip(tables.shift, tables.goto, strict=True)):
        for symbol, target in shift.items():
            before[target].append((state, symbol, True))
        for symbol, target in goto.items():
            before[target].append((state, symbol, False))
    names: dict[int, int] = {name: 0 for name, length in tables.rules if not length}
    while True:
        found: list[dict[tuple[int, int], int]] = [{} for _ in tables.shift]
        again = dict(names)
        for state, row in enumerate(tables.reduce):
            for rule in set(row.values()):
                name, length = tables.rules[rule]
                layer = {state: 0}
                for read in range(length, 0, -1):
                    earlier: dict[int, int] = {}
                    for at, cost in layer.items():
                        found[at][name, read] = min(cost, found[at].get((name, read), cost))
                        for other, symbol, is_terminal in before[at]:
                            price = (terminals if is_terminal else names).get(symbol, FAR)
                            if cost + price < earlier.get(other, FAR):
                                earlier[other] = cost + price
                    layer = earlier
                if length:
                    for at, cost in layer.items():
                        if name in tables.goto[at]:
                            again[name] = min(cost, again.get(name, cost))
        if again == names:
            return found, names
        names = again
