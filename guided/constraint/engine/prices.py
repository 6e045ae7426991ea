"""What terminals take in tokens, and prices of the rules that grammars have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from guided.automata.lexer.distances import measure, shortest
from guided.automata.lexer.names import spelled_texts
from guided.automata.lexer.other_texts import OtherTexts
from guided.automata.lexer.states import MOST_STATES, StateTable
from guided.automata.rules.costs import RuleCosts
from guided.automata.rules.graph import RuleGraph
from guided.grammar.ir import Common
from guided.grammar.regular.expr import Expr, Kind, literal
from guided.grammar.regular.lengthening import lengthening
from guided.grammar.regular.rests import any_escape_left, escape_left, most_left
from guided.kernels.data.layout import FAR
from guided.vocab.spelled import spell
from guided.vocab.vocabulary import Vocabulary

__all__ = ["CommonPrices", "TerminalPrices", "TerminalTokens"]

_QUOTE = literal(b'"')

OTHERS_LEFT = 4
"""Bytes that end a string that may be any text but some, beyond the shortest and an escape: four characters more, with
which it is none of the words whatever it began with: fewer than 95^4 cannot be all of these."""


class TerminalPrices:
    """What terminals cost, for one vocabulary and table of lexer states; and prices of rules that grammars share."""

    def __init__(self, states: StateTable) -> None:
        self.states = states
        # Memory that is not written to is not taken.
        self.fewest: NDArray[np.int32] = np.zeros(MOST_STATES, np.int32)
        """By the state in which a terminal begins the tokens that are enough for it, 0 where not known."""
        self.farthest: NDArray[np.int32] = np.zeros(MOST_STATES, np.int32)
        """The same for what is left of it from anywhere inside."""
        self.common: dict[Common | None, CommonPrices] = {}


class CommonPrices(NamedTuple):
    """Prices of rules that grammars have in common, and of the nodes with which graphs of such grammars begin."""

    rules: dict[int, int]
    nodes: dict[int, int]
    node_cost: NDArray[np.int32]
    """By node, -1 for others."""

    @classmethod
    def of(cls, graph: RuleGraph, costs: RuleCosts) -> CommonPrices:
        """Those of a graph that begins with such nodes; none for other graphs."""
        nodes = {node: costs.node(node) for node in graph.common_nodes()}
        n_rules = 0 if graph.common is None else len(graph.common.rules)
        node_cost = np.full(graph.first if nodes else 0, -1, np.int32)
        for node, known in nodes.items():
            node_cost[node] = known
        return cls({rule: costs.rule(rule) for rule in range(1, n_rules + 1)}, nodes, node_cost)


class TerminalTokens:
    """Tokens that are enough for a terminal, by the lexer state in which it begins: those of its shortest text.

    Terminals with one text are priced by a kernel, ``price_texts``; of others the text is found first.
    """

    def __init__(
        self, vocabulary: Vocabulary, prices: TerminalPrices, price_texts: Callable[[NDArray[np.int64]], None]
    ) -> None:
        self._vocabulary = vocabulary
        self._prices = prices
        self._price_texts = price_texts
        self._fewest = prices.fewest.data

    def __call__(self, state: int) -> int:
        """The number of tokens, `FAR` where the vocabulary cannot spell the text."""
        found = self._fewest[state] if state < len(self._fewest) else 0
        return found or self.each([state])[0]

    def each(self, states: Sequence[int]) -> list[int]:
        """The same for several, most of them new."""
        size = len(self._fewest)
        new = [state for state in states if state < size and not self._fewest[state]]
        if new:
            self._price_texts(np.array(new, np.int64))
            for state in new:
                if not self._fewest[state]:
                    self._make(state)
        return [self._fewest[state] if state < size else self._of(state)[0] for state in states]

    def _make(self, state: int) -> None:
        self._prices.fewest[state], self._prices.farthest[state] = self._of(state)

    def _of(self, state: int) -> tuple[int, int]:
        states = self._prices.states
        texts = spelled_texts(states, state)
        text = min(texts, key=_by_length, default=None) or shortest(states, state)
        tokens = len(spell(self._vocabulary, text)) or FAR
        if texts:
            written = states.written[state]
            if isinstance(written, OtherTexts):
                return tokens, max(map(len, texts)) + any_escape_left(written.canonical) + OTHERS_LEFT
            # Such a text holds nothing that the canonical spelling escapes.
            return tokens, max(map(len, texts)) + (0 if written[1] else escape_left(False))
        key = states.key(state)
        farthest = _most_left(key) if isinstance(key, Expr) else FAR
        if farthest >= FAR:
            measure(states, state)
            farthest = int(states.arrays.widest[state])
        return tokens, max(farthest, 1)


def _most_left(expr: Expr) -> int:
    """Bytes that are enough to end a terminal that has begun, by its structure or what its text may come to."""
    found = most_left(expr)
    if found < FAR or expr.kind is not Kind.CONCAT:
        return found
    quote, string = cast("tuple[Expr, Expr]", expr.parts)
    if quote is not _QUOTE or string.kind is not Kind.JSON_STRING:
        return FAR
    known = lengthening(cast(Expr, string.parts[0]))
    return FAR if known is None else known.beyond(0) + 1 + escape_left(cast(bool, string.parts[1]))


def _by_length(text: bytes) -> tuple[int, bytes]:
    return len(text), text
