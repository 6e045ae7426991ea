"""A lower bound on the bytes to the end from a stack of an LALR parser, whatever matches owe.

It costs next to nothing, for grammars whose exact costs (`guided.automata.endings.endings`) take too much.  It ignores
what comes next and whether the parser would accept it: each state of the stack counts with the cheapest rest of one of
its items, and the state that is then on top follows.
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable, Iterator
from typing import TypeAlias, cast

from guided.automata.endings.lexemes import Lexemes
from guided.automata.endings.obligations import Work
from guided.automata.lalr.closings import item_costs
from guided.automata.lalr.stacks import Restricted
from guided.automata.lexer.ordered import OrderedState, lexer_of
from guided.automata.lexer.states import StateTable
from guided.grammar.ir import Grammar
from guided.kernels.data.layout import FAR

Stack: TypeAlias = "int | tuple[Stack, int]"
"""A continuation, or a state on top of a stack."""


class StackCosts:
    """Least bytes to the end, by lexer state and stack."""

    def __init__(self, grammar: Grammar, states: StateTable, items: Callable[[int], list[int]]) -> None:
        assert grammar.tables is not None
        self._tables = tables = grammar.tables
        self._states = states
        self._continuation = items
        self._ignored = frozenset(grammar.ignore)
        self._lexemes = Lexemes(Work(sys.maxsize), owing=False)
        lexer = lexer_of(grammar.terminals)
        least: dict[int, int] = {}
        for context in set(tables.accepts):
            for (tag, _), distance in self._lexemes.exits(lexer.start(context), None).items():
                least[tag] = min(distance, least.get(tag, distance))
        self._items, self._names = item_costs(tables, least)
        self._costs: dict[Stack, int] = {}

    def cost(self, inside: int, continuation: int) -> int:
        """Fewest bytes with which a thread could come to the end."""
        if not inside:
            return self._cost(continuation)
        key = self._states.keys[inside]
        state = cast(OrderedState, key.state if isinstance(key, Restricted) else key)
        least = FAR
        for (tag, _), distance in self._lexemes.exits(state, None).items():
            if distance < least:
                stack = continuation if tag in self._ignored else self._shifted(continuation, tag)
                if stack is not None:
                    least = min(least, distance + self._cost(stack))
        return least

    def _top(self, stack: Stack) -> tuple[Stack, int]:
        """What is below the uppermost state, and that."""
        if isinstance(stack, tuple):
            return stack
        (item,) = self._continuation(stack)
        return item & 0xFFFFFFFF, (item >> 32) - 1

    def _shifted(self, stack: Stack, terminal: int) -> Stack | None:
        tables = self._tables
        while True:
            state = self._top(stack)[1]
            if terminal in tables.shift[state]:
                return stack, tables.shift[state][terminal]
            rule = tables.reduce[state].get(terminal)
            if rule is None:
                return None
            stack = self._reduced(stack, *tables.rules[rule])

    def _reduced(self, stack: Stack, name: int, length: int) -> Stack:
        for _ in range(length):
            stack = self._top(stack)[0]
        return stack, self._tables.goto[self._top(stack)[1]][name]

    def _following(self, stack: Stack) -> Iterator[tuple[int, Stack]]:
        below, state = self._top(stack)
        if below == 1:
            for name, target in self._tables.goto[state].items():
                if target == self._tables.final and name in self._names:
                    yield self._names[name], (stack, target)
            return
        for (name, read), cost in self._items[state].items():
            under = stack
            for _ in range(read):
                under = self._top(under)[0]
            goto = self._tables.goto[self._top(under)[1]]
            if name in goto:
                yield cost, (under, goto[name])

    def _cost(self, stack: Stack) -> int:
        """By Dijkstra's algorithm over stacks; what it takes from those on the way is remembered."""
        if stack in self._costs:
            return self._costs[stack]
        final = self._tables.final
        distance: dict[Stack, int] = {stack: 0}
        parent: dict[Stack, Stack] = {}
        queue: list[tuple[int, int, Stack, bool]] = [(0, 0, stack, False)]
        count = 0
        while queue:
            cost, _, at, ended = heapq.heappop(queue)
            if ended:
                while True:
                    self._costs[at] = cost - distance[at]
                    if at not in parent:
                        return cost
                    at = parent[at]
            if cost > distance[at]:
                continue
            known = 0 if self._top(at)[1] == final else self._costs.get(at)
            count += 1
            if known is not None:
                heapq.heappush(queue, (cost + known, count, at, True))
                continue
            for more, after in self._following(at):
                if cost + more < distance.get(after, FAR):
                    distance[after] = cost + more
                    parent[after] = at
                    count += 1
                    heapq.heappush(queue, (cost + more, count, after, False))
        self._costs[stack] = FAR
        return FAR


__all__ = ["StackCosts"]
