"""The least that it takes to end the text from each continuation, in one unit; follows a machine's tables."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from guided.automata.costs import FAR, RuleCosts
from guided.automata.distances import shortest
from guided.automata.graph import RuleGraph
from guided.automata.states import StateTable
from guided.kernels.costs import price
from guided.kernels.layout import N_SETS, Machine
from guided.kernels.tokenize import fewest_tokens
from guided.vocab.vocabulary import Vocabulary

__all__ = ["FAR", "Prices", "TerminalTokens", "spell"]


def spell(vocabulary: Vocabulary, text: bytes) -> list[int]:
    """The fewest tokens that join to ``text``; empty when none do."""
    trie = vocabulary.trie
    data = np.frombuffer(text, np.uint8)
    room = np.empty((3, data.size + 1), np.int32)
    n_tokens: int = fewest_tokens(trie.byte, trie.end, trie.token_offset, trie.token_ids, data, room)
    found: list[int] = room[0, : max(n_tokens, 0)].tolist()
    return found


class TerminalTokens:
    """Tokens that are enough for a terminal, by the lexer state in which it begins: those of its shortest text."""

    def __init__(self, vocabulary: Vocabulary, states: StateTable) -> None:
        self._vocabulary = vocabulary
        self._states = states
        self._found: dict[int, int] = {}

    def __call__(self, state: int) -> int:
        """The number of tokens, `FAR` where the vocabulary cannot spell the text."""
        found = self._found.get(state)
        if found is None:
            found = self._found[state] = len(spell(self._vocabulary, shortest(self._states, state))) or FAR
        return found


class Prices:
    """``cost[k]`` for each continuation ``k``, in the unit of ``terminal``, which prices a terminal's start state."""

    def __init__(self, graph: RuleGraph, terminal: Callable[[int], int]) -> None:
        self._graph = graph
        self._terminal = terminal
        self._rules: RuleCosts | None = None
        self._nodes = np.full(256, -1, np.int32)
        self.priced = 0
        """Continuations priced so far."""
        self.cost: NDArray[np.int32] = np.zeros(256, np.int32)

    def update(self, tables: Machine, counters: NDArray[np.int64]) -> None:
        """Price all continuations made so far."""
        if self._rules is None:
            self._rules = RuleCosts(self._graph, self._terminal)
        wanted = int(counters[N_SETS])
        if wanted > self.cost.size:
            self.cost = np.concatenate([self.cost, np.zeros(2 * wanted - self.cost.size, np.int32)])
        while True:
            node = int(price(tables, counters, self._nodes, self.cost, self.priced))
            if node < 0:
                self.priced = wanted
                return
            if node >= self._nodes.size:
                self._nodes = np.concatenate([self._nodes, np.full(node + 64, -1, np.int32)])
            self._nodes[node] = self._rules.node(node)
