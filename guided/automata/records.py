"""Records whose values are made when they are looked at: nodes of fixed numbers, laid down some members at a time.

All structure is as `guided.automata.chains` lays it down, but written to the graph's arrays at once: most nodes of most
schemas are those of records.  Members in any order, or counted, are in `guided.automata.members`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from guided.automata.names import states_of_names
from guided.collection import untrack
from guided.grammar.ir import DeferredMembers, Reference, Terminal
from guided.kernels.layout import CALL, EMPTY, FINAL, OPEN, READ

if TYPE_CHECKING:
    from guided.automata.graph import RuleGraph

GROUP = 8
"""Members laid down at once: a request by itself costs what several of them do."""


class Record:
    """The nodes of one record, all numbered when it is met.

    Per member: before its key, before the colon, before the value, and behind it, where white space may come.  Per
    place, behind so many members: before the separator, before the next key, and behind each sort of other name.

    Holds no graph, which holds it.
    """

    __slots__ = (
        "_after",
        "_behind",
        "_body",
        "_finishing",
        "_inside",
        "_item",
        "_key",
        "_laid",
        "_n",
        "_other",
        "_others",
        "_placed",
        "_value",
        "end",
    )  # fmt: skip

    def __init__(self, graph: RuleGraph, body: DeferredMembers, start: int, end: int) -> None:
        self._body = body
        self.end = end
        required = body.required
        self._n = n = len(required)
        finishing = n
        while finishing and not required[finishing - 1]:
            finishing -= 1
        self._finishing = finishing
        self._others = tuple([(graph.entered(key), rule) for key, rule in body.others])
        """How each sort of other name is read, and the rule of what follows it."""
        n_others = len(self._others)
        self._inside = base = graph.reserve(4 * n + (2 + n_others) * (n + 1), self)
        self._behind = base + n
        self._key = base + 2 * n
        self._value = base + 3 * n
        self._after = base + 4 * n
        self._item = self._after + n + 1
        self._other = self._item + n + 1
        self._laid = bytearray(n)
        """Which members have their keys laid down."""
        self._placed = bytearray(n + 1)
        edges = graph.pending[start]
        if not finishing:
            edges.append((EMPTY, 0, end, -1))
        if n:
            edges.append((EMPTY, 0, self._key, -1))
        for i, ((state, label, _), rule) in enumerate(self._others):
            edges.append((READ, state, self._other + i * (n + 1), label))
            graph.postponed.append(rule + 1)
        self._lay_keys(graph, 0)
        if n:
            graph.postponed.append(self._inside)
        for item in (self, self._others, *self._others):
            untrack(item)

    def make(self, graph: RuleGraph, node: int, base: int) -> None:
        """Make the edges of one of the nodes known, and of some near it."""
        if node < self._key:
            self._lay_values(graph, (node - self._inside) % self._n)
        elif node < self._after:
            self._lay_keys(graph, (node - self._key) % self._n)
        else:
            self._lay_keys(graph, max((node - self._after) % (self._n + 1) - 1, 0))

    def _lay_keys(self, graph: RuleGraph, first: int) -> None:
        """Keys from one on, up to that of a member which must come before all later ones, and the places behind."""
        n, required, laid = self._n, self._body.required, self._laid
        stop = first
        # In the first request no more than must be.
        group = 1 if graph.is_first else GROUP
        while stop < n and not laid[stop] and (stop < first + group or not required[stop - 1]):
            laid[stop] = 1
            stop += 1
        if graph.is_first and stop < n:
            graph.postponed.append(self._key + stop)
        count, n_others = stop - first, len(self._others)
        entered = self._read(graph, first, stop)
        colon, colon_label, _ = graph.entered(self._body.lead)
        comma, comma_label, _ = graph.entered(self._body.separator)
        end, finishing = self.end, self._finishing
        flag = FINAL if graph.is_end(end) else OPEN
        at = graph.room(3 * count + (3 + 2 * n_others) * (count + 1))
        firsts, counts, flags, kinds, arguments, targets, labels = graph.views
        key, value, inside = self._key + first, self._value + first, self._inside + first
        for position, (state, label) in enumerate(entered, first):
            arguments[at], targets[at], labels[at] = state, value, label
            if required[position] or position + 1 == n:
                firsts[key], counts[key], flags[key] = at, 1, OPEN
                at += 1
            else:
                firsts[key], counts[key], flags[key] = at, 2, OPEN
                kinds[at + 1], targets[at + 1], labels[at + 1] = EMPTY, key + 1, -1
                at += 2
            arguments[at], targets[at], labels[at] = colon, inside, colon_label
            firsts[value], counts[value], flags[value] = at, 1, OPEN
            at += 1
            key += 1
            value += 1
            inside += 1
        graph.closed.update(range(self._key + first, key))
        places = self._placed
        for place in range(first + 1 if first else 0, stop + 1):
            if places[place]:
                continue
            places[place] = 1
            node = self._after + place
            firsts[node] = at
            made, more = 0, place < n or n_others
            if place >= finishing:
                kinds[at], targets[at], labels[at] = EMPTY, end, -1
                at += 1
                made = 1
            if more:
                arguments[at], labels[at] = comma, comma_label
                targets[at] = self._item + place if n_others else self._key + place
                at += 1
            counts[node] = made + 1 if more else made
            flags[node] = (flag if made else 0) | (OPEN if more else 0)
            if not n_others:
                continue
            node = self._item + place
            firsts[node], counts[node], flags[node] = at, n_others + (place < n), OPEN
            if place < n:
                kinds[at], targets[at], labels[at] = EMPTY, self._key + place, -1
                at += 1
            other = self._other + place
            for (state, label, _), _ in self._others:
                arguments[at], targets[at], labels[at] = state, other, label
                at += 1
                other += n + 1
            other = self._other + place
            for _, rule in self._others:
                firsts[other], counts[other], flags[other] = at, 1, OPEN
                kinds[at], arguments[at], targets[at], labels[at] = CALL, rule, self._after + place, -1
                at += 1
                other += n + 1
        graph.n_edges = at

    def _read(self, graph: RuleGraph, first: int, stop: int) -> list[tuple[int, int]]:
        """The states before some keys, and the labels of what reads them."""
        body = self._body
        names = body.names[first:stop]
        labels = [graph.labelled_at(None, body, position) for position in range(first, stop)]
        texts = [name for name in names if name is not None]
        states = iter(states_of_names(graph.states, texts))
        return [
            (graph.entered(body.source.key(first + i))[0] if name is None else next(states), label)
            for i, (name, label) in enumerate(zip(names, labels, strict=True))
        ]

    def _lay_values(self, graph: RuleGraph, first: int) -> None:
        """What stands behind some colons."""
        body, n = self._body, self._n
        stop = min(first + GROUP, n)
        source = body.source
        found = [(first, source.value(first))]
        found += [(at, source.value(at)) for at in range(first + 1, stop) if source.is_at_hand(at)]
        space, space_label, skips = graph.entered(body.trail) if body.trail is not None else (-1, -1, True)
        flag = FINAL if graph.is_end(self.end) else OPEN
        for position, value in found:
            if type(value) is not Terminal and type(value) is not Reference:
                node = self._inside + position
                if graph.is_known(node):
                    break
                graph.pending[node] = []
                graph.lower(value, node, self._behind + position)
        at = graph.room(3 * len(found))
        firsts, counts, flags, kinds, arguments, targets, labels = graph.views
        for position, value in found:
            node, behind, after = self._inside + position, self._behind + position, self._after + position + 1
            if firsts[behind] >= 0:
                break
            if type(value) is Terminal:
                arguments[at], targets[at] = graph.entered(value)[0], behind
                labels[at] = graph.labelled_at(value, body, position)
            elif type(value) is Reference:
                kinds[at], arguments[at], targets[at], labels[at] = CALL, value.rule, behind, -1
                graph.postponed.append(value.rule + 1)
            if type(value) is Terminal or type(value) is Reference:
                firsts[node], counts[node], flags[node] = at, 1, OPEN
                at += 1
            firsts[behind] = at
            made = 0
            if skips:
                kinds[at], targets[at], labels[at] = EMPTY, after, -1
                at += 1
                made = 1
            if space >= 0:
                arguments[at], targets[at], labels[at] = space, after, space_label
                at += 1
                made += 1
            counts[behind] = made
            ends = skips and position + 1 >= self._finishing
            more = space >= 0 or position + 1 < n or self._others
            flags[behind] = (flag if ends else 0) | (OPEN if more else 0)
        graph.n_edges = at
