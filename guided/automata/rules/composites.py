"""Composite nodes: one node for several, as in the subset construction.

An ambiguous rule can be at many of its nodes in one place of a text, and each may return to each of the places that
called the rule.  That makes continuations of thousands of items, pairs of a node and where it returns to.  In a large
continuation all nodes that return to the same place become one *composite*.  It has the edges of all its nodes; where
one terminal or call leads to several nodes, the target is again a composite.  So a continuation has as many items as
there are continuations to return to.

Composites are made as texts reach them; sets of nodes with the same edges are one composite.  A composite belongs to no
rule: prices and obligations are asked of its parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import TypeAlias

import numpy as np

from guided.automata.rules.initial_arrays import ACCEPT
from guided.automata.rules.nodes import Nodes
from guided.kernels.data.layout import EMPTY

Offers: TypeAlias = int
"""What leads on from several nodes, and from where empty edges lead from them: a bit for each edge, and bit 0 when the
rule may end.  Unions of hundreds of edges are made all the time."""


class Composites:
    """The composite nodes of one graph, which is an argument of each call, since it holds this."""

    end = 0

    def __init__(self) -> None:
        self._made_of: dict[int, tuple[int, ...]] = {}
        """The nodes that each was first made of, composites among them."""
        self._parts: dict[int, tuple[int, ...]] = {}
        self._offers: dict[int, Offers] = {}
        self._own: dict[int, tuple[Offers, list[int]]] = {}
        """What each node offers without empty edges, and where these lead."""
        self._by_nodes: dict[tuple[int, ...], int] = {}
        """Composites by the nodes, composites among them, that they were made of."""
        self._by_offers: dict[Offers, int] = {}
        self._edges: list[tuple[int, int, int, int]] = [(EMPTY, 0, 0, -1)]
        """Edges by their bits: kind, argument, target and label."""
        self._bits: dict[tuple[int, int, int], int] = {}

    def parts(self, node: int) -> tuple[int, ...]:
        """The nodes that a composite stands for; none for any other node."""
        made_of = self._made_of.get(node)
        if made_of is None:
            return ()
        found = self._parts.get(node)
        if found is None:
            # Those below are older.
            each = [self.parts(part) or (part,) for part in made_of]
            found = self._parts[node] = tuple(sorted({part for parts in each for part in parts}))
        return found

    def node(self, graph: Nodes, nodes: Iterable[int]) -> int:
        """The node that stands for some, which may be composites themselves."""
        key = tuple(nodes)
        if len(key) == 1:
            return key[0]
        found = self._by_nodes.get(key)
        if found is None:
            offers = self._united(graph, key)
            found = self._by_offers.get(offers)
            if found is None:
                found = self._by_offers[offers] = graph.reserve(1, self)
                self._made_of[found] = key
                self._offers[found] = offers
            self._by_nodes[key] = found
        return found

    def _united(self, graph: Nodes, nodes: tuple[int, ...]) -> Offers:
        """What several nodes offer.  Thousands of them may lead to each other by empty edges: each is met once."""
        known = self._offers
        offers = reduce(or_, [known[node] for node in nodes if node in known], 0)
        work = [node for node in nodes if node not in known]
        if len(work) == 1:
            known[work[0]] = self._reached(graph, work)
            return offers | known[work[0]]
        return offers | self._reached(graph, work)

    def _reached(self, graph: Nodes, work: list[int]) -> Offers:
        seen = set(work)
        offers = 0
        for node in work:
            own, onward = self._own.get(node) or self._of(graph, node)
            offers |= own
            for target in onward:
                if target not in seen:
                    seen.add(target)
                    work.append(target)
        return offers

    def _of(self, graph: Nodes, node: int) -> tuple[Offers, list[int]]:
        offers = 0
        onward = []
        for edge in graph.all_edges(node):
            kind, _, target, _ = edge
            if kind == EMPTY:
                onward.append(target)
            else:
                bit = self._bits.setdefault(edge[:3], len(self._edges))
                if bit == len(self._edges):
                    self._edges.append(edge)
                offers |= 1 << bit
        found = self._own[node] = offers | graph.is_end(node), onward
        return found

    def make(self, graph: Nodes, node: int, base: int) -> None:
        """Make the edges of a composite known: each terminal and rule with one node behind it."""
        offers = self._offers[node]
        if offers & 1:
            graph.end_at(node)
        graph.pending[node] = []
        onward: dict[tuple[int, int], list[int]] = {}
        labels: dict[tuple[int, int], int] = {}
        row = np.frombuffer(offers.to_bytes(offers.bit_length() // 8 + 1, "little"), np.uint8)
        for bit in np.flatnonzero(np.unpackbits(row, bitorder="little")).tolist():
            if bit:
                kind, argument, target, label = self._edges[bit]
                labels.setdefault((kind, argument), label)
                if target != ACCEPT:
                    onward.setdefault((kind, argument), []).append(target)
                else:
                    # A continuation tells that the text may end by holding that node itself.
                    graph.pending[node].append(self._edges[bit])
        for read, targets in sorted(onward.items()):
            graph.pending[node].append((*read, self.node(graph, sorted(targets)), labels[read]))
