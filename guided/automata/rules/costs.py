"""The least that finishes a rule, from its start and from each of its nodes: for texts that must end within a budget.

A function prices terminals, in bytes or in tokens; the price of a sequence is the sum.

Rules are priced over the IR, when they are first asked about, and nodes by a search inside their rule.  Nodes that are
made lazily (counters, members in free order, records) compute their price from what they count, so nothing is lowered
for it.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Sequence as Sequence_
from typing import Protocol

from guided.automata.lexer.names import states_of_names
from guided.automata.rules.composites import Composites
from guided.automata.rules.nodes import Nodes
from guided.grammar.ir import (
    AnyTerminal,
    Body,
    Choice,
    DeferredMembers,
    Member,
    Members,
    Reference,
    Repetition,
    Sequence,
)
from guided.kernels.data.layout import CALL, EMPTY, FAR


class PricedNodes(Nodes, Protocol):
    """The nodes of a rule graph as they are priced."""

    composites: Composites

    def edges(self, node: int) -> list[tuple[int, int, int]]:
        """The edges of a node as ``(kind, argument, target)``, lowered if need be."""

    def price(self, costs: RuleCosts, node: int) -> tuple[int, int] | None:
        """What a node costs to the end of what it is in and which node that is, where its maker can tell."""

    def first_beside(self, node: int) -> int:
        """The first of the nodes that were reserved with this one, -1 where none were."""

    def end_of(self, node: int) -> int:
        """For a reserved node, the end of what it is in."""


class RuleCosts:
    """Prices of the rules and nodes of one graph; ``terminal`` prices a lexer state from which a terminal begins.

    What is asked about is priced with what it rests on, and no more: members that may be left out cost nothing, so
    those of a record in order are not even made.
    """

    def __init__(
        self,
        graph: PricedNodes,
        terminal: Callable[[int], int],
        terminals: Callable[[Sequence_[int]], list[int]],
        known: tuple[Mapping[int, int], Mapping[int, int]] = ({}, {}),
    ) -> None:
        """``terminals``: of several at once; ``known``: prices of rules, and of nodes, that are known already."""
        self._graph = graph
        self.terminal = terminal
        self.terminals = terminals
        self._rules: dict[int, int] = dict(known[0])
        self._unsettled: dict[int, int] = {}
        """No less than what rules cost that call each other, while that is found."""
        self._n_unsettled = 0
        """So often such a price was asked for."""
        self._nodes: dict[int, int] = {0: 0, **known[1]}
        self.records: dict[int, list[int]] = {}
        """Of the nodes of each record, by the first of them."""
        self._told: set[int] = set()
        """The records of which `beside` told the nodes."""
        self._bodies: dict[Body, int] = {}
        """Of bodies that say a value only, which many members have."""

    def rule(self, index: int) -> int:
        """The least that a text of a rule costs."""
        found = self._rules.get(index)
        if found is not None:
            return found
        found = self._unsettled.get(index)
        if found is not None:
            self._n_unsettled += 1
            return found
        self._settle(index)
        return self._rules[index]

    def _settle(self, index: int) -> None:
        """Price a rule and those that it rests on: callees first, then again those that call what came to cost less."""
        rules, known, unsettled = self._graph.analysis.rules, self._rules, self._unsettled
        callers: dict[int, list[int]] = {}
        # Until its own callees are settled what is recursive costs more than anything.
        unsettled[index] = FAR
        stack = [(index, self._rests_on(rules[index].body))]
        while stack:
            at, callees = stack[-1]
            for callee in callees:
                if callee in known:
                    continue
                callers.setdefault(callee, []).append(at)
                if callee not in unsettled:
                    unsettled[callee] = FAR
                    stack.append((callee, self._rests_on(rules[callee].body)))
                    break
            else:
                stack.pop()
                before = self._n_unsettled
                price = self.body(rules[at].body)
                if self._n_unsettled == before:
                    known[at] = price
                    del unsettled[at]
                else:
                    unsettled[at] = price
        waiting = deque(unsettled)
        again = set(waiting)
        while waiting:
            at = waiting.popleft()
            again.discard(at)
            price = self.body(rules[at].body)
            if price < unsettled[at]:
                unsettled[at] = price
                more = [caller for caller in callers.get(at, ()) if caller in unsettled and caller not in again]
                waiting.extend(more)
                again.update(more)
        known.update(unsettled)
        unsettled.clear()

    def _rests_on(self, body: Body) -> Iterator[int]:
        """The rules that the price of a body depends on."""
        stack: list[Body] = [body]
        while stack:
            item = stack.pop()
            # By the class itself, as in `RuleGraph.lower`.
            if type(item) is Reference:
                yield item.rule
            elif type(item) is Sequence:
                stack.extend(item.parts)
            elif type(item) is Choice:
                stack.extend(item.options)
            elif type(item) is DeferredMembers:
                stack.extend([item.source.value(i) for i, needed in enumerate(item.required) if needed])
            elif type(item) is Repetition:
                if item.low:
                    stack.append(item.body)
                    if item.separator is not None:
                        stack.append(item.separator)
            elif type(item) is Members:
                stack.append(item.separator)
                stack.extend([member.value for member in (*item.declared, *item.extras)])

    def body(self, body: Body) -> int:
        """The least that a text of ``body`` costs."""
        if isinstance(body, AnyTerminal):
            if not self._graph.analysis.can_finish(body):
                return FAR
            state, _, nullable = self._graph.entered(body)
            return 0 if nullable else self.terminal(state)
        if type(body) is Reference:
            return self.rule(body.rule)
        if type(body) is Sequence:
            return min(FAR, sum([self.body(part) for part in body.parts]))
        if type(body) is Choice:
            return min([self.body(option) for option in body.options], default=FAR)
        if type(body) is DeferredMembers:
            return self._deferred(body)
        if type(body) is Repetition:
            return self.copies(body, 0)
        assert type(body) is Members
        required = [self._member(member) for member in body.declared if member.required]
        optional = [self._member(member) for member in body.declared if not member.required]
        return self.members(body.separator, required, optional, body.extras, body.low, 0, False, body.goals, body.high)

    def _deferred(self, body: DeferredMembers) -> int:
        """The members that must be there, and nothing else."""
        chosen = [i for i, needed in enumerate(body.required) if needed]
        if not chosen:
            return 0
        separator = self.body(body.separator)
        around = self.body(body.lead) + (0 if body.trail is None else self.body(body.trail)) + separator
        names = [name for i in chosen if (name := body.names[i]) is not None]
        price = sum(self.terminals(states_of_names(self._graph.states, names, body.canonical)))
        price += sum([self.body(body.source.key(i)) for i in chosen if body.names[i] is None])
        price += sum([self.value(body.source.value(i)) for i in chosen])
        return min(FAR, price + len(chosen) * around - separator)

    def value(self, body: Body) -> int:
        """As `body`, remembered: few kinds of values are those of many members."""
        found = self._bodies.get(body)
        if found is None:
            before = self._n_unsettled
            found = self.body(body)
            if self._n_unsettled == before:
                self._bodies[body] = found
        return found

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
        if parts := graph.composites.parts(start):
            found = self._nodes[start] = min(map(self.node, parts))
            return found
        # What its maker knows is exact, and needs no search.
        told = graph.price(self, start)
        if told is not None:
            found = self._nodes[start] = min(FAR, told[0] + self.node(told[1]))
            return found
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

    def beside(self, node: int) -> tuple[int, list[int]]:
        """The first node of the record that a priced node is in, and what leads from each to the end of its rule.

        Nothing for what is in none, or where they were told before; -1 for nodes that are not priced yet.
        """
        first = self._graph.first_beside(node)
        inside = self.records.get(first)
        if inside is None or first in self._told:
            return 0, []
        self._told.add(first)
        behind = self.node(self._graph.end_of(node))
        return first, [-1 if price < 0 else min(FAR, price + behind) for price in inside]

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
                yield self.rule(argument) if kind == CALL else self.terminal(argument), target
