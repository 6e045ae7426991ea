"""Stacks of an LALR parser that live as long as a mask: interned entries of working memory.

A number below `LOCAL` is a continuation of the constraint, made by a step.  Higher numbers are stacks made while tokens
are read ahead, on top of continuations or of each other.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data import views
from guided.kernels.data.asking import ask
from guided.kernels.data.bits import trailing_zeros
from guided.kernels.data.layout import N_LOCAL
from guided.kernels.data.local_arrays import local_ints
from guided.kernels.data.requests import GROW_SCRATCH, WANT_START, WANT_UNDER
from guided.kernels.jit import inner
from guided.kernels.parsing.lalr import MOST_LIVE_WORDS, MOST_PUSHED

__all__ = ["ASKED", "LOCAL", "beyond", "forget", "is_accepted", "lexer_at", "looked_up", "pushed_on", "top_of"]

_MASK32 = 0xFFFFFFFF

LOCAL = 1 << 31
"""Numbers from which on stacks are entries of `Scratch.longs`."""

ASKED = 2 + 2 * MOST_LIVE_WORDS
"""Numbers that are noted of one stack: the last terminal that was shifted and what it led to, and which terminals are
accepted and which are not."""


@inner
def top_of(machine, local, stack):
    """The LALR state on top of a stack, plus one, above 32 bits of the stack below."""
    if stack >= LOCAL:
        return local[stack - LOCAL]
    return machine.items[machine.set_offset[stack]]


@inner
def pushed_on(table, state, below, stamp):
    """The stack with an LALR state on top of another; -1: request."""
    counters = views.counters(table)
    scratch = views.scratch(table)
    slots = scratch.united
    size = slots.shape[0] // 2
    item = (np.int64(state) + 1) << 32 | below
    mixed = np.uint64(item) * np.uint64(0x9E3779B97F4A7C15)
    slot = np.int64((mixed ^ (mixed >> np.uint64(29))) % np.uint64(size))
    while slots[2 * slot + 1] == stamp:
        if scratch.longs[slots[2 * slot]] == item:
            return slots[2 * slot] + LOCAL
        slot += 1
        if slot == size:
            slot = 0
    n = counters[N_LOCAL]
    if n == scratch.longs.shape[0] or 2 * n >= size:
        ask(table, GROW_SCRATCH)
        return np.int64(-1)
    scratch.longs[n] = item
    scratch.closings[n] = -1
    slots[2 * slot] = n
    slots[2 * slot + 1] = stamp
    counters[N_LOCAL] = n + 1
    return n + LOCAL


@inner
def _shifted(table, stack, terminal, makes, stamp):
    """The stack after reducing and shifting a terminal, or whether there is one; 0: refused, -1: request."""
    lalr = views.lalr(table)
    if lalr.is_ignored[terminal]:
        return stack
    machine = views.machine(table)
    local = views.scratch(table).longs
    pushed = local_ints(MOST_PUSHED)
    n = np.int64(0)
    item = top_of(machine, local, stack)
    state = (item >> 32) - 1
    while True:
        action = np.int64(lalr.action[state, terminal])
        if action == 0:
            return np.int64(0)
        if action > 0:
            break
        rule = -action - 1
        drop = np.int64(lalr.rule_length[rule])
        if drop <= n:
            n -= drop
        else:
            drop -= n
            n = np.int64(0)
            while drop:
                stack = item & _MASK32
                item = top_of(machine, local, stack)
                drop -= 1
        state = np.int64(pushed[n - 1]) if n else (item >> 32) - 1
        state = np.int64(lalr.goto[state, lalr.rule_name[rule]])
        if n == MOST_PUSHED:
            for i in range(n):
                stack = pushed_on(table, pushed[i], stack, stamp)
                if stack < 0:
                    return stack
            item = top_of(machine, local, stack)
            n = np.int64(0)
        pushed[n] = state
        n += 1
    if not makes:
        return np.int64(1)
    for i in range(n):
        stack = pushed_on(table, pushed[i], stack, stamp)
        if stack < 0:
            return stack
    return pushed_on(table, action - 1, stack, stamp)


@inner
def forget(lalr, asked):
    """Begin to note what is found of another stack."""
    asked[0] = 0
    for word in range(2, 2 + 2 * lalr.frees.shape[1]):
        asked[word] = 0


@inner
def beyond(table, stack, terminal, stamp, asked):
    """The stack behind a terminal, asked once for all nodes of a range where the same one ends; as `_shifted`."""
    if asked[0] != terminal + 1:
        asked[1] = _shifted(table, stack, terminal, True, stamp)
        asked[0] = terminal + 1
    return asked[1]


@inner
def is_accepted(table, stack, terminals, stamp, asked):
    """Does the parser accept one of a row of terminals?  -1: request.

    The answers for each are noted in ``asked``: first those that are accepted, then those that are not.
    """
    words = terminals.shape[0]
    for word in range(words):
        if terminals[word] & asked[2 + word]:
            return np.int64(1)
    for word in range(words):
        left = np.uint64(terminals[word] & ~asked[2 + words + word])
        while left:
            terminal = np.int64(trailing_zeros(left))
            left &= left - np.uint64(1)
            bit = np.int64(np.uint64(1) << np.uint64(terminal))
            found = _shifted(table, stack, (word << 6) + terminal, False, stamp)
            if found:
                asked[2 + word] |= bit
                return np.int64(1) if found > 0 else found
            asked[2 + words + word] |= bit
    return np.int64(0)


@inner
def looked_up(table, keys, values, kind, first, second):
    """What a hash holds for two numbers; -1 where it is not known yet, which is asked for."""
    key = np.int64(first) << 28 | second
    size = keys.shape[0]
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    slot = np.int64((mixed ^ (mixed >> np.uint64(29))) % np.uint64(size))
    while keys[slot]:
        if keys[slot] == key:
            return np.int64(values[slot])
        slot += 1
        if slot == size:
            slot = 0
    ask(table, kind, first, second)
    return np.int64(-1)


@inner
def lexer_at(table, inside, stack, obligation):
    """The lexer state in which a thread goes on, at a boundary (``inside`` 0) that of the LALR state's own lexer.

    0 where nothing may come, -1 where it is not known yet, which is asked for.
    """
    lalr = views.lalr(table)
    if inside == 0:
        top = (top_of(views.machine(table), views.scratch(table).longs, stack) >> 32) - 1
        inside = np.int64(lalr.start[top])
        if inside < 0:
            ask(table, WANT_START, top)
    if obligation and inside > 0:
        inside = looked_up(table, lalr.under_key, lalr.under_state, WANT_UNDER, inside, obligation)
    return np.int64(inside)
