"""The fewest bytes that texts take to their ends, from states and behind terminals."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from guided.automata.lexer.distances import minimum, minimum_owing
from guided.automata.lexer.states import StateTable
from guided.automata.rules.costs import RuleCosts
from guided.automata.rules.graph import RuleGraph
from guided.kernels.data.layout import N_SETS, Machine
from guided.kernels.parsing.costs import price

__all__ = ["ByteCosts"]


class ByteCosts:
    """Prices of the continuations of one machine, whose tables and counters are arguments: they are replaced."""

    def __init__(self, graph: RuleGraph, states: StateTable, counters: NDArray[np.int64]) -> None:
        terminal = partial(minimum, states)
        self._states = states
        self._counters = counters
        self._rules = RuleCosts(graph, terminal, lambda states: list(map(terminal, states)))
        self._nodes = np.full(256, -1, np.int32)
        self._priced = 0
        """Continuations priced so far."""
        self._cost: NDArray[np.int32] = np.zeros(256, np.int32)

    def to_end(self, tables: Machine, threads: list[tuple[int, int, int]]) -> int:
        """Fewest bytes after which the text may end; obligations aside where terminals always settle."""
        return min(
            self.of(tables, continuation) + (minimum_owing(self._states, inside, obligation) if inside else 0)
            for inside, continuation, obligation in threads
        )

    def of(self, tables: Machine, continuation: int) -> int:
        """Fewest bytes from a continuation on."""
        if continuation >= self._priced:
            self._update(tables)
        return int(self._cost[continuation])

    def _update(self, tables: Machine) -> None:
        """Price all continuations made so far."""
        wanted = int(self._counters[N_SETS])
        if wanted > self._cost.size:
            self._cost = np.concatenate([self._cost, np.zeros(2 * wanted - self._cost.size, np.int32)])
        while True:
            node = int(price(tables, self._counters, self._nodes, self._cost, self._priced))
            if node < 0:
                self._priced = wanted
                return
            if node >= self._nodes.size:
                self._nodes = np.concatenate([self._nodes, np.full(node + 64, -1, np.int32)])
            self._nodes[node] = self._rules.node(node)
