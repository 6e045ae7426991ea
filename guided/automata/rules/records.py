"""Records whose values are made when they are looked at: nodes of fixed numbers, written some members at a time.

Written to the graph's arrays at once, since most nodes of most schemas are those of records.  Other members, in any
order or counted, are in `guided.automata.rules.members`.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, cast

import numpy as np

from guided.automata.lexer.names import state_excluding, states_of_names
from guided.automata.rules.nodes import Nodes
from guided.collection import untrack
from guided.grammar.ir import AnyTerminal, Body, Choice, DeferredMembers, Reference
from guided.kernels.data.layout import CALL, EMPTY, FAR, FINAL, OPEN, READ
from guided.kernels.jit import direct
from guided.kernels.parsing.record_nodes import OWN, write_members

if TYPE_CHECKING:
    from guided.automata.rules.costs import RuleCosts

GROUP = 64
"""Members written at once: most records have fewer, and the names of many take long where somebody waits."""

VALUES = 8
"""Members whose values are made at once, where they are not at hand."""


class Record:
    """The nodes of one record, all numbered when it is met.

    Per member: before its key, before the colon, before the value, and behind it, where white space may come.  Per
    place, behind so many members: before the separator, before the next key, and behind each sort of other name.

    Holds no graph, which holds it.
    """

    __slots__ = ("_body", "_finishing", "_inside", "_label", "_others", "_written", "end")

    def __init__(self, graph: Nodes, body: DeferredMembers, start: int, end: int) -> None:
        self._body = body
        self.end = end
        required = body.required
        n = len(required)
        finishing = n
        while finishing and not required[finishing - 1]:
            finishing -= 1
        self._finishing = finishing
        others = [(*graph.entered(key)[:2], rule) for key, rule in body.others]
        if body.besides:
            graph.made += 1
            _, label, rule = others[0]
            others = [(state_excluding(graph.states, body.besides, body.canonical), label, rule)]
        self._others = tuple(others)
        """The state that reads each sort of other name, its label, and the rule of what follows it."""
        n_others = len(self._others)
        self._inside = base = graph.reserve(4 * n + (2 + n_others) * (n + 1), self)
        self._label = graph.labelled(body, 2 * n)
        """The label of the first key; those of the other keys and of the values follow."""
        self._written = 0
        """How many members are written."""
        edges = graph.pending[start]
        if not finishing:
            edges.append((EMPTY, 0, end, -1))
        if n:
            edges.append((EMPTY, 0, base + 2 * n, -1))
        other = base + 6 * n + 2
        for state, label, rule in self._others:
            edges.append((READ, state, other, label))
            other += n + 1
            graph.postpone(rule + 1)
        self._write_group(graph)
        for item in (self, self._others, *self._others):
            untrack(item)

    def make(self, graph: Nodes, node: int, base: int) -> None:
        """Make the edges of one of the nodes known, and of some near it."""
        if node - base < self._written:
            self._write_values(graph, node - base)
        else:
            self._write_group(graph)

    def price(self, costs: RuleCosts, graph: Nodes, node: int, base: int) -> int:
        """What a node costs to the end of the record."""
        prices = costs.records.get(base)
        if prices is None:
            prices = costs.records[base] = self._prices(costs, graph)
        if prices[node - base] < 0:
            # Before a value, or before the colon, which are the first and the fourth of each member's nodes.
            n = len(self._body.required)
            place = (node - base) % n
            value = costs.value(self._body.source.value(place)) + prices[n + place]
            prices[place] = min(value, FAR)
            prices[3 * n + place] = min(costs.terminal(_marks(graph, self._body)[0]) + value, FAR)
        return prices[node - base]

    def _prices(self, costs: RuleCosts, graph: Nodes) -> list[int]:
        """What each of the nodes costs to the end of the record, in the order of their numbers.

        -1 where a value must be made for it on which nothing else rests: what may be left out costs too much before
        what must come, and behind that where another member's key alone is as cheap.
        """
        body = self._body
        required, source, terminal = body.required, body.source, costs.terminal
        n = len(required)
        colon, _, comma, _, space, _, skips = _marks(graph, body)
        lead, separator, trail = terminal(colon), terminal(comma), 0 if skips else terminal(space)
        keys = costs.terminals(self._read(graph, 0, n))
        names = [terminal(state) for state, _, _ in self._others]
        rules = [costs.rule(rule) for _, _, rule in self._others]
        values = [-1] * n
        after, before_key, item = [0] * (n + 1), [FAR] * (n + 1), [0] * (n + 1)
        other = min([name + rule for name, rule in zip(names, rules, strict=True)], default=FAR)
        for place in range(n, -1, -1):
            if place < n:
                written = keys[place] + lead + trail + after[place + 1]
                before_key[place] = before_key[place + 1]
                if required[place] or (place >= self._finishing and written < before_key[place]):
                    values[place] = costs.value(source.value(place))
                    written += values[place]
                    before_key[place] = written if required[place] else min(written, before_key[place])
            # Another name only puts off what must be written.
            after[place] = 0 if place >= self._finishing else separator + before_key[place]
            item[place] = min(before_key[place], other + after[place])
        behind = [trail + price for price in after[1:]]
        inside = [-1 if value < 0 else value + price for value, price in zip(values, behind, strict=True)]
        colons = [-1 if price < 0 else lead + price for price in inside]
        found = [*inside, *behind, *before_key[:n], *colons, *after, *item]
        for rule in rules:
            found += [rule + price for price in after]
        return [min(price, FAR) for price in found]

    def _write_group(self, graph: Nodes) -> None:
        """The next members, up to one which must come before all later ones, and the places behind."""
        body, others, first = self._body, self._others, self._written
        required, source = body.required, body.source
        n = len(required)
        stop = min(first + GROUP, n)
        while stop < n and not required[stop - 1]:
            stop += 1
        self._written = stop
        graph.made += 1
        end, base, described = self.end, self._inside, graph.described
        said = [
            0, base, n, first, stop, first + 1 if first else 0, end, FINAL if graph.is_end(end) else OPEN,
            self._finishing, self._label, len(others), *_marks(graph, body),
        ]  # fmt: skip
        for other in others:
            said += other
        n_edges, late, position = 0, -1, first
        for state, value in zip(self._read(graph, first, stop), source.at_hand(first, stop), strict=True):
            if value is None:
                said += (required[position], state, 0)
                if late < 0:
                    late = position
            else:
                found = described.get(value) or _described(graph, value)
                said += (required[position], state, *found)
                n_edges += found[0]
            position += 1
        if late >= 0:
            graph.postpone(base + late)
        if stop < n:
            graph.postpone(base + 2 * n + stop)
        count = stop - first
        said[0] = graph.room(5 * count + n_edges + (3 + 2 * len(others)) * (count + 1))
        graph.n_edges = direct(write_members)(graph.addresses(), np.frombuffer(array("q", said), np.int64))
        graph.closed.update(range(base + 2 * n + first, base + 2 * n + stop))

    def _read(self, graph: Nodes, first: int, stop: int) -> list[int]:
        """The states before some keys."""
        names, canonical = self._body.names[first:stop], self._body.canonical
        if None not in names:
            return states_of_names(graph.states, cast("tuple[bytes, ...]", names), canonical)
        states = iter(states_of_names(graph.states, [name for name in names if name is not None], canonical))
        key = self._body.source.key
        return [
            graph.entered(key(position))[0] if name is None else next(states)
            for position, name in enumerate(names, first)
        ]

    def _write_values(self, graph: Nodes, first: int) -> None:
        """What stands behind a colon where that is not at hand, and behind some that follow."""
        source = self._body.source
        n, base, pending = len(self._body.required), self._inside, graph.pending
        for position in range(first, min(first + VALUES, self._written)):
            node = base + position
            if graph.is_known(node):
                continue
            if position > first and (graph.made >= graph.enough or not source.is_soon_made(position)):
                continue
            value = source.value(position)
            pending[node] = []
            if isinstance(value, AnyTerminal):
                pending[node].append((READ, graph.entered(value)[0], node + n, self._label + n + position))
            else:
                graph.lower(value, node, node + n)


def _marks(graph: Nodes, body: DeferredMembers) -> tuple[int, ...]:
    """What stands around members: the states and labels of the marks, and may the last of them be left out?"""
    marks = body.lead, body.separator, body.trail
    found = graph.marks.get(marks)
    if found is None:
        (colon, colon_label, _), (comma, comma_label, _) = graph.entered(body.lead), graph.entered(body.separator)
        space, space_label, skips = graph.entered(body.trail) if body.trail is not None else (-1, -1, True)
        found = graph.marks[marks] = colon, colon_label, comma, comma_label, space, space_label, skips
    return found


def _described(graph: Nodes, value: Body) -> tuple[int, ...]:
    """The edges of a value as `write_members` reads them; the rules that it calls are asked for soon."""
    found = [1]
    if isinstance(value, AnyTerminal):
        found += (READ, graph.entered(value)[0], OWN)
    else:
        options = value.options if isinstance(value, Choice) else (value,)
        found[0] = len(options)
        for option in cast("tuple[AnyTerminal | Reference, ...]", options):
            if type(option) is Reference:
                graph.postpone(option.rule + 1)
                found += (CALL, option.rule, -1)
            else:
                inside, label, _ = graph.entered(cast("AnyTerminal", option))
                found += (READ, inside, label)
    made = graph.described[value] = tuple(found)
    return made
