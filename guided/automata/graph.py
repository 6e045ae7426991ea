"""From the IR to the rule graph that kernels walk: nodes with edges that read a terminal, call a rule, or read nothing.

Rules are lowered when the parser first calls them, counters and free-order members one node at a time, so a schema of
a thousand definitions costs what the generated text visits.  Left-recursive rules become loops by the left-corner
construction: for a cycle K of rules that begin with each other, a text of rule A is a text of some rule of K that
begins with none of K, followed by the rests of rules of K that may begin with what was just completed, up to A.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from guided.automata.analysis import Analysis, counts_trivially, is_counted
from guided.automata.costs import RuleCosts
from guided.automata.members import FreeMembers
from guided.automata.states import StateTable
from guided.errors import LimitError
from guided.grammar.ir import Body, Choice, Member, Members, Reference, Repetition, Sequence, Terminal
from guided.grammar.regular.expr import EPSILON
from guided.kernels.layout import CALL, EMPTY, FINAL, OPEN, READ, Rules

Edges: TypeAlias = "list[tuple[int, int, int, int]]"
"""``(kind, argument, target node, label)``."""

ACCEPT = 0
"""The node that stands for the end of the text."""

EAGER = 400
"""Nodes of one request from which on the parts of records wait until something comes to them."""

MAX_AT_ONCE = 4096
"""Lazy nodes made at once because nothing need be read before them: only where items or values may be empty."""


class RuleGraph:
    """Grows on demand: `expand` makes the edges of one node (and of the fragment around it) known."""

    def __init__(self, analysis: Analysis, start: int, states: StateTable, lexer_starts: list[int], ignored: list[int]):
        self.analysis = analysis
        self.states = states
        self.labels: list[str] = []
        self._lexer_starts = lexer_starts
        self._label_ids: dict[str, int] = {}
        self._makers: dict[int, Callable[[RuleGraph], None]] = {}
        """What adds the edges of lazy nodes; told the graph, so that a graph holds nothing that holds it."""
        self._pending: dict[int, Edges] = {}
        self._final: set[int] = set()
        self._reads: dict[Terminal, tuple[int, int]] = {}
        self._ends: dict[int, int] = {}
        """For lazy nodes, the end of the body they belong to, which can be reached from each of them."""
        self.prices: dict[int, tuple[Callable[[RuleCosts], int], int]] = {}
        """What lazy nodes cost to the end of their body, and which node that is."""
        self.n_nodes = 0
        self.n_edges = 0
        n_rules = len(analysis.rules)
        self._lowered = bytearray(n_rules + 1)
        """Which nodes from `ACCEPT` on, which counts as one, are of a rule that was lowered; rule n begins at n + 1."""
        self._lowered[ACCEPT] = 1
        size = n_rules + 256
        self.arrays = Rules(
            node_first=np.full(size, -1, np.int32),
            node_count=np.zeros(size, np.int32),
            flags=np.zeros(size, np.uint8),
            kind=np.zeros(512, np.uint8),
            argument=np.zeros(512, np.int32),
            to=np.zeros(512, np.int32),
            label=np.zeros(512, np.int32),
            rule_start=np.arange(1, max(n_rules, 1) + 1, dtype=np.int32),
            rank=np.asarray(analysis.rank or (0,), np.int32),
            ignored=np.asarray(ignored, np.int32),
        )
        self.arrays.node_first[ACCEPT] = 0
        self.arrays.flags[ACCEPT] = OPEN
        self._views = _views(self.arrays)
        self.n_nodes = n_rules + 1
        self.first = self._node()
        self._add(self.first, CALL, start, ACCEPT)
        if start in analysis.nullable:
            # Not an edge to ACCEPT: a continuation tells that the text may end by holding ACCEPT itself.
            self._final.add(self.first)
        self._commit()

    def expand(self, node: int) -> None:
        """Make the edges of ``node`` known, and of all nodes that closing it asks for next: one request for many."""
        queue = [node]
        seen = {node}
        while queue:
            self._make(item := queue.pop())
            edges = self._pending.get(item)
            for kind, argument, target, _ in self._written(item) if edges is None else edges:
                self._make(target)
                after = target if kind == EMPTY else argument + 1 if kind == CALL else item
                if after not in seen:
                    seen.add(after)
                    queue.append(after)
        self._commit()

    def _make(self, node: int) -> None:
        """Let the edges of a node be known or pending."""
        if node < len(self._lowered):
            if self._lowered[node]:
                return
            self._lowered[node] = 1
            before = len(self._pending)
            self._lower_rule(node - 1, node)
        elif node in self._makers:
            before = len(self._pending)
            self._makers.pop(node)(self)
        else:
            return
        if self._ends:
            self._make_reached(list(islice(self._pending, before, None)))

    def edges(self, node: int) -> list[tuple[int, int, int]]:
        """The edges of a node as ``(kind, argument, target)``, lowered if need be."""
        self._make(node)
        self._commit()
        return [edge[:3] for edge in self._written(node)]

    def _written(self, node: int) -> Edges:
        first = int(self.arrays.node_first[node])
        stop = first + int(self.arrays.node_count[node])
        columns = (self.arrays.kind, self.arrays.argument, self.arrays.to, self.arrays.label)
        return list(zip(*(column[first:stop].tolist() for column in columns), strict=True))

    def is_end(self, node: int) -> bool:
        """Is this the node at which its rule ends?"""
        return node in self._final

    def lexer_start(self, terminal: int) -> int:
        """The state in which a lexer's terminal begins."""
        return self._lexer_starts[terminal]

    # Building fragments: edges are collected in `_pending` and written by `_commit`.

    def _node(self) -> int:
        node = self.n_nodes
        self.n_nodes = node + 1
        self._pending[node] = []
        return node

    def _lazy(self, maker: Callable[[RuleGraph, int], None], end: int) -> int:
        """A node inside a body that finishes at ``end``, whose edges ``maker`` adds when they are needed."""
        node = self.n_nodes
        self.n_nodes = node + 1
        self._ends[node] = end

        def make(graph: RuleGraph) -> None:
            graph._pending[node] = []
            del graph._ends[node]
            maker(graph, node)

        self._makers[node] = make
        return node

    def _make_reached(self, work: list[int]) -> None:
        """Make the lazy nodes that empty edges lead to, since what they offer is offered by the edges' sources."""
        made = 0
        for node in work:
            for kind, _, target, _ in self._pending[node]:
                if kind == EMPTY and target in self._ends:
                    made += 1
                    if made > MAX_AT_ONCE:
                        raise LimitError(
                            f"more than {MAX_AT_ONCE} copies of something that may be empty",
                            remedy="Make the repeated part non-empty, and the repetition itself optional.",
                        )
                    before = len(self._pending)
                    self._makers.pop(target)(self)
                    work.extend(islice(self._pending, before, None))

    def _add(self, node: int, kind: int, argument: int, target: int, label: int = -1) -> None:
        self._pending[node].append((kind, argument, target, label))

    def _commit(self) -> None:
        """Write the pending edges to the arrays."""
        if not self._pending:
            return
        pending, self._pending = self._pending, {}
        at = self.n_edges
        self.n_edges += sum(map(len, pending.values()))
        self._reserve()
        # Entry by entry through memory views: an array's own slices cost more until there are hundreds.
        firsts, counts, flags, kinds, arguments, targets, labels = self._views
        empty: list[tuple[int, int]] = []
        for node, edges in pending.items():
            firsts[node] = at
            counts[node] = len(edges)
            flag = FINAL if node in self._final else 0
            for kind, argument, target, label in edges:
                kinds[at], arguments[at], targets[at], labels[at] = kind, argument, target, label
                at += 1
                if kind == EMPTY:
                    empty.append((node, target))
                else:
                    flag |= OPEN
            flags[node] = flag
        # What empty edges lead to is offered here too; nodes lead on to later ones, mostly.
        empty.reverse()
        changed = True
        while changed:
            changed = False
            for node, target in empty:
                more = flags[target] & ~flags[node]
                if more:
                    flags[node] |= more
                    changed = True

    def _reserve(self) -> None:
        """Room in the arrays for all nodes and edges."""
        old = self.arrays
        grown: dict[str, NDArray[Any]] = {}
        if self.n_edges > old.kind.shape[0]:
            for name in ("kind", "argument", "to", "label"):
                grown[name] = np.zeros(2 * self.n_edges, getattr(old, name).dtype)
        if self.n_nodes > old.node_first.shape[0]:
            for name in ("node_first", "node_count", "flags"):
                grown[name] = np.full(2 * self.n_nodes, -(name == "node_first"), getattr(old, name).dtype)
        for name, array in grown.items():
            array[: getattr(old, name).shape[0]] = getattr(old, name)
        if grown:
            self.arrays = old._replace(**grown)
            self._views = _views(self.arrays)

    def label_id(self, text: str) -> int:
        """The number of a label."""
        found = self._label_ids.get(text)
        if found is None:
            found = self._label_ids[text] = len(self.labels)
            self.labels.append(text)
        return found

    # Lowering.

    def _lower_rule(self, rule: int, start: int) -> None:
        component = self.analysis.component[rule]
        if component is not None:
            self._lower_cycle(rule, component, start)
            return
        self._pending[start] = []
        end = self._node()
        self._final.add(end)
        self._lower(self.analysis.rules[rule].body, start, end)

    def _lower(self, body: Body, start: int, end: int, *, skip_empty: bool = False) -> None:
        """Add edges for ``body`` from ``start`` to ``end``; a terminal's or call's own empty text can be left out."""
        if not self.analysis.whole and not self.analysis.can_finish(body):
            return
        match body:
            case Terminal():
                self._read(body, start, end, skip_empty=skip_empty)
            case Reference(rule):
                self._add(start, CALL, rule, end)
                if rule in self.analysis.nullable and not skip_empty:
                    self._add(start, EMPTY, 0, end)
            case Sequence(parts):
                if parts:
                    self._lower_sequence(parts, start, end)
                else:
                    self._add(start, EMPTY, 0, end)
            case Choice(options):
                for option in options:
                    self._lower(option, start, end)
            case Repetition():
                self._lower_repetition(body, start, end)
            case Members():
                self._lower_members(body, start, end)

    def _lower_later(self, body: Body, start: int, end: int) -> None:
        """As `_lower`, but what stands behind the first part of a sequence waits until something comes to it."""
        if isinstance(body, Sequence) and len(body.parts) > 1:
            first, rest = body.parts[0], body.parts[1:]
            self._lower(first, start, self._lazy(lambda graph, node: graph._lower_sequence(rest, node, end), end))
        else:
            self._lower(body, start, end)

    def _lower_sequence(self, parts: tuple[Body, ...], start: int, end: int) -> None:
        at = start
        for part in parts[:-1]:
            after = self._node()
            self._lower(part, at, after)
            at = after
        self._lower(parts[-1], at, end)

    def _read(self, body: Terminal, start: int, end: int, *, skip_empty: bool = False) -> None:
        edges = self._pending[start]
        if body.lexer is not None:
            edges.append((READ, self._lexer_starts[body.lexer], end, self.label_id(body.label)))
            return
        if body.expr.nullable and not skip_empty:
            edges.append((EMPTY, 0, end, -1))
        found = self._reads.get(body)
        if found is None:
            if body.expr is EPSILON:
                return
            found = self._reads[body] = (self.states.add(body.expr), self.label_id(body.label))
        edges.append((READ, found[0], end, found[1]))

    def _lower_repetition(self, body: Repetition, start: int, end: int) -> None:
        if body.low == 0:
            self._add(start, EMPTY, 0, end)
            if not self.analysis.can_finish(body.body) or body.high == 0:
                return
        if body.separator is not None and not self.analysis.can_finish(body.separator):
            self._lower(body.body, start, end)
        elif not is_counted(body):
            self._lower_short(body, start, end)
        else:
            self._count(body, {}, start, end, 0)

    def _lower_short(self, body: Repetition, start: int, end: int) -> None:
        """Written out copies, then a loop when there is no upper bound."""
        at = start
        for position in range(max(body.low, 1) if body.high is None else body.high):
            item = at
            if position and body.separator is not None:
                item = self._node()
                self._lower(body.separator, at, item)
            after = self._node()
            self._lower(body.body, item, after)
            at = after
            if position + 1 >= body.low:
                self._add(at, EMPTY, 0, end)
        if body.high is None:
            item = self._node()
            if body.separator is None:
                self._add(at, EMPTY, 0, item)
            else:
                self._lower(body.separator, at, item)
            self._lower(body.body, item, at)

    def _count(self, body: Repetition, nodes: dict[int, int], node: int, end: int, count: int) -> None:
        """Edges of the node after ``count`` copies."""
        # An empty copy may be left out: then every count suffices, and no empty edge leads from count to count.
        skippable = body.separator is None and self.analysis.may_be_empty(body.body)
        if skippable or count >= max(body.low, 1):
            self._add(node, EMPTY, 0, end)
        if body.high is not None and count == body.high:
            return
        item = node
        if count and body.separator is not None:
            item = self._node()
            self._lower(body.separator, node, item)
        after = count + 1
        if body.high is None:
            after = min(after, body.low)
        target = nodes.get(after)
        if target is None:
            target = nodes[after] = self._lazy(lambda graph, made: graph._count(body, nodes, made, end, after), end)
            self.prices[target] = (lambda costs: costs.copies(body, after), end)
        self._lower(body.body, item, target, skip_empty=skippable)

    def _lower_members(self, body: Members, start: int, end: int) -> None:
        if body.ordered and counts_trivially(body):
            self._chain_members(body, start, end)
        else:
            FreeMembers(self.analysis, body, end).edges(self, start, 0, 0, 0)

    def _chain_members(self, body: Members, start: int, end: int) -> None:
        """Members in order as a chain of nodes: keys[p] offers member p, or by an empty edge what comes later."""
        declared, extras = self.analysis.usable(body.declared), self.analysis.usable(body.extras)
        separable = self.analysis.can_finish(body.separator)
        n = len(declared)
        finishing = n
        while finishing and not declared[finishing - 1].required:
            finishing -= 1
        lazy = len(self._pending) > EAGER
        keys = [self._node() for _ in range(n)]

        def offer(graph: RuleGraph, node: int, position: int) -> None:
            if position >= finishing:
                graph._add(node, EMPTY, 0, end)
            if separable and (position < n or extras):
                item = graph._node()
                graph._lower(body.separator, node, item)
                graph._offer(keys, extras, after, item, position)

        # after[p]: something was written, member p is next
        after = [self._lazy(partial(offer, position=p), end) if lazy else self._node() for p in range(n + 1)]
        if not lazy:
            for position, node in enumerate(after):
                offer(self, node, position)
        for position, member in enumerate(declared):
            value = self._node()
            self._read(member.key, keys[position], value)
            if lazy:
                self._lower_later(member.value, value, after[position + 1])
            else:
                self._lower(member.value, value, after[position + 1])
            if not member.required and position + 1 < n:
                self._pending[keys[position]].append((EMPTY, 0, keys[position + 1], -1))
        if finishing == 0:
            self._pending[start].append((EMPTY, 0, end, -1))
        self._offer(keys, extras, after, start, 0)

    def _offer(self, keys: list[int], extras: list[Member], after: list[int], node: int, position: int) -> None:
        if position < len(keys):
            self._pending[node].append((EMPTY, 0, keys[position], -1))
        for extra in extras:
            value = self._node()
            self._read(extra.key, node, value)
            self._lower(extra.value, value, after[position])

    def _lower_cycle(self, rule: int, component: frozenset[int], start: int) -> None:
        """The left-corner loop for one rule of a left-recursive cycle."""
        before = set(self._pending)
        starts: dict[int, int] = {}
        hubs: dict[int, int] = {}
        for member in sorted(component & self.analysis.productive):
            starts[member], hubs[member] = self._node(), self._node()
            self._lower(self.analysis.rules[member].body, starts[member], hubs[member])
        # Copies of the nodes that can be reached before anything is read: their calls into the cycle move to the hubs.
        leading: dict[int, int] = {}
        work: list[int] = []

        def lead(node: int) -> int:
            if node not in leading:
                if node in self._ends:
                    self._makers.pop(node)(self)
                leading[node] = self._node()
                work.append(node)
            return leading[node]

        entries = [lead(node) for node in starts.values()]
        while work:
            node = work.pop()
            for kind, argument, target, label in list(self._pending[node]):
                if kind == EMPTY:
                    self._add(leading[node], EMPTY, 0, lead(target))
                elif kind == CALL and argument in hubs:
                    self._add(hubs[argument], EMPTY, 0, target)
                elif not (kind == CALL and argument in component):
                    self._add(leading[node], kind, argument, target, label)
        final = self._node()
        self._final.add(final)
        self._add(hubs[rule], EMPTY, 0, final)
        self._pending[start] = []
        for entry in entries:
            self._add(start, EMPTY, 0, entry)
        self._keep_useful(set(self._pending) - before, final)

    def _keep_useful(self, nodes: set[int], final: int) -> None:
        """Drop edges from which ``final`` is out of reach: another rule's text that never grows into this one's."""
        sources: dict[int, list[int]] = {}
        for node in nodes:
            for _, _, target, _ in self._pending[node]:
                sources.setdefault(target, []).append(node)
        for node, end in self._ends.items():
            sources.setdefault(end, []).append(node)
        useful = {final}
        work = [final]
        while work:
            for node in sources.get(work.pop(), ()):
                if node not in useful:
                    useful.add(node)
                    work.append(node)
        for node in nodes:
            self._pending[node] = [edge for edge in self._pending[node] if edge[2] in useful]


def _views(arrays: Rules) -> tuple[memoryview, ...]:
    """The arrays that are written when nodes are added, by node and by edge."""
    per_node = (arrays.node_first, arrays.node_count, arrays.flags)
    return tuple(map(memoryview, (*per_node, arrays.kind, arrays.argument, arrays.to, arrays.label)))  # type: ignore[arg-type]
