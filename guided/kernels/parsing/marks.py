"""Steps that also say where marked rules stand: for names that a checker beside the automaton must remember.

A rule of the rest of a member is called behind its name, so a thread inside a name of such a member goes on to a node
that calls the rule, and so does a thread that has just read the name.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data import views
from guided.kernels.data.asking import ask
from guided.kernels.data.layout import CALL
from guided.kernels.data.requests import EXPAND_NODE
from guided.kernels.jit import inner
from guided.kernels.parsing import threads

INSIDE, BEHIND, ALONE = 1, 2, 4
"""What `guided.kernels.entry.advance` says of the steps of a token, as bits.

`INSIDE`: a thread is then inside the name before a marked rule.  `BEHIND`: a thread was just behind such a name after
the token's first quotation mark; with `ALONE`, which `read_quotes` tells, all threads were.
"""

MARKS, MOST_QUOTES = 3, 20
"""Bits that `read_quotes` has for each quotation mark, and of how many it tells."""

_QUOTE = 0x22


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


@inner
def _all_marked(t, n):
    """Are the current threads ``[:n]`` all outside of terminals, and does a marked rule come next in all their items?

    Asked where it does in some.
    """
    machine = views.machine(t)
    rules = views.rules(t)
    scratch = views.scratch(t)
    marked = views.marked(t)
    for i in range(n):
        if (scratch.thread_a[i] >> 32) != 0:
            return False
        continuation = scratch.thread_b[i]
        for at in range(machine.set_offset[continuation], machine.set_offset[continuation + 1]):
            node = machine.items[at] >> 32
            first = rules.node_first[node]
            calls = False
            for edge in range(first, first + rules.node_count[node] if first >= 0 else first):
                if rules.kind[edge] == CALL and marked[rules.argument[edge]]:
                    calls = True
            if not calls:
                return False
    return True


@inner
def read_quotes(t, state, data, begin, end, inside):
    """The number of threads behind some bytes, which are then the current ones, 0 when dead and where there are more
    than `MOST_QUOTES`, -1: request; and what there is to say of each quotation mark, of the first in the lowest `MARKS`
    bits: `INSIDE` alone, or the others.
    """
    n = threads.load(t, state)
    said, shift = np.int64(0), np.int64(0)
    for i in range(begin, end):
        n = threads.step(t, False, n, data[i])
        if n <= 0:
            return n, said
        if data[i] == _QUOTE:
            if shift == MARKS * MOST_QUOTES:
                return np.int64(0), said
            calls = calls_marked(t, n, inside)
            if calls < 0:
                return np.int64(-1), said
            if calls:
                said |= np.int64(INSIDE if inside else BEHIND | ALONE if _all_marked(t, n) else BEHIND) << shift
            shift += MARKS
    return n, said
