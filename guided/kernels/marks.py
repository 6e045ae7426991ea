"""Steps that also say where marked rules stand: for names that a checker beside the automaton must remember.

A rule of the rest of a member is called behind its name, so a thread inside a name of such a member goes on to a node
that calls the rule, and so does a thread that has just read the name.
"""

from __future__ import annotations

import numpy as np

from guided.kernels import threads, views
from guided.kernels.jit import entry, inner
from guided.kernels.layout import CALL, EXPAND_NODE, REQUEST, REQUEST_A

INSIDE, BEHIND = 1, 2
_QUOTE = 0x22


@inner
def _calls(t, n, inside, marked):
    """Does a marked rule come next in one of the current threads ``[:n]`` inside a terminal (or not); -1: request."""
    machine = views.machine(t)
    rules = views.rules(t)
    scratch = views.scratch(t)
    counters = views.counters(t)
    for i in range(n):
        if ((scratch.thread_a[i] >> 32) != 0) != inside:
            continue
        continuation = scratch.thread_b[i]
        for at in range(machine.set_offset[continuation], machine.set_offset[continuation + 1]):
            node = machine.items[at] >> 32
            first = rules.node_first[node]
            if first < 0:
                counters[REQUEST] = EXPAND_NODE
                counters[REQUEST_A] = node
                return -1
            for edge in range(first, first + rules.node_count[node]):
                if rules.kind[edge] == CALL and marked[rules.argument[edge]]:
                    return 1
    return 0


@entry
def advance_marked(t, lexed, state, token, marked):
    """The state after a token's bytes ``<< 2``, 0 when dead, -1: request; ``marked`` is by rule.

    With `INSIDE` where a thread is then inside the name before a marked rule, and with `BEHIND` where a thread was just
    behind such a name after the token's first quotation mark.
    """
    data = views.token_bytes(t, token)
    n = threads.load(t, state)
    found = 0
    quoted = False
    for i in range(data.shape[0]):
        n = threads.step(t, lexed, n, np.int64(data[i]))
        if n <= 0:
            return n
        if not quoted and data[i] == _QUOTE:
            quoted = True
            behind = _calls(t, n, np.bool_(False), marked)
            if behind < 0:
                return -1
            found = BEHIND * behind
    inside = _calls(t, n, np.bool_(True), marked)
    if inside < 0:
        return -1
    after = threads.intern_state(t, n)
    return after if after < 0 else after << 2 | (found + INSIDE * inside)
