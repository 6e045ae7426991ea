"""Members of a record in any order, or counted: nodes of a rule graph that are made one at a time.

Members in their given order, without bounds that count, are a chain of nodes: `guided.automata.chains`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from guided.automata.costs import RuleCosts
from guided.grammar.goals import fewest_to_meet
from guided.grammar.ir import Member, Members
from guided.kernels.layout import EMPTY

if TYPE_CHECKING:
    from guided.automata.analysis import Analysis
    from guided.automata.graph import RuleGraph


class FreeMembers:
    """Members in any order, or with bounds on their number: lazily made nodes, one for what is written so far."""

    def __init__(self, analysis: Analysis, body: Members, end: int) -> None:
        self.body = body
        self.end = end
        self.extras = analysis.usable(body.extras)
        self.declared = analysis.usable(body.declared)
        self.required = sum(1 << i for i, member in enumerate(self.declared) if member.required)
        self.most = body.high
        if not analysis.can_finish(body.separator):
            self.most = 1
        # Beyond this count nothing depends on it any more.
        self.cap = max(body.low, 1) if self.most is None else self.most
        self.nodes: dict[tuple[int, int, int, bool], int] = {}
        self._fewest: dict[int, int | None] = {}

    def _node(self, graph: RuleGraph, used: int, met: int, count: int, separated: bool) -> int:
        key = (used, met, count, separated)
        found = self.nodes.get(key)
        if found is None:
            maker = self._keys if separated else self.edges
            found = self.nodes[key] = graph._lazy(lambda graph, node: maker(graph, node, used, met, count), self.end)
            graph.prices[found] = (lambda costs: self.price(costs, used, met, count, separated), self.end)
        return found

    def price(self, costs: RuleCosts, used: int, met: int, count: int, separated: bool) -> int:
        """Fewest bytes from a node to the end of the members."""
        first = self._position(used) if self.body.ordered else 0
        left = [
            (member.required, costs.body(member.key) + costs.body(member.value))
            for i, member in enumerate(self.declared)
            if i >= first and not used >> i & 1
        ]
        required = [price for needed, price in left if needed]
        optional = [price for needed, price in left if not needed]
        extras = tuple(self.extras)
        goals = self.body.goals & ~met
        most = self.most
        return costs.members(
            self.body.separator, required, optional, extras, self.body.low, count, separated, goals, most
        )

    def feasible(self, used: int, met: int, count: int) -> bool:
        """Can the members be completed from here within the bounds?"""
        missing = bin(self.required & ~used).count("1")
        if self.body.goals & ~met:
            fewest = self._fewest_to_meet(self.body.goals & ~met)
            if fewest is None:
                return False
            missing += fewest
        if self.most is not None and count + missing > self.most:
            return False
        if self.body.ordered and self.required & ((1 << self._position(used)) - 1) & ~used:
            return False
        left = len(self.declared) - (self._position(used) if self.body.ordered else bin(used).count("1"))
        return bool(self.extras) or count + left >= self.body.low

    def _fewest_to_meet(self, goals: int) -> int | None:
        if goals not in self._fewest:
            self._fewest[goals] = fewest_to_meet([member.meets for member in self.extras], goals)
        return self._fewest[goals]

    def _position(self, used: int) -> int:
        return used.bit_length()

    def edges(self, graph: RuleGraph, node: int, used: int, met: int, count: int) -> None:
        """Add the edges of the node after ``count`` members: of those declared the ones in the bit set ``used``.

        ``met`` is the bit set of the goals that were met.
        """
        if count >= self.body.low and not self.required & ~used and not self.body.goals & ~met:
            graph._add(node, EMPTY, 0, self.end)
        if count == 0:
            self._keys(graph, node, used, met, count)
        elif any(True for _ in self._options(used, met, count)):
            graph.lower(self.body.separator, node, self._node(graph, used, met, count, True))

    def _options(self, used: int, met: int, count: int) -> Iterator[tuple[Member, int, int, int]]:
        after = min(count + 1, self.cap) if self.most is None else count + 1
        if self.most is not None and after > self.most:
            return
        first = self._position(used) if self.body.ordered else 0
        for i in range(first, len(self.declared)):
            if not used >> i & 1 and self.feasible(used | 1 << i, met, after):
                yield self.declared[i], used | 1 << i, met, after
        for extra in self.extras:
            then = met | (extra.meets & self.body.goals)
            if self.feasible(used, then, after):
                yield extra, used, then, after

    def _keys(self, graph: RuleGraph, node: int, used: int, met: int, count: int) -> None:
        for member, used_then, met_then, after in self._options(used, met, count):
            value = graph.node()
            graph.lower(member.key, node, value)
            graph.lower(member.value, value, self._node(graph, used_then, met_then, after, False))
