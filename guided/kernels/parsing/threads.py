"""Steps of a constraint's state by bytes: threads advance in the lexer automaton and cross terminal boundaries.

A thread is (automaton state, continuation, obligation).  Automaton state 0 means "at a boundary": the next byte
starts one of the terminals of the continuation's closure.  An obligation is a lexer state that must not reach a match:
the text that would make an earlier match longer (or otherwise preferred) would have been cut differently.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data import views
from guided.kernels.data.asking import ask
from guided.kernels.data.layout import FUEL, KEPT_AS, N_KEPT, N_STATES, N_THREADS, STRING
from guided.kernels.data.requests import (
    COMPARE,
    EXPAND_STATE,
    GROW_LISTED,
    GROW_MACHINE,
    GROW_SCRATCH,
    JOIN_OBLIGATIONS,
    NEED_PARTIAL,
    OPEN_BOUNDARY,
    OUT_OF_FUEL,
)
from guided.kernels.jit import entry, inner
from guided.kernels.lexing.strings import enter, move, owe, partial
from guided.kernels.parsing.lalr import open_stack, shift
from guided.kernels.parsing.parser import close, intern_items, stable_order

_MASK32 = 0xFFFFFFFF

MANY = 8
"""Threads from which on a merge is kept for the next byte: fewer are merged as soon as compared."""


@inner
def answered(joined, key):
    """What Python has answered about two obligations, -1 for nothing yet; see `layout.Extra`."""
    size = joined.shape[0]
    slot = np.int64((np.uint64(key) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(20)) % np.uint64(size))
    while joined[slot, 0]:
        if joined[slot, 0] == key:
            return joined[slot, 1]
        slot += 1
        if slot == size:
            slot = 0
    return np.int64(-1)


@inner
def join(table, one, other):
    """The obligation that holds when both do; 0 is none; -1 with a request when Python must make it."""
    if one == 0 or one == other:
        return other
    if other == 0:
        return one
    low = min(one, other)
    high = max(one, other)
    found = answered(views.joined(table), np.int64(low) << 32 | high)
    if found >= 0:
        return found
    ask(table, JOIN_OBLIGATIONS, low, high)
    return -1


@inner
def past(table, stack, terminal):
    """The LALR stack after ``terminal``, which leaves it alone when ignored; 0: refused, -1: request."""
    rules = views.rules(table)
    for i in range(rules.ignored.shape[0]):
        if rules.ignored[i] == terminal:
            return stack
    return shift(table, stack, terminal)


@inner
def boundary(table, lexed, state, continuation):
    """The continuation after a match that ends in ``state``: 0 when the parser refuses it, -1: request."""
    automaton = views.automaton(table)
    if lexed:
        return past(table, continuation, automaton.tag[state])
    return continuation


@entry("long, flag, long")
def open_boundary(table, lexed, continuation):
    """Make the closure of ``continuation`` known; 0 when it is, -1: request."""
    if views.machine(table).closure_first[continuation] >= 0:
        return 0
    if lexed:
        return open_stack(table, continuation)
    return close(table, continuation)


@inner
def _add(table, n, state, obligation, continuation):
    scratch = views.scratch(table)
    if n == scratch.thread_a.shape[0]:
        ask(table, GROW_SCRATCH)
        return -1
    scratch.thread_c[n] = (np.int64(state) << 32) | obligation
    scratch.thread_d[n] = continuation
    return n + 1


@inner
def _advance_thread(table, lexed, n, state, continuation, obligation, byte):
    """Add to the next threads what one thread inside a terminal becomes after ``byte``; the new length, -1: request."""
    automaton = views.automaton(table)
    place = move(automaton, enter(automaton, state), byte)
    if place < 0:
        ask(table, EXPAND_STATE, -place)
        return -1
    if place == 0:
        return n
    if place >> 32:
        inside = partial(automaton, place)
        if inside < 0:
            ask(table, NEED_PARTIAL, place)
            return -1
        return _add(table, n, inside, obligation, continuation)
    after = place
    if automaton.owes[after]:
        # Lexers alone have obligations across terminals, and their states owe nothing.
        obligation = np.int64(automaton.owes[after])
        after = np.int64(automaton.base[after])
    tag = automaton.tag[after]
    # A state in which no match may end goes on by construction; only the others need their edges known here.
    if tag >= 0 and automaton.first[after] < 0:
        ask(table, EXPAND_STATE, after)
        return -1
    if tag < 0 or automaton.count[after] > 0:
        n = _add(table, n, after, obligation, continuation)
        if n < 0:
            return -1
    end = after if tag >= 0 else np.int64(0)
    while end:
        beyond = boundary(table, lexed, end, continuation)
        if beyond < 0:
            return -1
        if beyond > 0:
            owed = join(table, obligation, automaton.pending[end])
            if owed < 0:
                return -1
            n = _add(table, n, 0, owed, beyond)
            if n < 0:
                return -1
        end = np.int64(automaton.also[end])
    return n


@inner
def _merge(table, lexed, n):
    """Sort the next threads into the current ones; same state and obligation: one thread with all continuations."""
    machine = views.machine(table)
    counters = views.counters(table)
    scratch = views.scratch(table)
    if n <= 1:
        # Nearly always.
        for i in range(n):
            scratch.thread_a[i] = scratch.thread_c[i]
            scratch.thread_b[i] = scratch.thread_d[i]
        return n
    order = scratch.calls
    stable_order(scratch.thread_c, n, order)
    m = np.int64(0)
    i = 0
    while i < n:
        key = scratch.thread_c[order[i]]
        j = i + 1
        while j < n and scratch.thread_c[order[j]] == key:
            j += 1
        if j == i + 1:
            scratch.thread_a[m] = key
            scratch.thread_b[m] = scratch.thread_d[order[i]]
            m += 1
        elif lexed:
            for p in range(i, j):
                known = False
                for q in range(i, p):
                    if scratch.thread_d[order[q]] == scratch.thread_d[order[p]]:
                        known = True
                if not known:
                    scratch.thread_a[m] = key
                    scratch.thread_b[m] = scratch.thread_d[order[p]]
                    m += 1
        else:
            length = np.int64(0)
            for p in range(i, j):
                item = scratch.thread_d[order[p]]
                start = machine.set_offset[item]
                stop = machine.set_offset[item + 1]
                if length + stop - start > scratch.longs.shape[0]:
                    ask(table, GROW_SCRATCH)
                    return -1
                for q in range(start, stop):
                    scratch.longs[length] = machine.items[q]
                    length += 1
            counters[FUEL] -= length
            united = intern_items(table, length)
            if united < 0:
                return -1
            scratch.thread_a[m] = key
            scratch.thread_b[m] = united
            m += 1
        i = j
    return _drop_forbidden(table, m)


@inner
def _drop_forbidden(table, n):
    """Drop of the current threads ``[:n]`` those of which another forbids less and is alike; how many are left.

    -1: request, for all pairs of obligations that were not compared yet.
    """
    scratch = views.scratch(table)
    joined = views.joined(table)
    dropped = scratch.thread_d
    is_known = True
    i = np.int64(0)
    m = np.int64(0)
    while i < n:
        stop = i + 1
        while stop < n and scratch.thread_a[stop] >> 32 == scratch.thread_a[i] >> 32:
            stop += 1
        for p in range(i, stop):
            dropped[p] = 0
            owed = scratch.thread_a[p] & _MASK32
            if owed == 0:
                continue
            for q in range(i, stop):
                if q == p or scratch.thread_b[q] != scratch.thread_b[p]:
                    continue
                less = scratch.thread_a[q] & _MASK32
                if less == 0:
                    dropped[p] = 1
                    break
                more = answered(joined, -(owed << 32 | less))
                if more < 0:
                    is_known = False
                    if not ask(table, COMPARE, owed, less):
                        return np.int64(-1)
                elif more > 0 and (q < p or answered(joined, -(less << 32 | owed)) == 0):
                    # Of those that forbid the same the first stays.
                    dropped[p] = 1
                    break
        for p in range(i, stop):
            if dropped[p] == 0:
                scratch.thread_a[m] = scratch.thread_a[p]
                scratch.thread_b[m] = scratch.thread_b[p]
                m += 1
        i = stop
    if not is_known:
        return np.int64(-1)
    return m


@inner
def _merge_again(table, lexed, n):
    """As `_merge`, but what was last merged is not merged again.

    While the tokens of one state are read one after another, all bytes of a class lead hundreds of threads alike.  The
    array of listed tokens is free then: it holds the threads before the merge, and behind them those after it.
    """
    counters = views.counters(table)
    if n < MANY or counters[N_KEPT] == 0:
        return _merge(table, lexed, n)
    scratch = views.scratch(table)
    kept = scratch.listed
    if 4 * n > kept.shape[0]:
        ask(table, GROW_LISTED)
        return np.int64(-1)
    same = np.int64(0)
    if counters[N_KEPT] == n + 1:
        while same < n and kept[2 * same] == scratch.thread_c[same] and kept[2 * same + 1] == scratch.thread_d[same]:
            same += 1
    if same == n:
        m = np.int64(counters[KEPT_AS])
        for i in range(m):
            scratch.thread_a[i] = kept[2 * (n + i)]
            scratch.thread_b[i] = kept[2 * (n + i) + 1]
        return m
    for i in range(n):
        kept[2 * i] = scratch.thread_c[i]
        kept[2 * i + 1] = scratch.thread_d[i]
    m = _merge(table, lexed, n)
    counters[N_KEPT] = n + 1
    counters[KEPT_AS] = m
    for i in range(m):
        kept[2 * (n + i)] = scratch.thread_a[i]
        kept[2 * (n + i) + 1] = scratch.thread_b[i]
    return m


@inner
def step(table, lexed, n, byte):
    """Replace the current threads ``[:n]`` by those after ``byte``; the new number, 0 when dead, -1: request."""
    automaton = views.automaton(table)
    machine = views.machine(table)
    counters = views.counters(table)
    scratch = views.scratch(table)
    counters[FUEL] -= n
    if counters[FUEL] < 0:
        ask(table, OUT_OF_FUEL)
        return -1
    m = np.int64(0)
    for t in range(n):
        key = scratch.thread_a[t]
        state = key >> 32
        obligation = key & _MASK32
        continuation = np.int64(scratch.thread_b[t])
        if obligation:
            owed = owe(automaton, obligation, automaton.decode[state], byte)
            if owed < 0:
                ask(table, EXPAND_STATE, -owed)
                return -1
            if owed > 0 and automaton.tag[owed] >= 0:
                continue
            obligation = owed
        if state:
            m = _advance_thread(table, lexed, m, state, continuation, obligation, byte)
            if m < 0:
                return -1
        else:
            if open_boundary(table, lexed, continuation) < 0:
                return -1
            first = machine.closure_first[continuation]
            for i in range(first, first + machine.closure_count[continuation]):
                start, following = np.int64(machine.closure_state[i]), np.int64(machine.closure_next[i])
                m = _advance_thread(table, lexed, m, start, following, obligation, byte)
                if m < 0:
                    return -1
    return _merge_again(table, lexed, m)


@entry("long, long")
def intern_state(table, n):
    """The id of the state that the current threads ``[:n]`` make; -1: request."""
    machine = views.machine(table)
    counters = views.counters(table)
    scratch = views.scratch(table)
    if n == 0:
        return 0
    hashed = np.uint64(1469598103934665603)
    for i in range(n):
        hashed = (hashed ^ np.uint64(scratch.thread_a[i])) * np.uint64(1099511628211)
        hashed ^= hashed >> np.uint64(31)
        hashed = (hashed ^ np.uint64(scratch.thread_b[i])) * np.uint64(1099511628211)
        hashed ^= hashed >> np.uint64(29)
    size = machine.state_hash.shape[0]
    slot = np.int64(hashed % np.uint64(size))
    while machine.state_hash[slot] >= 0:
        found = machine.state_hash[slot]
        start = machine.state_offset[found]
        if machine.state_offset[found + 1] - start == n:
            same = True
            for i in range(n):
                key = (np.int64(machine.thread_state[start + i]) << 32) | machine.thread_obligation[start + i]
                if key != scratch.thread_a[i] or machine.thread_next[start + i] != scratch.thread_b[i]:
                    same = False
                    break
            if same:
                return found
        slot += 1
        if slot == size:
            slot = 0
    new = counters[N_STATES]
    start = counters[N_THREADS]
    if start + n > machine.thread_state.shape[0] or 2 * new + 2 > size or new + 2 > machine.state_offset.shape[0]:
        ask(table, GROW_MACHINE)
        return -1
    for i in range(n):
        machine.thread_state[start + i] = scratch.thread_a[i] >> 32
        machine.thread_obligation[start + i] = scratch.thread_a[i] & _MASK32
        machine.thread_next[start + i] = scratch.thread_b[i]
    machine.state_offset[new + 1] = start + n
    machine.state_hash[slot] = new
    counters[N_STATES] = new + 1
    counters[N_THREADS] = start + n
    counters[FUEL] -= n
    return new


@inner
def load(table, state):
    """Make the threads of ``state`` the current ones; their number."""
    machine = views.machine(table)
    scratch = views.scratch(table)
    start = machine.state_offset[state]
    n = np.int64(machine.state_offset[state + 1] - start)
    for i in range(n):
        key = (np.int64(machine.thread_state[start + i]) << 32) | machine.thread_obligation[start + i]
        scratch.thread_a[i] = key
        scratch.thread_b[i] = machine.thread_next[start + i]
    return n


@entry("long, long")
def next_bytes(table, state):
    """Mark in the ``bytes_out`` array the bytes that some thread can read next, obligations aside; -1: request."""
    automaton = views.automaton(table)
    machine = views.machine(table)
    scratch = views.scratch(table)
    out = views.bytes_out(table)
    out[:] = 0
    n = load(table, state)
    for t in range(n):
        inside = scratch.thread_a[t] >> 32
        continuation = np.int64(scratch.thread_b[t])
        first = 0
        stop = 1
        if inside == 0:
            if machine.closure_first[continuation] < 0:
                # Opened by the caller: with the parser, this would be twice as much to compile.
                ask(table, OPEN_BOUNDARY, continuation)
                return -1
            first = machine.closure_first[continuation]
            stop = first + machine.closure_count[continuation]
        for i in range(first, stop):
            place = enter(automaton, inside if inside else np.int64(machine.closure_state[i]))
            if place >> 32 == 0 and not automaton.mode[place] & STRING and automaton.first[place] >= 0:
                # As `move` for each byte, which is not compiled into this loop where kernels are compiled together.
                edges = automaton.first[place]
                for at in range(edges, edges + automaton.count[place]):
                    if automaton.target[at]:
                        out[automaton.low[at] : np.int64(automaton.high[at]) + 1] = 1
                continue
            for byte in range(256):
                if not out[byte]:
                    after = move(automaton, place, byte)
                    if after < 0:
                        ask(table, EXPAND_STATE, -after)
                        return -1
                    out[byte] = after != 0
    return 0


@inner
def rehash_states(table):
    """Enter all states but the two fixed ones into the hash, which is empty."""
    machine = views.machine(table)
    counters = views.counters(table)
    slots = machine.state_hash
    size = slots.shape[0]
    for state in range(2, counters[N_STATES]):
        hashed = np.uint64(1469598103934665603)
        for i in range(machine.state_offset[state], machine.state_offset[state + 1]):
            key = (np.int64(machine.thread_state[i]) << 32) | machine.thread_obligation[i]
            hashed = (hashed ^ np.uint64(key)) * np.uint64(1099511628211)
            hashed ^= hashed >> np.uint64(31)
            hashed = (hashed ^ np.uint64(machine.thread_next[i])) * np.uint64(1099511628211)
            hashed ^= hashed >> np.uint64(29)
        slot = np.int64(hashed % np.uint64(size))
        while slots[slot] >= 0:
            slot += 1
            if slot == size:
                slot = 0
        slots[slot] = state
