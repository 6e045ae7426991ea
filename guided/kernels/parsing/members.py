"""What the parser asks for behind a name: the value, whose node is made when it is looked at."""

from __future__ import annotations

import numpy as np

from guided.kernels.data import views
from guided.kernels.data.layout import CALL, CANONICAL, CLOSES, READ, STRING
from guided.kernels.jit import inner

__all__ = ["value_wanted"]


@inner
def value_wanted(t, state):
    """The first node that is not made yet behind the colon of a name that is read in ``state``; 0: none.

    The name is a string that can only be closed, and the colon the one thing behind it.
    """
    automaton = views.automaton(t)
    machine = views.machine(t)
    rules = views.rules(t)
    for thread in range(machine.state_offset[state], machine.state_offset[state + 1]):
        inside = machine.thread_state[thread]
        if (
            automaton.mode[inside] & ~CANONICAL != STRING | CLOSES
            or automaton.first[inside] < 0
            or automaton.count[inside]
        ):
            continue
        continuation = machine.thread_next[thread]
        for item in range(machine.set_offset[continuation], machine.set_offset[continuation + 1]):
            node = machine.items[item] >> 32
            if rules.node_count[node] != 1 or rules.node_first[node] < 0:
                continue
            edge = rules.node_first[node]
            if rules.kind[edge] != READ:
                continue
            value = np.int64(rules.to[edge])
            first = rules.node_first[value]
            if first < 0:
                return value
            for way in range(first, first + rules.node_count[value]):
                if rules.kind[way] == CALL:
                    rule = np.int64(rules.rule_start[rules.argument[way]])
                    if rules.node_first[rule] < 0:
                        return rule
    return np.int64(0)
