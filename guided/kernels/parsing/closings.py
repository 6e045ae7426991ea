"""Prices of stacks of an LALR parser under a token budget: bytes that are enough to end the text.

Terminals are counted in their shortest texts, and a stack is taken down by the cheapest ways; why this is enough is in
`guided.automata.lalr.closings`. Along the text that a price stands for prices fall by one with each byte, so what a
budget has promised can be kept.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data import views
from guided.kernels.data.asking import ask
from guided.kernels.data.layout import FAR, N_LOCAL, STAMP
from guided.kernels.data.local_arrays import local_longs
from guided.kernels.data.requests import WANT_REST, WANT_WAYS
from guided.kernels.jit import entry, inner
from guided.kernels.parsing.local_stacks import ASKED, LOCAL, beyond, forget, lexer_at, looked_up, pushed_on, top_of

__all__ = ["price_in", "price_lexed"]

_MASK32 = 0xFFFFFFFF

DEEPEST = 1024
"""Stacks below each other whose prices are found at once, 8 KB; deeper ones have none, and their tokens are tried."""


@inner
def _closing(table, stack, stamp):
    """Bytes that are enough to end the text from a stack, `FAR` where that is not known (yet); -1: request.

    The least over the ways in which its uppermost state is left, each of which makes it lower.
    """
    machine = views.machine(table)
    scratch = views.scratch(table)
    lalr = views.lalr(table)
    if stack >= LOCAL and scratch.closings[stack - LOCAL] >= 0:
        return np.int64(scratch.closings[stack - LOCAL])
    work = local_longs(DEEPEST)
    n = 1
    work[0] = stack
    while n:
        at = work[n - 1]
        item = top_of(machine, scratch.longs, at)
        below = item & _MASK32
        # At the bottom is the continuation that lets the text end.
        under = np.int64(0) if below == 1 else top_of(machine, scratch.longs, below) >> 32
        row = looked_up(table, lalr.pair_key, lalr.pair_row, WANT_WAYS, under, item >> 32)
        if row < 0:
            return np.int64(FAR)
        least = np.int64(FAR)
        missing = np.int64(0)
        for i in range(lalr.way_first[row], lalr.way_first[row + 1]):
            name = (lalr.ways[i] >> 48) - 1
            cost = lalr.ways[i] & _MASK32
            if name < 0:
                least = min(least, cost)
                continue
            left = np.int64(at)
            for _ in range((lalr.ways[i] >> 32) & 0xFFFF):
                left = top_of(machine, scratch.longs, left) & _MASK32
            top = (top_of(machine, scratch.longs, left) >> 32) - 1
            after = pushed_on(table, lalr.goto[top, name], left, stamp)
            if after < 0:
                return after
            known = np.int64(scratch.closings[after - LOCAL])
            if known < 0:
                missing = after
                break
            least = min(least, cost + known)
        if missing:
            if n == work.shape[0]:
                return np.int64(FAR)
            work[n] = missing
            n += 1
            continue
        n -= 1
        if at >= LOCAL:
            scratch.closings[at - LOCAL] = least
        elif n == 0:
            return least
    return np.int64(scratch.closings[stack - LOCAL])


@inner
def price_in(table, state, stack, stamp, asked):
    """Bytes that are enough to end the text from inside a terminal, `FAR` where it is not known (yet); -1: request."""
    lalr = views.lalr(table)
    row = np.int64(-1)
    if state < lalr.rest_row.shape[0]:
        row = np.int64(lalr.rest_row[state])
    if row < 0:
        ask(table, WANT_REST, state)
        return np.int64(FAR)
    least = np.int64(FAR)
    for i in range(lalr.rest_first[row], lalr.rest_first[row + 1]):
        left = lalr.rests[i] & _MASK32
        if left >= least:
            break
        after = beyond(table, stack, lalr.rests[i] >> 32, stamp, asked)
        if after < 0:
            return after
        if after:
            more = _closing(table, after, stamp)
            if more < 0:
                return more
            least = min(least, left + more)
    return least


@entry("long, long")
def price_lexed(table, state):
    """Bytes that are enough to end the text from a state, `FAR` where that is not known; -1: request."""
    machine = views.machine(table)
    counters = views.counters(table)
    lalr = views.lalr(table)
    asked = local_longs(ASKED)
    counters[N_LOCAL] = 0
    counters[STAMP] += 1
    stamp = counters[STAMP]
    least = np.int64(FAR)
    for t in range(machine.state_offset[state], machine.state_offset[state + 1]):
        inside, stack = np.int64(machine.thread_state[t]), np.int64(machine.thread_next[t])
        obligation = np.int64(machine.thread_obligation[t])
        if inside or obligation:
            inside = lexer_at(table, inside, stack, obligation)
            if inside <= 0:
                continue
        forget(lalr, asked)
        price = np.int64(price_in(table, inside, stack, stamp, asked) if inside else _closing(table, stack, stamp))
        if price < 0:
            return price
        least = min(least, price)
    if views.requests(table).count[0]:
        return np.int64(-1)
    return least
