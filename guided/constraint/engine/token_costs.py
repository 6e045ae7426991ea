"""What one machine's texts take in tokens, as budgets count them: prices of nodes, and the cheapest text by them."""

from __future__ import annotations

import weakref
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from guided.automata.lexer.distances import minimum, shortest
from guided.automata.rules.costs import RuleCosts
from guided.constraint.engine.prices import CommonPrices, TerminalTokens
from guided.kernels import entry
from guided.kernels.data.layout import N_PRICED, N_SEGMENT_TOKENS, N_SEGMENTS, PRICES

if TYPE_CHECKING:
    from guided.constraint.engine.machine import ConstraintMachine

__all__ = ["TokenCosts"]


class TokenCosts:
    """Serves what kernels ask for to price continuations (`costs`); the machine's lock must be held."""

    def __init__(self, machine: ConstraintMachine) -> None:
        self._machine: ConstraintMachine = weakref.proxy(machine)
        own = self._machine

        def price_texts(states: NDArray[np.int64]) -> None:
            own.run(entry.price_texts, states)

        self.tokens_of = TerminalTokens(machine.vocabulary, machine.effects.prices, price_texts)

    @cached_property
    def _rules(self) -> RuleCosts:
        common = self._common()
        return RuleCosts(self._machine.graph, self.tokens_of, self.tokens_of.each, (common.rules, common.nodes))

    def _common(self) -> CommonPrices:
        graph, prices = self._machine.graph, self._machine.effects.prices.common
        found = prices.get(graph.common)
        if found is None:
            costs = RuleCosts(graph, self.tokens_of, self.tokens_of.each)
            found = prices[graph.common] = CommonPrices.of(graph, costs)
        return found

    def begin(self) -> None:
        """Let kernels compute prices; parts of masks that were kept without prices are made anew."""
        machine = self._machine
        counters = machine.counters
        counters[PRICES] = 1
        self._make_room(self._common().node_cost)
        if counters[N_SEGMENTS]:
            counters[N_SEGMENTS] = counters[N_SEGMENT_TOKENS] = 0
            machine.refresh()
            entry.rehash(machine.table, True)

    def need(self, state: int) -> int:
        """So many tokens are enough to end the text, whichever token of the mask comes next."""
        machine = self._machine
        with machine.lock:
            machine.begin_prices()
            assert machine.needs is not None
            if state not in machine.needs:
                machine.visit(state)
            return machine.needs[state]

    def of(self, continuation: int) -> int:
        """Tokens that are enough to end the text from a continuation."""
        machine = self._machine
        if continuation >= machine.counters[N_PRICED]:
            machine.run(entry.price_all)
        return int(machine.tables.cost[continuation])

    def price_nodes(self, asked: list[list[int]]) -> None:
        """Price nodes that kernels cannot price, and rules by the nodes in which they begin."""
        machine, rules = self._machine, self._rules
        if machine.graph.n_nodes > machine.tables.node_cost.size:
            self._make_room(machine.tables.node_cost)
        known = machine.tables.node_cost
        each = known.data
        for node, begun, _ in asked:
            if begun:
                each[node] = rules.rule(begun - 1)
            elif each[node] < 0:
                each[node] = rules.node(node)
                first, found = rules.beside(node)
                if found:
                    prices = np.array(found, np.int32)
                    np.copyto(known[first : first + len(found)], prices, where=prices >= 0)

    def _make_room(self, known: NDArray[np.int32]) -> None:
        """Prices of nodes with room for as many again as there are."""
        grown = np.empty(2 * self._machine.graph.n_nodes, np.int32)
        grown[: known.size] = known
        grown[known.size :] = -1
        self._machine.hold_node_cost(grown)

    def to_end(self, state: int) -> int:
        """Tokens that are enough to end the text from a state, one a byte of what is left of a terminal."""
        states = self._machine.states
        return min(
            self.of(continuation) + (minimum(states, inside) if inside else 0)
            for inside, continuation, _ in self._machine.threads(state)
        )

    def cheapest_text(self, state: int) -> bytes | None:
        """A text to the end: terminal by terminal, each in its own shortest text.

        None where no terminals in a row are as cheap as their prices say.
        """
        machine = self._machine
        with machine.lock:
            machine.begin_prices()
            threads = machine.threads(state)
            left = [
                (self.of(continuation) + (minimum(machine.states, inside) if inside else 0), i)
                for i, (inside, continuation, _) in enumerate(threads)
            ]
            inside, at, _ = threads[min(left)[1]]
            text = shortest(machine.states, inside) if inside else b""
            while not machine.may_end(at):
                ways = machine.closure(at)
                price, start, after = min((self.tokens_of(s) + self.of(after), s, after) for s, after, _ in ways)
                if price > self.of(at):
                    return None
                text += shortest(machine.states, start)
                at = after
            return text
