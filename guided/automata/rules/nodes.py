"""A rule graph as those see it who make its nodes, and what a graph asks of them.

`guided.automata.rules.graph` keeps the nodes.  Repetitions, records, members and sets of nodes make them when they are
needed.  Each call has the graph as an argument, so a graph is in no cycle.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from guided.automata.lexer.states import StateTable
from guided.automata.rules.analysis import Analysis
from guided.grammar.ir import AnyTerminal, Body, DeferredMembers, Terminal

__all__ = ["Edges", "NodeMaker", "Nodes"]

Edges: TypeAlias = "list[tuple[int, int, int, int]]"
"""``(kind, argument, target node, label)``."""


class NodeMaker(Protocol):
    """Makes the edges of the nodes that it has reserved."""

    @property
    def end(self) -> int:
        """The node behind all of them, which can be reached from each."""

    def make(self, graph: Nodes, node: int, base: int) -> None:
        """Make the edges of a node known that is among those reserved from ``base`` on."""


class Nodes(Protocol):
    """The nodes of a rule graph, while some of them are made."""

    analysis: Analysis
    states: StateTable
    pending: dict[int, Edges]
    """Edges that are not yet written, by node."""
    may_reach: bool
    """May an empty edge lead to a node whose edges are not yet made?"""
    is_first: bool
    """Is this the first request, which somebody waits for, and which most of a text comes after?"""
    made: int
    """Rules, records and terminals made so far."""
    enough: int
    """How many of them there must be for a request not to make more than it must: 0 behind the first."""
    n_edges: int
    closed: set[int]
    """Nodes of which all is known that closing them asks for."""
    marks: dict[tuple[Terminal | None, ...], tuple[int, ...]]
    described: dict[Body, tuple[int, ...]]
    """What records wrote of the marks around their members, and of the values."""

    def node(self) -> int:
        """A new node, pending, without edges so far."""

    def reserve(self, n: int, maker: NodeMaker) -> int:
        """The first of ``n`` nodes whose edges ``maker`` makes, each when it is needed."""

    def end_of(self, node: int) -> int:
        """For a node whose edges are not yet made, the end of what it is in, which can be reached from it."""

    def is_known(self, node: int) -> bool:
        """Are the edges of a node made?"""

    def make(self, node: int) -> None:
        """Let the edges of a node be pending that are not known, and of those that it leads to by empty edges."""

    def all_edges(self, node: int) -> Edges:
        """The edges of a node, pending ones too, while others are made."""

    def add(self, node: int, kind: int, argument: int, target: int, label: int = -1) -> None:
        """Add an edge to those of a node that is pending."""

    def is_end(self, node: int) -> bool:
        """Is this the node at which its rule ends?"""

    def end_at(self, node: int) -> None:
        """Let a rule end at a node that is being made."""

    def postpone(self, node: int) -> None:
        """Make the edges of a node known at the end of this request, if it is the first."""

    def lower(self, body: Body, start: int, end: int, *, skip_empty: bool = False) -> None:
        """Add edges for ``body`` from ``start`` to ``end``; a terminal's or call's own empty text can be left out."""

    def read(self, body: AnyTerminal, edges: Edges, end: int, *, skip_empty: bool = False) -> None:
        """Add the edges that read a terminal to those of a node."""

    def entered(self, body: AnyTerminal) -> tuple[int, int, bool]:
        """The lexer state in which a terminal begins (-1: none), the label of what reads it, and may it be empty?"""

    def labelled(self, members: DeferredMembers, n: int) -> int:
        """The first of ``n`` labels, for the keys of members and behind them for the values that are terminals."""

    def room(self, n: int) -> int:
        """Where so many edges can be written next, and all nodes that have a number."""

    def addresses(self) -> int:
        """What kernels get that write nodes: where the table of addresses of this graph's own arrays is."""
