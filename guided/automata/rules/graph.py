"""From the IR to the rule graph that kernels walk: nodes with edges that read a terminal, call a rule, or read nothing.

Rules are lowered when the parser first calls them, counters and free-order members one node at a time, so a schema of
a thousand definitions costs what the generated text visits.  Left-recursive rules become loops:
`guided.automata.rules.left_corner`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from itertools import islice
from typing import Any, cast
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from guided.automata.lexer.names import state_of_texts
from guided.automata.lexer.numbers import state_of_numbers
from guided.automata.lexer.states import StateTable
from guided.automata.rules.analysis import Analysis, is_counted
from guided.automata.rules.composites import Composites
from guided.automata.rules.costs import RuleCosts
from guided.automata.rules.counted import Copies
from guided.automata.rules.initial_arrays import (
    ACCEPT,
    FEW_RULES,
    InitialArrays,
    block_of,
    empty_arrays,
    of_few_rules,
    views_of,
)
from guided.automata.rules.left_corner import lower_cycle
from guided.automata.rules.members import FreeMembers
from guided.automata.rules.nodes import Edges, NodeMaker
from guided.automata.rules.options import lower_options
from guided.automata.rules.records import Record
from guided.collection import untrack
from guided.errors import LimitError
from guided.grammar.ir import (
    AnyTerminal,
    Body,
    Choice,
    Common,
    DeferredMembers,
    ListedTerminal,
    Members,
    RangedTerminal,
    Reference,
    Repetition,
    Rule,
    Sequence,
    Terminal,
)
from guided.grammar.regular.expr import EPSILON
from guided.kernels.data.addresses import address, address_rows
from guided.kernels.data.layout import CALL, EMPTY, FINAL, OPEN, READ, Rules
from guided.kernels.data.views import RULES

AT_FIRST = 10
"""Rules, records and terminals that the first request makes up to which it goes on with what was postponed: 10 to 20 us
each.  With 24 the first mask takes an eighth longer, and two fifths of the time of all others are saved.  Later
requests make nothing that they need not: more would save another request, of 20 us beside what is made, but two
expensive things in one mask are too much: with two more, a quarter more masks are above 0.2 ms."""

FEW, MORE = 12, 5
"""The first request makes one more for each ``MORE`` rules beyond ``FEW``: of such grammars the first mask takes long
anyway, a hundredth longer with these."""

GROWTH = 4
"""Times as many nodes or edges as there are get room when it is short: somebody waits 40 us for it."""

MAX_AT_ONCE = 4096
"""Lazy nodes made at once because nothing need be read before them: only where items or values may be empty."""


class RuleGraph:
    """Grows on demand: `expand` makes the edges of one node (and of the fragment around it) known."""

    def __init__(self, analysis: Analysis, start: int, states: StateTable, lexer_starts: list[int], ignored: list[int]):
        self.analysis = analysis
        self.states = states
        self._whole = analysis.whole
        self._lexer_starts = lexer_starts
        self.pending: dict[int, Edges] = {}
        """Edges that are not yet written, by node."""
        self._makers: list[NodeMaker] = []
        self._bases: list[int] = []
        """The first of the nodes that each maker has to itself, ascending."""
        self._sizes = array("i")
        """How many they are."""
        self.composites = Composites()
        self.may_reach = False
        """May an empty edge lead to a node whose edges are not yet made?"""
        self.is_first = True
        """Is this the first request, which somebody waits for, and which most of a text comes after?"""
        self.made = 0
        """Rules, records and terminals made so far."""
        n_rules = len(analysis.rules)
        self.enough = AT_FIRST + max(n_rules - FEW, 0) // MORE
        """How many of them there must be for a request not to make more than it must: 0 behind the first."""
        self._postponed: deque[int] = deque()
        """Nodes to be closed that are asked for soon; only the first request comes to them."""
        self.common: Common | None = None
        """Rules that others have too, where the graph begins with their nodes."""
        if n_rules > FEW_RULES or ignored:
            begin = empty_arrays(n_rules, np.asarray(ignored, np.int32))
        elif analysis.common is None:
            begin = of_few_rules()
        else:
            self.common = analysis.common
            begin = _beginning(states, analysis.common)
        self.first_rows: NDArray[np.int64] | None = None
        """The addresses of the arrays that a graph begins with, where they were made with them."""
        if begin.block is None:
            self.arrays = begin.arrays
        else:
            fresh = begin.block.fresh()
            self.arrays, self.first_rows = fresh.group(), fresh.rows
        self.arrays.rank.data[:n_rules] = array("i", analysis.rank)
        self.views = views_of(self.arrays)
        self._table = np.zeros((RULES + len(self.arrays), 3), np.int64)
        """The addresses of the arrays, for kernels that write nodes; nobody else's are in it."""
        self._table_address = address(self._table)
        self._addressed: Rules | None = None
        """The arrays whose addresses are in it."""
        if self.first_rows is not None:
            self._table[RULES:] = self.first_rows
            self._addressed = self.arrays
        self.n_nodes = begin.n_nodes
        self.n_edges = begin.n_edges
        self._labelled: list[AnyTerminal | tuple[DeferredMembers, int]] = [*begin.labelled]
        """What was read, by the labels of the edges that read it; of a record, with its first label."""
        self.reads = dict(begin.reads or ())
        """What `entered` has answered."""
        self.marks: dict[tuple[Terminal | None, ...], tuple[int, ...]] = {}
        self.described: dict[Body, tuple[int, ...]] = {}
        """What records wrote of the marks around their members, and of the values."""
        self._final = {*begin.final}
        self.closed = {*begin.closed}
        """Nodes of which all is known that closing them asks for."""
        self.first = self.node()
        self.add(self.first, CALL, start, ACCEPT)
        if start in analysis.nullable:
            # Not an edge to ACCEPT: a continuation tells that the text may end by holding ACCEPT itself.
            self._final.add(self.first)
        # No cycle leads through them.
        for item in (self, self._makers, self._bases, self._labelled, self._final, self.closed):
            untrack(item)

    def expand(self, *nodes: int) -> None:
        """Make the edges of ``nodes`` known, and of all nodes that closing them asks for next: one request for many.

        Also what is behind the bracket or colon that a rule begins with, since few tokens end there, and with the first
        request some of what was postponed.
        """
        queue, postponed = [*nodes], self._postponed
        closed, pending, n_rules = self.closed, self.pending, len(self.analysis.rules)
        closed.update(nodes)
        while queue:
            item = queue.pop()
            if not self.is_known(item):
                self.make(item)
            edges = pending.get(item)
            if edges is None:
                edges = self._written(item)
            leads = item <= n_rules and len(edges) == 1
            for kind, argument, target, _ in edges:
                if target not in pending and not self.is_known(target):
                    self.make(target)
                after = argument + 1 if kind == CALL else target
                if (leads or kind != READ) and after not in closed:
                    closed.add(after)
                    queue.append(after)
            while not queue and postponed and self.made < self.enough:
                later = postponed.popleft()
                if later not in closed:
                    closed.add(later)
                    queue.append(later)
        self._commit()
        if self.is_first:
            self._begun()

    def postpone(self, node: int) -> None:
        """Let a node be closed with the first request, where that comes to it."""
        if self.is_first:
            self._postponed.append(node)

    def _begun(self) -> None:
        """From here on requests make what they must and nothing else."""
        self.is_first = False
        self.enough = 0
        self._postponed.clear()

    def make_all(self) -> None:
        """Lower every rule but the first, and all that is in them; of rules that are finite, with nothing counted."""
        self._begun()
        for node in range(2, len(self.analysis.rules) + 1):
            self.expand(node)
        node = FEW_RULES
        while node + 1 < self.n_nodes:
            node += 1
            self.expand(node)

    def is_known(self, node: int) -> bool:
        """Are the edges of a node written or pending?"""
        firsts = self.views[0]
        return node in self.pending or (node < len(firsts) and firsts[node] >= 0)

    def make(self, node: int) -> None:
        """Let the edges of a node be pending that are not known, and of those that it leads to by empty edges."""
        before = len(self.pending)
        if node <= len(self.analysis.rules):
            self._lower_rule(node - 1, node)
        else:
            at = bisect_right(self._bases, node) - 1
            self._makers[at].make(self, node, self._bases[at])
        if self.may_reach:
            self._make_reached(list(islice(self.pending, before, None)))

    def edges(self, node: int) -> list[tuple[int, int, int]]:
        """The edges of a node as ``(kind, argument, target)``, lowered if need be."""
        if not self.is_known(node):
            self.make(node)
        if self.pending:
            self._commit()
        firsts, counts, _, kinds, arguments, targets, _ = self.views
        first = firsts[node]
        # Mostly one or two, for which slices of the columns take three times as long.
        return [(kinds[at], arguments[at], targets[at]) for at in range(first, first + counts[node])]

    def composed(self, lists: list[list[int]]) -> list[int]:
        """The nodes that stand for all of each list."""
        found = [self.composites.node(self, nodes) for nodes in lists]
        # Nodes were made, and others have a number now.
        self._commit()
        return found

    def all_edges(self, node: int) -> Edges:
        """The edges of a node, pending ones too, while others are made."""
        if not self.is_known(node):
            self.make(node)
        edges = self.pending.get(node)
        return self._written(node) if edges is None else edges

    def _written(self, node: int) -> Edges:
        firsts, counts, _, *columns = self.views
        first = firsts[node]
        stop = first + counts[node]
        return list(zip(*(column[first:stop].tolist() for column in columns), strict=True))

    def common_nodes(self) -> list[int]:
        """The nodes of rules that others have too."""
        if self.common is None:
            return []
        return [*range(2, len(self.common.rules) + 2), *range(FEW_RULES + 1, self.first)]

    def room(self, n: int) -> int:
        """Where so many edges can be written next, and all nodes that have a number."""
        at = self.n_edges
        self.n_edges = at + n
        self._reserve()
        self.n_edges = at
        return at

    def addresses(self) -> int:
        """What kernels get that write nodes: where the table of addresses of this graph's own arrays is."""
        if self._addressed is not self.arrays:
            self._table[RULES:] = address_rows(self.arrays)
            self._addressed = self.arrays
        return self._table_address

    def is_end(self, node: int) -> bool:
        """Is this the node at which its rule ends?"""
        return node in self._final

    def end_at(self, node: int) -> None:
        """Let a rule end at a node that is being made."""
        self._final.add(node)

    def lexer_start(self, terminal: int) -> int:
        """The state in which a lexer's terminal begins."""
        return self._lexer_starts[terminal]

    # Building fragments: edges are collected in `pending` and written by `_commit`.

    def node(self) -> int:
        """A new node, pending, without edges so far."""
        node = self.n_nodes
        self.n_nodes = node + 1
        self.pending[node] = []
        return node

    def reserve(self, n: int, maker: NodeMaker) -> int:
        """The first of ``n`` nodes whose edges ``maker`` makes, each when it is needed."""
        base = self.n_nodes
        self.n_nodes = base + n
        self._makers.append(maker)
        self._bases.append(base)
        self._sizes.append(n)
        return base

    def end_of(self, node: int) -> int:
        """For a node whose edges are not yet made, the end of what it is in, which can be reached from it."""
        return self._makers[bisect_right(self._bases, node) - 1].end

    def price(self, costs: RuleCosts, node: int) -> tuple[int, int] | None:
        """What a node costs to the end of what it is in and which node that is, where its maker can tell."""
        at = self._reserved(node)
        maker = self._makers[at] if at >= 0 else None
        if not isinstance(maker, (Record, FreeMembers, Copies)):
            return None
        price = maker.price(costs, self, node, self._bases[at])
        return None if price is None else (price, maker.end)

    def first_beside(self, node: int) -> int:
        """The first of the nodes that were reserved with this one, -1 where none were."""
        at = self._reserved(node)
        return self._bases[at] if at >= 0 else -1

    def _reserved(self, node: int) -> int:
        """Which of the reservations a node is in, -1 for none."""
        at = bisect_right(self._bases, node) - 1
        return at if at >= 0 and node < self._bases[at] + self._sizes[at] else -1

    def _make_reached(self, work: list[int]) -> None:
        """Make the lazy nodes that empty edges lead to, since what they offer is offered by the edges' sources."""
        made = 0
        for node in work:
            for kind, _, target, _ in self.pending[node]:
                if kind == EMPTY and not self.is_known(target):
                    made += 1
                    if made > MAX_AT_ONCE:
                        raise LimitError(
                            f"more than {MAX_AT_ONCE} copies of something that may be empty",
                            remedy="Make the repeated part non-empty, and the repetition itself optional.",
                        )
                    before = len(self.pending)
                    at = bisect_right(self._bases, target) - 1
                    self._makers[at].make(self, target, self._bases[at])
                    work.extend(islice(self.pending, before, None))

    def add(self, node: int, kind: int, argument: int, target: int, label: int = -1) -> None:
        """Add an edge to those of a node that is pending."""
        self.pending[node].append((kind, argument, target, label))

    def _commit(self) -> None:
        """Write the pending edges to the arrays."""
        pending, self.pending = self.pending, {}
        at = self.n_edges
        self.n_edges = at + sum(map(len, pending.values()))
        self._reserve()
        # Entry by entry through memory views: an array's own entries cost three times as much.
        firsts, counts, flags, kinds, arguments, targets, labels = self.views
        final = self._final
        empty: list[tuple[int, int]] = []
        for node, row in pending.items():
            firsts[node] = at
            counts[node] = len(row)
            flag = FINAL if node in final else 0
            for edge in row:
                kinds[at], arguments[at], targets[at], labels[at] = edge
                at += 1
                if edge[0] == EMPTY:
                    empty.append((node, edge[2]))
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
        """Room in the arrays for all nodes and edges.

        All are replaced when one is: a kernel that still has the old ones must not find nodes in them whose edges are
        only in the new.
        """
        old = self.arrays
        edges, nodes = old.kind.shape[0], old.node_first.shape[0]
        if self.n_edges <= edges and self.n_nodes <= nodes:
            return
        edges, nodes = max(edges, GROWTH * self.n_edges), max(nodes, GROWTH * self.n_nodes)
        grown: dict[str, NDArray[Any]] = {}
        for name in ("kind", "argument", "to", "label"):
            grown[name] = np.zeros(edges, getattr(old, name).dtype)
        for name in ("node_first", "node_count", "flags", "met"):
            grown[name] = np.full(nodes, -(name == "node_first"), getattr(old, name).dtype)
        for name, column in grown.items():
            column[: getattr(old, name).shape[0]] = getattr(old, name)
        self.arrays = old._replace(**grown)
        self.views = views_of(self.arrays)

    def label(self, number: int) -> str:
        """What an edge with this label reads, in the grammar's own words."""
        found = self._labelled[number]
        if not isinstance(found, tuple):
            return found.label
        members, first = found
        source, position = members.source, number - first
        n = len(members.required)
        if position < n:
            return source.key(position).label
        return source.placed(position - n, cast("AnyTerminal", source.value(position - n))).label

    def labelled(self, members: DeferredMembers, n: int) -> int:
        """The first of ``n`` labels, for the keys of members and behind them for the values that are terminals."""
        first = len(self._labelled)
        read = (members, first)
        untrack(read)
        self._labelled.extend([read] * n)
        return first

    # Lowering.

    def _lower_rule(self, rule: int, start: int) -> None:
        component = self.analysis.component[rule]
        if component is not None:
            lower_cycle(self, rule, component, start)
            return
        self.made += 1
        self.pending[start] = []
        end = self.node()
        self._final.add(end)
        self.lower(self.analysis.rules[rule].body, start, end)

    def lower(self, body: Body, start: int, end: int, *, skip_empty: bool = False) -> None:
        """Add edges for ``body`` from ``start`` to ``end``; a terminal's or call's own empty text can be left out."""
        if not self._whole and not self.analysis.can_finish(body):
            return
        # By the class itself, the most frequent first: matching asks each pattern in turn and takes twice as long.
        if type(body) is Terminal:
            self.read(body, self.pending[start], end, skip_empty=skip_empty)
        elif type(body) is Reference:
            edges = self.pending[start]
            edges.append((CALL, body.rule, end, -1))
            if body.rule in self.analysis.nullable and not skip_empty:
                edges.append((EMPTY, 0, end, -1))
        elif isinstance(body, (ListedTerminal, RangedTerminal)):
            self.read(body, self.pending[start], end)
        elif isinstance(body, Sequence):
            if body.parts:
                self.lower_sequence(body.parts, start, end)
            else:
                self.add(start, EMPTY, 0, end)
        elif isinstance(body, Choice) and self._whole:
            for option in body.options:
                self.lower(option, start, end)
        elif isinstance(body, Choice):
            lower_options(self, filter(self.analysis.can_finish, body.options), start, end)
        elif isinstance(body, Repetition):
            self._lower_repetition(body, start, end)
        elif isinstance(body, (Members, DeferredMembers)):
            self._lower_members(body, start, end)

    def lower_sequence(self, parts: tuple[Body, ...], start: int, end: int) -> None:
        """Add edges for the parts one after another."""
        left = len(parts)
        for part in parts:
            left -= 1
            after = self.node() if left else end
            if type(part) is Terminal and self._whole:
                self.read(part, self.pending[start], after)
            else:
                self.lower(part, start, after)
            start = after

    def read(self, body: AnyTerminal, edges: Edges, end: int, *, skip_empty: bool = False) -> None:
        """Add the edges that read a terminal to those of a node."""
        state, label, nullable = self.reads.get(body) or self.entered(body)
        if nullable and not skip_empty:
            edges.append((EMPTY, 0, end, -1))
        if state >= 0:
            edges.append((READ, state, end, label))

    def entered(self, body: AnyTerminal) -> tuple[int, int, bool]:
        """The lexer state in which a terminal begins (-1: none), the label of what reads it, and may it be empty?"""
        found = self.reads.get(body)
        if found is None:
            self.made += 1
            label = len(self._labelled)
            if isinstance(body, ListedTerminal):
                found = state_of_texts(self.states, body.texts, body.canonical), label, False
            elif isinstance(body, RangedTerminal):
                found = state_of_numbers(self.states, body.ranges), label, False
            elif body.lexer is not None:
                found = self._lexer_starts[body.lexer], label, False
            elif body.expr is EPSILON:
                found = -1, -1, True
            else:
                found = self.states.add(body.expr), label, body.expr.nullable
            self._labelled.append(body)
            self.reads[body] = found
        return found

    def _lower_repetition(self, body: Repetition, start: int, end: int) -> None:
        if body.low == 0:
            self.add(start, EMPTY, 0, end)
            if not self.analysis.can_finish(body.body) or body.high == 0:
                return
        if body.separator is not None and not self.analysis.can_finish(body.separator):
            self.lower(body.body, start, end)
        elif not is_counted(body):
            self._lower_short(body, start, end)
        else:
            Copies(self, body, end).begin(self, start)

    def _lower_short(self, body: Repetition, start: int, end: int) -> None:
        """Written out copies, then a loop when there is no upper bound."""
        at = start
        for position in range(max(body.low, 1) if body.high is None else body.high):
            item = at
            if position and body.separator is not None:
                item = self.node()
                self.lower(body.separator, at, item)
            after = self.node()
            self.lower(body.body, item, after)
            at = after
            if position + 1 >= body.low:
                self.add(at, EMPTY, 0, end)
        if body.high is None:
            item = self.node()
            if body.separator is None:
                self.add(at, EMPTY, 0, item)
            else:
                self.lower(body.separator, at, item)
            self.lower(body.body, item, at)

    def _lower_members(self, body: Members | DeferredMembers, start: int, end: int) -> None:
        if isinstance(body, DeferredMembers):
            Record(self, body, start, end)
        else:
            FreeMembers(self, body, end).begin(self, start)


_initial_arrays: WeakKeyDictionary[StateTable, dict[Common, InitialArrays]] = WeakKeyDictionary()


def _beginning(states: StateTable, common: Common) -> InitialArrays:
    """What graphs begin with that have some rules in common: these rules are lowered already."""
    made = _initial_arrays.setdefault(states, {})
    found = made.get(common)
    if found is None:
        # Rule 0 is the grammar's own; here it stands for nothing else than the first of the others.
        rules = (Rule("", Reference(1)), *common.rules)
        everything = frozenset(range(len(rules)))
        known = Analysis(
            rules, everything, frozenset(), (0, *common.rank), (None,) * len(rules), common.marks, whole=True
        )
        graph = RuleGraph(known, 1, states, [], [])
        graph.make_all()
        found = made[common] = InitialArrays(
            graph.arrays, block_of(graph.arrays), graph.n_nodes, graph.n_edges, graph._labelled, graph.reads,
            graph._final, {ACCEPT, *range(2, len(rules) + 1), *range(FEW_RULES + 1, graph.n_nodes)},
        )  # fmt: skip
    return found
