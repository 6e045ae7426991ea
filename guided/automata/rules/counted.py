"""Copies that are counted: nodes of a rule graph that are made a few at a time, so that a bound may be a million."""

from __future__ import annotations

from guided.automata.rules.costs import RuleCosts
from guided.automata.rules.nodes import Nodes
from guided.collection import untrack
from guided.grammar.ir import Repetition
from guided.kernels.data.layout import EMPTY

AT_ONCE = 8
"""Counts whose nodes are made at once: three microseconds each, where a request takes fifty."""

BLOCK = 64
"""Counts whose nodes have numbers one after another."""


class Copies:
    """The nodes after so many copies of a repetition's body.  Holds no graph, which holds it."""

    __slots__ = ("_bases", "_body", "_counts", "_may_be_empty", "end")

    def __init__(self, graph: Nodes, body: Repetition, end: int) -> None:
        self._body = body
        self._may_be_empty = graph.analysis.may_be_empty(body.body)
        self.end = end
        self._bases: dict[int, int] = {}
        """The first node of each block, by the count that it stands for."""
        self._counts: dict[int, int] = {}
        """That count, by the first node."""
        graph.may_reach |= self._may_be_empty
        untrack(self)

    def begin(self, graph: Nodes, start: int) -> None:
        """Add the edges of the node before all copies."""
        self._count(graph, start, 0)

    def make(self, graph: Nodes, node: int, base: int) -> None:
        """Make the edges of a node known that is in the block from ``base`` on."""
        graph.pending[node] = []
        self._count(graph, node, self._counts[base] + node - base)

    def price(self, costs: RuleCosts, graph: Nodes, node: int, base: int) -> int:
        """Fewest bytes from a node of the block from ``base`` on to the end of the copies."""
        return costs.copies(self._body, self._counts[base] + node - base)

    def _count(self, graph: Nodes, node: int, count: int) -> None:
        """Edges of the node after ``count`` copies, and of those after the next few, which are asked for soon."""
        left = 1 if graph.is_first or self._may_be_empty else AT_ONCE
        while True:
            after = self._count_one(graph, node, count)
            left -= 1
            if after is None or not left:
                return
            node, count = self._node(graph, after), after
            if graph.is_known(node):
                return
            graph.pending[node] = []

    def _count_one(self, graph: Nodes, node: int, count: int) -> int | None:
        """Edges of the node after ``count`` copies; how many there are after one more, None where none may come."""
        body = self._body
        # An empty copy may be left out: then every count suffices, and no empty edge leads from count to count.
        skippable = body.separator is None and self._may_be_empty
        if skippable or count >= max(body.low, 1):
            graph.pending[node].append((EMPTY, 0, self.end, -1))
        if body.high is not None and count == body.high:
            return None
        item = node
        if count and body.separator is not None:
            item = graph.node()
            graph.lower(body.separator, node, item)
        after = count + 1
        if body.high is None:
            after = min(after, body.low)
        graph.lower(body.body, item, self._node(graph, after), skip_empty=skippable)
        return after

    def _node(self, graph: Nodes, count: int) -> int:
        """The node after so many copies."""
        first = count - count % BLOCK
        base = self._bases.get(first)
        if base is None:
            last = self._body.low if self._body.high is None else self._body.high
            base = self._bases[first] = graph.reserve(min(BLOCK, last + 1 - first), self)
            self._counts[base] = first
        return base + count - first
