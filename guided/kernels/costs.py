"""Cheapest completions of continuations, from what each rule node still needs at least."""

from __future__ import annotations

from guided.kernels.jit import entry
from guided.kernels.layout import N_SETS

_MASK32 = 0xFFFFFFFF

UNKNOWN = -1
"""A node whose cost Python has not computed yet."""


@entry
def price(machine, counters, node_cost, cost, first):
    """Fill ``cost[first:]`` for all continuations: the least after which the text may end.

    A continuation returns only to older ones, so one pass in order of ids is enough.  Returns the first node whose
    own cost is unknown, or -1 when all are priced.
    """
    for item in range(max(first, 1), counters[N_SETS]):
        best = 1 << 30
        for i in range(machine.set_offset[item], machine.set_offset[item + 1]):
            node = machine.items[i] >> 32
            frame = machine.items[i] & _MASK32
            if node == 0:
                best = 0
            elif node >= node_cost.shape[0] or node_cost[node] < 0:
                return node
            else:
                best = min(best, node_cost[node] + cost[frame])
        cost[item] = best
    return -1
