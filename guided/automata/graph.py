"""From the IR to the rule graph that kernels walk: nodes with edges that read a terminal, call a rule, or read nothing.

Rules are lowered when the parser first calls them, counters and free-order members one node at a time, so a schema of
a thousand definitions costs what the generated text visits.  Left-recursive rules become loops by the left-corner
construction: for a cycle K of rules that begin with each other, a text of rule A is a text of some rule of K that
begins with none of K, followed by the rests of rules of K that may begin with what was just completed, up to A.
"""

from __future__ import annotations

from collections.abc import Callable
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
        self._ends: dict[int, int] = {}
        """For lazy nodes, the end of the body they belong to, which can be reached from each of them."""
        self.prices: dict[int, tuple[Callable[[RuleCosts], int], int]] = {}
        """What lazy nodes cost to the end of their body, and which node that is."""
        self.n_nodes = 0
        self.n_edges = 0
        n_rules = len(analysis.rules)
        self.arrays = Rules(
            node_first=np.full(256, -1, np.int32),
            node_count=np.zeros(256, np.int32),
            flags=np.zeros(256, np.uint8),
            kind=np.zeros(512, np.uint8),
            argument=np.zeros(512, np.int32),
            to=np.zeros(512, np.int32),
            label=np.zeros(512, np.int32),
            rule_start=np.zeros(max(n_rules, 1), np.int32),
            rank=np.asarray(analysis.rank or (0,), np.int32),
            ignored=np.asarray(ignored, np.int32),
        )
        self._new()
        self.arrays.node_first[ACCEPT] = 0
        self.arrays.flags[ACCEPT] = OPEN
        self._first_rule = self.n_nodes
        for rule in range(n_rules):
            self.arrays.rule_start[rule] = self._new()
        self.first = self._new()
        self._pending[self.first] = []
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
            for kind, argument, target in self.edges(item):
                self._make(target)
                after = target if kind == EMPTY else int(self.arrays.rule_start[argument]) if kind == CALL else item
                if after not in seen:
                    seen.add(after)
                    queue.append(after)

    def _make(self, node: int) -> None:
        if self.arrays.node_first[node] < 0:
            if node in self._makers:
                self._makers.pop(node)(self)
            else:
                self._lower_rule(node - self._first_rule, node)
            self._commit()

    def edges(self, node: int) -> list[tuple[int, int, int]]:
        """The edges of a node as ``(kind, argument, target)``, lowered if need be."""
        self._make(node)
        first = int(self.arrays.node_first[node])
        stop = first + int(self.arrays.node_count[node])
        columns = (self.arrays.kind, self.arrays.argument, self.arrays.to)
        return list(zip(*(column[first:stop].tolist() for column in columns), strict=True))

    def is_end(self, node: int) -> bool:
        """Is this the node at which its rule ends?"""
        return node in self._final

    def lexer_start(self, terminal: int) -> int:
        """The state in which a lexer's terminal begins."""
        return self._lexer_starts[terminal]

    # Building fragments: edges are collected in `_pending` and written by `_commit`.

    def _new(self) -> int:
        node = self.n_nodes
        if node == self.arrays.node_first.shape[0]:
            old = self.arrays
            grown: dict[str, NDArray[Any]] = {
                "node_first": np.full(2 * node, -1, np.int32),
                "node_count": np.zeros(2 * node, np.int32),
                "flags": np.zeros(2 * node, np.uint8),
            }
            for name, array in grown.items():
                array[:node] = getattr(old, name)
            self.arrays = old._replace(**grown)
        self.n_nodes += 1
        return node

    def _node(self) -> int:
        node = self._new()
        self._pending[node] = []
        return node

    def _lazy(self, maker: Callable[[RuleGraph, int], None], end: int) -> int:
        """A node inside a body that finishes at ``end``, whose edges ``maker`` adds when they are needed."""
        node = self._new()
        self._ends[node] = end

        def make(graph: RuleGraph) -> None:
            graph._pending[node] = []
            del graph._ends[node]
            maker(graph, node)

        self._makers[node] = make
        return node

    def _make_reached(self) -> None:
        """Make the lazy nodes that empty edges lead to, since what they offer is offered by the edges' sources."""
        work = list(self._pending)
        done = set(work)
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
                    self._makers.pop(target)(self)
                    more = [item for item in self._pending if item not in done]
                    work += more
                    done.update(more)

    def _add(self, node: int, kind: int, argument: int, target: int, label: int = -1) -> None:
        self._pending[node].append((kind, argument, target, label))

    def _commit(self) -> None:
        self._make_reached()
        pending, self._pending = self._pending, {}
        total = sum(map(len, pending.values()))
        at = self.n_edges
        if at + total > self.arrays.kind.shape[0]:
            size = max(2 * self.arrays.kind.shape[0], at + total)
            old = self.arrays
            grown: dict[str, NDArray[Any]] = {
                name: np.zeros(size, getattr(old, name).dtype) for name in ("kind", "argument", "to", "label")
            }
            for name, array in grown.items():
                array[:at] = getattr(old, name)[:at]
            self.arrays = old._replace(**grown)
        arrays = self.arrays
        if total:
            flat = np.asarray([edge for edges in pending.values() for edge in edges], np.int32)
            arrays.kind[at : at + total] = flat[:, 0]
            arrays.argument[at : at + total] = flat[:, 1]
            arrays.to[at : at + total] = flat[:, 2]
            arrays.label[at : at + total] = flat[:, 3]
        for node, edges in pending.items():
            arrays.node_first[node] = at
            arrays.node_count[node] = len(edges)
            at += len(edges)
        self.n_edges = at
        self._flag(pending)

    def _flag(self, pending: dict[int, Edges]) -> None:
        flags = {node: FINAL if node in self._final else 0 for node in pending}
        for node, edges in pending.items():
            if any(kind != EMPTY for kind, _, _, _ in edges):
                flags[node] |= OPEN
        changed = True
        while changed:
            changed = False
            for node, edges in pending.items():
                for kind, _, target, _ in edges:
                    if kind == EMPTY:
                        more = flags[target] if target in flags else int(self.arrays.flags[target])
                        if more & ~flags[node]:
                            flags[node] |= more
                            changed = True
        for node, value in flags.items():
            self.arrays.flags[node] = value

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
        if not self.analysis.can_finish(body):
            return
        match body:
            case Terminal():
                if body.lexer is not None:
                    self._add(start, READ, self._lexer_starts[body.lexer], end, self.label_id(body.label))
                    return
                if body.expr.nullable and not skip_empty:
                    self._add(start, EMPTY, 0, end)
                if body.expr is not EPSILON:
                    self._add(start, READ, self.states.add(body.expr), end, self.label_id(body.label))
            case Reference(rule):
                self._add(start, CALL, rule, end)
                if rule in self.analysis.nullable and not skip_empty:
                    self._add(start, EMPTY, 0, end)
            case Sequence(parts):
                at = start
                for part in parts[:-1]:
                    after = self._node()
                    self._lower(part, at, after)
                    at = after
                if parts:
                    self._lower(parts[-1], at, end)
                else:
                    self._add(start, EMPTY, 0, end)
            case Choice(options):
                for option in options:
                    self._lower(option, start, end)
            case Repetition():
                self._lower_repetition(body, start, end)
            case Members():
                self._lower_members(body, start, end)

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
        keys = [self._node() for _ in range(n)]
        after = [self._node() for _ in range(n + 1)]  # after[p]: something was written, member p is next
        finishing = n
        while finishing and not declared[finishing - 1].required:
            finishing -= 1
        for position in range(n + 1):
            if position >= finishing:
                self._add(after[position], EMPTY, 0, end)
            if separable and (position < n or extras):
                item = self._node()
                self._lower(body.separator, after[position], item)
                self._offer(keys, extras, after, item, position)
        for position, member in enumerate(declared):
            value = self._node()
            self._lower(member.key, keys[position], value)
            self._lower(member.value, value, after[position + 1])
            if not member.required and position + 1 < n:
                self._add(keys[position], EMPTY, 0, keys[position + 1])
        if finishing == 0:
            self._add(start, EMPTY, 0, end)
        self._offer(keys, extras, after, start, 0)

    def _offer(self, keys: list[int], extras: list[Member], after: list[int], node: int, position: int) -> None:
        if position < len(keys):
            self._add(node, EMPTY, 0, keys[position])
        for extra in extras:
            value = self._node()
            self._lower(extra.key, node, value)
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
