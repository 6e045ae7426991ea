"""The nodes of a record's members, written to the arrays of a rule graph; what they are is in `automata.records`."""

from __future__ import annotations

import numpy as np

from guided.kernels.data import views
from guided.kernels.data.layout import CALL, EMPTY, OPEN, READ
from guided.kernels.jit import entry, inner

__all__ = ["HEAD", "OWN", "write_members"]

HEAD = 18
"""Numbers that a description begins with."""

OWN = -2
"""As the label of what a value reads: the record's own for that value."""


@inner
def _edge(rules, at, kind, argument, to, label):
    """Write an edge; where the next one goes."""
    rules.kind[at] = kind
    rules.argument[at] = argument
    rules.to[at] = to
    rules.label[at] = label
    return at + 1


@entry("long, longs")
def write_members(t, said):
    """Write the nodes of members ``first`` to ``stop`` and of the places behind them; the number of edges after it.

    ``said`` is the description, ``int64``: `HEAD` numbers as they are unpacked here, for each sort of other name the
    state that reads it, its label and the rule behind it, and for each member whether it must be there, the state that
    reads its key, the number of edges of its value (0: not made yet), and these as kind, argument and label.
    """
    rules = views.rules(t)
    at, base, n, first, stop, from_place = said[0], said[1], said[2], said[3], said[4], said[5]
    end, flag, finishing, label, n_others = said[6], said[7], said[8], said[9], said[10]
    colon, colon_label, comma, comma_label = said[11], said[12], said[13], said[14]
    space, space_label, skips = said[15], said[16], said[17]
    after, item = base + 4 * n, base + 5 * n + 1
    other = item + n + 1
    here = HEAD + 3 * n_others
    for place in range(from_place, stop + 1):
        node = after + place
        rules.node_first[node] = at
        flags = 0
        if place >= finishing:
            at = _edge(rules, at, EMPTY, 0, end, -1)
            flags = flag
        if place < n or n_others > 0:
            at = _edge(rules, at, READ, comma, item + place if n_others > 0 else base + 2 * n + place, comma_label)
            flags |= OPEN
        rules.node_count[node] = at - rules.node_first[node]
        rules.flags[node] = flags
        if n_others == 0:
            continue
        rules.node_first[item + place] = at
        if place < n:
            at = _edge(rules, at, EMPTY, 0, base + 2 * n + place, -1)
        for i in range(n_others):
            at = _edge(rules, at, READ, said[HEAD + 3 * i], other + i * (n + 1) + place, said[HEAD + 3 * i + 1])
        rules.node_count[item + place] = at - rules.node_first[item + place]
        rules.flags[item + place] = OPEN
        for i in range(n_others):
            node = other + i * (n + 1) + place
            rules.node_first[node], rules.node_count[node], rules.flags[node] = at, 1, OPEN
            at = _edge(rules, at, CALL, said[HEAD + 3 * i + 2], after + place, -1)
    for position in range(first, stop):
        inside, behind = base + position, base + n + position
        key, value = behind + n, behind + 2 * n
        rules.node_first[key], rules.flags[key] = at, OPEN
        at = _edge(rules, at, READ, said[here + 1], value, label + position)
        if said[here] == 0 and position + 1 < n:
            at = _edge(rules, at, EMPTY, 0, key + 1, -1)
        rules.node_count[key] = at - rules.node_first[key]
        rules.node_first[value], rules.node_count[value], rules.flags[value] = at, 1, OPEN
        at = _edge(rules, at, READ, colon, inside, colon_label)
        n_edges = said[here + 2]
        here += 3
        if n_edges > 0:
            rules.node_first[inside], rules.node_count[inside], rules.flags[inside] = at, n_edges, OPEN
        for _ in range(n_edges):
            own = label + n + position if said[here + 2] == OWN else said[here + 2]
            at = _edge(rules, at, said[here], said[here + 1], behind, own)
            here += 3
        rules.node_first[behind] = at
        flags = 0
        if skips:
            at = _edge(rules, at, EMPTY, 0, after + position + 1, -1)
            if position + 1 >= finishing:
                flags = flag
        if space >= 0:
            at = _edge(rules, at, READ, space, after + position + 1, space_label)
        if space >= 0 or position + 1 < n or n_others > 0:
            flags |= OPEN
        rules.node_count[behind] = at - rules.node_first[behind]
        rules.flags[behind] = flags
    return np.int64(at)
