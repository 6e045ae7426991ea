"""Steps that also say where marked rules stand: for names that a checker beside the automaton must remember.

A rule of the rest of a member is called behind its name, so a thread inside a name of such a member goes on to a node
that calls the rule, and so does a thread that has just read the name.
"""

from __future__ import annotations

from guided.kernels.data import views
from guided.kernels.data.asking import ask
from guided.kernels.data.layout import CALL
from guided.kernels.data.requests import EXPAND_NODE
from guided.kernels.jit import inner

INSIDE, BEHIND = 1, 2
"""What `guided.kernels.entry.advance` says of the steps of a token, as bits.

`INSIDE`: a thread is then inside the name before a marked rule.  `BEHIND`: a thread was just behind such a name after
the token's first quotation mark.
"""


@inner
def calls_marked(t, n, inside):
    """Does a marked rule come next in one of the current threads ``[:n]`` inside a terminal (or not); -1: request."""
    machine = views.machine(t)
    rules = views.rules(t)
    scratch = views.scratch(t)
    marked = views.marked(t)
    for i in range(n):
        if ((scratch.thread_a[i] >> 32) != 0) != inside:
            continue
        continuation = scratch.thread_b[i]
        for at in range(machine.set_offset[continuation], machine.set_offset[continuation + 1]):
            node = machine.items[at] >> 32
            first = rules.node_first[node]
            if first < 0:
                ask(t, EXPAND_NODE, node)
                return -1
            for edge in range(first, first + rules.node_count[node]):
                if rules.kind[edge] == CALL and marked[rules.argument[edge]]:
                    return 1
    return 0
