"""How little finishes a rule, from its start and from each of its nodes: for texts that must end within a budget.

Terminals are priced by a function, in bytes or in tokens; the price of a sequence is the sum.

Rules are priced by a fixpoint over the IR, nodes by a search inside their rule; nodes that are made lazily (counters,
members in free order) know their price from what they count, so nothing has to be lowered for it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from guided.grammar.ir import Body, Choice, Member, Members, Reference, Repetition, Sequence, Terminal
from guided.kernels.layout import CALL, EMPTY

if TYPE_CHECKING:
    from guided.automata.graph import RuleGraph

FAR = 1 << 28
"""More than any budget: what cannot finish."""


class RuleCosts:
    """Prices of the rules and nodes of one graph; ``terminal`` prices a lexer state from which a terminal begins."""

    def __init__(self, graph: RuleGraph, terminal: Callable[[int], int]) -> None:
        self._graph = graph
        self._terminal = terminal
        self._nodes: dict[int, int] = {0: 0}
        rules = graph.analysis.rules
        self.rules = [FAR] * len(rules)
        changed = True
        while changed:
            changed = False
            for index, rule in enumerate(rules):
                price = self.body(rule.body)
                if price < self.rules[index]:
                    self.rules[index] = price
                    changed = True

    def body(self, body: Body) -> int:
        """The least that a text of ``body`` costs."""
        match body:
            case Terminal():
                if body.lexer is not None:
                    return self._terminal(self._graph.lexer_start(body.lexer))
                if not self._graph.analysis.can_finish(body):
                    return FAR
                return 0 if body.expr.nullable else self._terminal(self._graph.states.add(body.expr))
            case Reference(rule):
                return self.rules[rule]
            case Sequence(parts):
                return min(FAR, sum(self.body(part) for part in parts))
            case Choice(options):
                return min((self.body(option) for option in options), default=FAR)
            case Repetition():
                return self.copies(body, 0)
            case Members():
                required = [self._member(member) for member in body.declared if member.required]
                optional = [self._member(member) for member in body.declared if not member.required]
                most = body.high
                return self.members(
                    body.separator, required, optional, body.extras, body.low, 0, False, body.goals, most
                )

    def copies(self, body: Repetition, done: int) -> int:
        """The least that the copies still missing after ``done`` of them take."""
        missing = body.low - done
        if missing <= 0:
            return 0
        separator = 0 if body.separator is None else self.body(body.separator)
        return min(FAR, missing * self.body(body.body) + (missing - (done == 0)) * separator)

    def _member(self, member: Member) -> int:
        return min(FAR, self.body(member.key) + self.body(member.value))

    def members(
        self,
        separator: Body,
        required: list[int],
        optional: list[int],
        extras: tuple[Member, ...],
        low: int,
        done: int,
        separated: bool = False,
        goals: int = 0,
        most: int | None = None,
    ) -> int:
        """The least that the members still missing cost; ``separated``: the separator before the next is written.

        ``done`` members are there; extras must still meet the ``goals``, with no more than ``most`` members in all.
        """
        best = FAR
        for n_meeting, meeting in enumerate(self._meeting(extras, goals)):
            known = len(required) + n_meeting
            missing = max(low - done - known, 0)
            if missing == 0 and separated and not known:
                missing = 1
            if meeting == FAR or (most is not None and done + known + missing > most):
                continue
            chosen = sorted(optional)[:missing]
            if len(chosen) < missing or extras:
                extra = min((self._member(member) for member in extras), default=FAR)
                chosen = sorted([*optional, *[extra] * missing])[:missing]
            if len(chosen) < missing:
                continue
            count = known + missing
            between = count - (done == 0 or separated) if count else 0
            best = min(best, sum(required) + meeting + sum(chosen) + between * self.body(separator))
        return best

    def _meeting(self, extras: tuple[Member, ...], goals: int) -> list[int]:
        """For each number of extras, the least that so many cost which together meet the goals."""
        cheapest = {0: 0}
        found = [0 if goals == 0 else FAR]
        for _ in range(goals.bit_count()):
            more: dict[int, int] = {}
            for met, price in cheapest.items():
                for member in extras:
                    then = met | (member.meets & goals)
                    if then != met:
                        more[then] = min(more.get(then, FAR), price + self._member(member))
            cheapest = more
            found.append(cheapest.get(goals, FAR))
        return found

    def node(self, start: int) -> int:
        """The least that leads from a node to the end of its rule."""
        found = self._nodes.get(start)
        if found is not None:
            return found
        graph = self._graph
        # Dijkstra over the nodes of this rule; a node whose price is known ends the search on its path.
        best = FAR
        last = start
        distance = {start: 0}
        before: dict[int, int] = {}
        queue = [(0, start)]
        while queue:
            price, node = heapq.heappop(queue)
            if price > distance[node] or price >= best:
                continue
            known = self._nodes.get(node)
            if known is not None:
                if price + known < best:
                    best, last = price + known, node
                continue
            for step, target in self._steps(node):
                if price + step < distance.get(target, FAR):
                    distance[target] = price + step
                    before[target] = node
                    heapq.heappush(queue, (price + step, target))
            if graph.is_end(node) and price < best:
                best, last = price, node
        # The rest of a cheapest way is cheapest itself; else each member of a record would look at all behind it.
        while last != start:
            self._nodes[last] = best - distance[last]
            last = before[last]
        self._nodes[start] = best
        return best

    def _steps(self, node: int) -> Iterator[tuple[int, int]]:
        """What leads on from a node, with its price; a lazy node leads to the end of its body."""
        graph = self._graph
        known = graph.price(self, node)
        if known is not None:
            yield known
            return
        for kind, argument, target in graph.edges(node):
            if kind == EMPTY:
                yield 0, target
            else:
                yield self.rules[argument] if kind == CALL else self._terminal(argument), target
