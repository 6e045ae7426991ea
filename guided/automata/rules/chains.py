"""Members of a record in their given order, without bounds that count: a chain of nodes, written piece by piece.

A key is written with those that may come instead of it, up to the next that must come; what stands behind a key only
when the parser comes to it, with that of the next few, so that a record of hundreds of members costs what is written
of it.  Records whose values are made when they are looked at are in `guided.automata.rules.records`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from guided.grammar.ir import Body, Members, Sequence, Terminal
from guided.kernels.data.layout import EMPTY

if TYPE_CHECKING:
    from guided.automata.rules.graph import RuleGraph

GROUP = 8
"""Members whose values are written at once: a request by itself costs what two or three of them do."""


class MemberChain:
    """The nodes of one record: where a key or what follows it begins, and the place behind each member.

    Holds no graph, which holds it.
    """

    __slots__ = (
        "_after",
        "_due",
        "_extras",
        "_finishing",
        "_inside",
        "_key",
        "_keys",
        "_n",
        "_required",
        "_separator",
        "_values",
        "_written",
        "end",
    )  # fmt: skip

    def __init__(self, graph: RuleGraph, body: Members, start: int, end: int) -> None:
        declared = graph.analysis.usable(body.declared)
        self._keys = tuple(member.key for member in declared)
        self._required = tuple(member.required for member in declared)
        self._values = [member.value for member in declared]
        self._n = n = len(self._keys)
        self.end = end
        self._extras = graph.analysis.usable(body.extras)
        self._separator = body.separator if graph.analysis.can_finish(body.separator) else None
        self._finishing = n
        while self._finishing and not self._required[self._finishing - 1]:
            self._finishing -= 1
        self._written = bytearray(n)
        """Which keys are written."""
        self._due: list[int] = []
        """The places behind so many members that must be known at once."""
        # Nodes: behind what each value begins with, behind so many members, and before each key.
        self._inside = graph.reserve(3 * n + 1, self)
        self._after = self._inside + n
        self._key = self._after + n + 1
        if self._finishing == 0:
            graph.pending[start].append((EMPTY, 0, end, -1))
        self._offer(graph, start, 0)
        # Behind another name, or where its value may be empty, this is asked for at once.
        self._due.append(0)
        self._write_group(graph, 0, GROUP if graph.defers else n)
        self._pay(graph)

    def make(self, graph: RuleGraph, node: int, base: int) -> None:
        """Make the edges of one of the nodes known that are reserved from ``base`` on."""
        if node < self._after:
            self._write_group(graph, node - self._inside, GROUP)
        else:
            self._settle(graph, node - self._after)
        self._pay(graph)

    def _pay(self, graph: RuleGraph) -> None:
        while self._due:
            self._settle(graph, self._due.pop())

    def _offer(self, graph: RuleGraph, node: int, position: int) -> None:
        """What may come after so many members, at a node: their next, by an empty edge, or one of another name."""
        edges = graph.pending[node]
        if position < self._n:
            edges.append((EMPTY, 0, self._key + position, -1))
            self._write_keys(graph, position)
        for extra in self._extras:
            value = graph.node()
            graph.read(extra.key, edges, value)
            graph.lower(extra.value, value, self._after + position)

    def _write_keys(self, graph: RuleGraph, first: int) -> None:
        """Keys from one on, up to that of a member which must come before all later ones."""
        pending, n = graph.pending, self._n
        for position in range(first, n):
            if self._written[position]:
                break
            self._written[position] = 1
            value = graph.node()
            edges = pending[self._key + position] = []
            graph.read(self._keys[position], edges, value)
            self._write_value(graph, position, value)
            if self._required[position]:
                break
            if position + 1 < n:
                edges.append((EMPTY, 0, self._key + position + 1, -1))

    def _write_value(self, graph: RuleGraph, position: int, node: int) -> None:
        """A value that is made already: its first part, or all of it where that may be empty or is no terminal."""
        parts = _split(self._values[position])
        if parts is None:
            graph.lower(self._values[position], node, self._after + position + 1)
            self._due.append(position + 1)
        else:
            graph.lower(parts[0], node, self._inside + position)

    def _write_group(self, graph: RuleGraph, first: int, count: int) -> None:
        """What stands behind the first part of some values, and behind them."""
        for position in range(first, min(first + count, self._n)):
            node = self._inside + position
            parts = _split(self._values[position])
            if parts is None:
                continue
            if graph.is_known(node):
                break
            graph.pending[node] = []
            graph.lower_sequence(parts[1:], node, self._after + position + 1)
            self._settle(graph, position + 1)

    def _settle(self, graph: RuleGraph, position: int) -> None:
        """The place behind so many members: the end, or a separator and another."""
        node = self._after + position
        if graph.is_known(node):
            return
        edges = graph.pending[node] = []
        if position >= self._finishing:
            edges.append((EMPTY, 0, self.end, -1))
        if self._separator is None or (position == self._n and not self._extras):
            return
        if self._extras:
            item = graph.node()
            graph.lower(self._separator, node, item)
            self._offer(graph, item, position)
        else:
            graph.lower(self._separator, node, self._key + position)
            self._write_keys(graph, position)


def _split(value: Body) -> tuple[Body, ...] | None:
    """The parts of a value that begins with a terminal which is not empty, if there is more behind it."""
    if not isinstance(value, Sequence) or len(value.parts) < 2:
        return None
    first = value.parts[0]
    return value.parts if isinstance(first, Terminal) and not first.expr.nullable else None
