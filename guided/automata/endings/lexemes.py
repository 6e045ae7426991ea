"""How the terminal in progress may end while earlier obligations are kept: exits of pairs, with fewest bytes.

A pair is a state of an ordered lexer and an obligation (None: nothing is owed).  A text leads from a pair to an exit:
which terminal ends, and what is owed behind it, the new match's own debt included.  There are finitely many pairs.  The
first question about one explores all pairs that it reaches, and the results are kept.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from guided.automata.endings.obligations import Obligations, Owed, Work
from guided.automata.lexer.ordered import OrderedState

Pair: TypeAlias = "tuple[OrderedState, Owed]"
Exits: TypeAlias = "Mapping[tuple[int, Owed], int]"
"""Fewest bytes to each end: the terminal's index, and what is owed then."""


class Lexemes:
    """The exits of pairs; grows with what is asked."""

    def __init__(self, work: Work, owing: bool = True) -> None:
        """Without ``owing`` whatever matches owe is taken to be settled."""
        self._work = work
        self._owing = owing
        self.obligations = Obligations(work)
        self._exits: dict[Pair, dict[tuple[int, Owed], int]] = {}
        self._read: set[OrderedState] = set()
        """The states whose edges were found."""

    def exits(self, state: OrderedState, owed: Owed) -> Exits:
        """The exits that at least one more byte leads to."""
        found = self._exits.get((state, owed))
        if found is None:
            self._explore((state, owed))
            found = self._exits[state, owed]
        return found

    def __iter__(self) -> Iterator[Exits]:
        """Those of all pairs that were looked at."""
        return iter(self._exits.values())

    def _explore(self, start: Pair) -> None:
        before: dict[Pair, list[Pair]] = {start: []}
        queue = [start]
        for pair in queue:
            for target in self._targets(pair):
                if target not in before:
                    before[target] = []
                    queue.append(target)
                before[target].append(pair)
        # Backwards from where matches end, nearest first; what lies behind known pairs is known.
        ways: list[tuple[int, int, Pair, tuple[int, Owed]]] = []
        order = itertools.count()

        def reached(pair: Pair, exit_: tuple[int, Owed], distance: int) -> None:
            for earlier in before[pair]:
                if distance + 1 < self._exits[earlier].get(exit_, distance + 2):
                    self._work.spend(1)
                    self._exits[earlier][exit_] = distance + 1
                    heapq.heappush(ways, (distance + 1, next(order), earlier, exit_))

        known = {pair: self._exits[pair] for pair in queue if pair in self._exits}
        fresh = [pair for pair in queue if pair not in known]
        self._exits.update((pair, {}) for pair in fresh)
        for pair in queue:
            for exit_ in self._ends(pair):
                reached(pair, exit_, 0)
        for pair, exits in known.items():
            for exit_, distance in exits.items():
                reached(pair, exit_, distance)
        while ways:
            distance, _, pair, exit_ = heapq.heappop(ways)
            if distance == self._exits[pair][exit_]:
                reached(pair, exit_, distance)

    def _targets(self, pair: Pair) -> Iterator[Pair]:
        if pair in self._exits:
            return
        state, owed = pair
        edges = state.edges()
        if state not in self._read:
            self._read.add(state)
            self._work.spend(state.width)
        self._work.spend(1 + len(edges) // 4)
        if owed is None:
            for target in dict.fromkeys(target for _, _, target in edges):
                yield target, None
            return
        rivals = list(self.obligations.after(owed))
        self._work.spend(len(rivals))
        found: dict[Pair, None] = {}
        at = 0
        for low, high, target in edges:
            while at < len(rivals) and rivals[at][1] < low:
                at += 1
            here, free = at, low
            while here < len(rivals) and rivals[here][0] <= high:
                first, last, rival = rivals[here]
                if first > free:
                    found[target, None] = None
                if rival is not None:
                    found[target, rival] = None
                free = last + 1
                here += 1
            if free <= high:
                found[target, None] = None
        yield from found

    def _ends(self, pair: Pair) -> list[tuple[int, Owed]]:
        """The matches that end where a pair is reached, with all that is owed behind them."""
        state, owed = pair
        if not self._owing:
            return [(exit_.tag, None) for exit_ in state.exits]
        both, one = self.obligations.both, self.obligations.one
        return [(exit_.tag, both(owed, one(exit_.obligation))) for exit_ in state.exits]
