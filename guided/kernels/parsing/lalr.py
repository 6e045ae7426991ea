"""The LALR parser over stacks that are continuations: shifting a terminal, and which lexer begins at a stack.

A stack is a continuation with one item, ``LALR state + 1 << 32 | stack below``.  Which terminals the parser accepts at
a stack is found here, without making a stack; Python makes the lexer that begins there, once for each LALR state and
set of terminals (`guided.automata.lalr.stacks`).
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data import views
from guided.kernels.data.asking import ask
from guided.kernels.data.layout import FUEL, N_CLOSURE
from guided.kernels.data.local_arrays import local_ints, local_longs
from guided.kernels.data.requests import GROW_MACHINE, OPEN_BOUNDARY
from guided.kernels.jit import inner
from guided.kernels.parsing.parser import intern_set

_MASK32 = 0xFFFFFFFF

MOST_PUSHED = 256
"""States that one terminal's reductions leave above the stack; a rule of some hundred optional parts leaves as many."""

MOST_LIVE_WORDS = 64
"""Words of 64 terminals: Lark's grammar of Python has 94 terminals."""


@inner
def shift(table, stack, terminal):
    """The LALR stack after reducing and shifting ``terminal``: 0 when the parser refuses it, -1: request."""
    lalr = views.lalr(table)
    machine = views.machine(table)
    scratch = views.scratch(table)
    while True:
        item = machine.items[machine.set_offset[stack]]
        state = (item >> 32) - 1
        action = lalr.action[state, terminal]
        if action == 0:
            return 0
        if action > 0:
            scratch.longs[0] = (np.int64(action) << 32) | stack
            return intern_set(table, scratch.longs, 1)
        rule = -action - 1
        for _ in range(lalr.rule_length[rule]):
            stack = machine.items[machine.set_offset[stack]] & _MASK32
        state = (machine.items[machine.set_offset[stack]] >> 32) - 1
        target = lalr.goto[state, lalr.rule_name[rule]]
        if terminal == lalr.last[1] and target == lalr.last[0]:
            return 1
        scratch.longs[0] = (np.int64(target + 1) << 32) | stack
        stack = intern_set(table, scratch.longs, 1)
        if stack < 0:
            return -1


@inner
def accepts(lalr, machine, stack, terminal):
    """Would the parser, after its reductions, shift ``terminal``?  -1: too many states are pushed to say it here."""
    pushed = local_ints(MOST_PUSHED)
    n = np.int64(0)
    while True:
        if n:
            state = np.int64(pushed[n - 1])
        else:
            state = (machine.items[machine.set_offset[stack]] >> 32) - 1
        action = lalr.action[state, terminal]
        if action == 0:
            return 0
        if action > 0:
            return 1
        rule = -action - 1
        for _ in range(lalr.rule_length[rule]):
            if n:
                n -= 1
            else:
                stack = machine.items[machine.set_offset[stack]] & _MASK32
        if n:
            state = np.int64(pushed[n - 1])
        else:
            state = (machine.items[machine.set_offset[stack]] >> 32) - 1
        if n == MOST_PUSHED:
            return -1
        pushed[n] = lalr.goto[state, lalr.rule_name[rule]]
        n += 1


@inner
def open_stack(table, stack):
    """Make the closure of a stack known: the one lexer that begins there; 0 when it is, -1: request.

    Asks Python only for a lexer of an LALR state with terminals that did not occur together yet.
    """
    lalr = views.lalr(table)
    machine = views.machine(table)
    counters = views.counters(table)
    words = lalr.opening_live.shape[1]
    if words > MOST_LIVE_WORDS:
        ask(table, OPEN_BOUNDARY, stack)
        return -1
    state = (machine.items[machine.set_offset[stack]] >> 32) - 1
    live = local_longs(MOST_LIVE_WORDS)
    for i in range(words):
        live[i] = 0
    for i in range(lalr.context_first[state], lalr.context_first[state + 1]):
        terminal = np.int64(lalr.context[i])
        accepted = 1 if lalr.is_ignored[terminal] else accepts(lalr, machine, stack, terminal)
        if accepted < 0:
            ask(table, OPEN_BOUNDARY, stack)
            return -1
        live[terminal >> 6] |= np.int64(accepted) << (terminal & 63)
    counters[FUEL] -= lalr.context_first[state + 1] - lalr.context_first[state]
    hashed = np.uint64(state)
    for i in range(words):
        hashed = (hashed ^ np.uint64(live[i])) * np.uint64(1099511628211)
        hashed ^= hashed >> np.uint64(29)
    size = lalr.opening_slot.shape[0]
    slot = np.int64(hashed % np.uint64(size))
    while True:
        found = np.int64(lalr.opening_slot[slot])
        if found < 0:
            ask(table, OPEN_BOUNDARY, stack)
            return -1
        same = lalr.opening_state[found] == state
        for i in range(words):
            same &= lalr.opening_live[found, i] == live[i]
        if same:
            break
        slot += 1
        if slot == size:
            slot = 0
    at = counters[N_CLOSURE]
    if at + 1 > machine.closure_state.shape[0]:
        ask(table, GROW_MACHINE)
        return -1
    start = lalr.opening_start[found]
    machine.closure_state[at] = start
    machine.closure_next[at] = stack
    machine.closure_label[at] = -1
    machine.closure_count[stack] = 1 if start else 0
    machine.closure_first[stack] = at
    counters[N_CLOSURE] = at + 1
    return 0
