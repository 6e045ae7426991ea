"""Continuations: what the parser still expects, as interned sets of (rule node, continuation to return to).

This is a generalised pushdown recogniser with a graph-structured stack whose nodes are values.  A call of a rule
pushes one continuation that merges all callers at this position; a call in tail position pushes nothing, because a
pair that can only return is replaced by what it returns to.  So a list's hundredth element meets the very
continuations of its second, and right recursion needs no stack.  Left recursion never gets here: `guided.automata`
rewrites it to loops, which also makes every continuation well-founded.

Sources: Scott and Johnstone, "GLL Parsing", 2010 (graph-structured stack); Leo 1991 for why tail calls matter.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data import views
from guided.kernels.data.asking import ask
from guided.kernels.data.layout import (
    CALL,
    EMPTY,
    FINAL,
    FUEL,
    MOST_ITEMS,
    N_CLOSURE,
    N_ITEMS,
    N_SETS,
    OPEN,
    READ,
    STAMP,
)
from guided.kernels.data.requests import COMPOSE, EXPAND_NODE, GROW_MACHINE, GROW_SCRATCH, OUT_OF_FUEL
from guided.kernels.jit import entry, inner

_MASK32 = 0xFFFFFFFF

MANY = 256
"""Items of a union from which on duplicates are found by a hash: of an ambiguous grammar's
continuations, thousands hold the same."""

SHORT = 48
"""Entries up to which insertion sorts: most lists have below ten, and are in order already."""


@inner
def stable_order(keys, n, order):
    """Write to ``order`` the indices in the order in which ``keys[:n]`` ascend, equal ones as they come.

    Shell's sort, as `sort_unique`: numpy's stable sort takes 1.7 s to compile for both kinds of keys.
    """
    for i in range(n):
        order[i] = i
    gap = np.int64(1)
    while SHORT * gap < n:
        gap = 3 * gap + 1
    while gap:
        for i in range(gap, n):
            item = order[i]
            key = keys[item]
            j = i - gap
            while j >= 0 and (keys[order[j]] > key or (keys[order[j]] == key and order[j] > item)):
                order[j + gap] = order[j]
                j -= gap
            order[j + gap] = item
        gap //= 3


@inner
def sort_unique(values, n):
    """Sort ``values[:n]`` in place, drop duplicates, return the new length."""
    # Shell's sort, which is insertion of short lists: numpy's takes 3 s to compile, with what it may have to say.
    gap = np.int64(1)
    while SHORT * gap < n:
        gap = 3 * gap + 1
    while gap:
        for i in range(gap, n):
            value = values[i]
            j = i - gap
            while j >= 0 and values[j] > value:
                values[j + gap] = values[j]
                j -= gap
            values[j + gap] = value
        gap //= 3
    m = np.int64(0)
    for i in range(n):
        if m == 0 or values[m - 1] != values[i]:
            values[m] = values[i]
            m += 1
    return m


@entry("long, longs, long")
def intern_set(table, values, n):
    """The id of the set ``values[:n]`` (sorted, unique); 0 for the empty one; -1 with a request when out of room."""
    machine = views.machine(table)
    counters = views.counters(table)
    if n == 0:
        return 0
    hashed = np.uint64(1469598103934665603)
    for i in range(n):
        hashed = (hashed ^ np.uint64(values[i])) * np.uint64(1099511628211)
        hashed ^= hashed >> np.uint64(29)
    size = machine.set_hash.shape[0]
    slot = np.int64(hashed % np.uint64(size))
    while machine.set_hash[slot] >= 0:
        found = machine.set_hash[slot]
        start = machine.set_offset[found]
        if machine.set_offset[found + 1] - start == n:
            same = True
            for i in range(n):
                if machine.items[start + i] != values[i]:
                    same = False
                    break
            if same:
                return found
        slot += 1
        if slot == size:
            slot = 0
    new = counters[N_SETS]
    start = counters[N_ITEMS]
    if start + n > machine.items.shape[0] or 2 * new + 2 > size or new + 2 > machine.set_offset.shape[0]:
        ask(table, GROW_MACHINE)
        return -1
    for i in range(n):
        machine.items[start + i] = values[i]
    machine.set_offset[new + 1] = start + n
    machine.closure_first[new] = -1
    machine.set_hash[slot] = new
    counters[N_SETS] = new + 1
    counters[N_ITEMS] = start + n
    counters[FUEL] -= n
    return new


@inner
def _swap(values, n):
    """Exchange the halves of ``values[:n]``, sort them and drop duplicates; the new length."""
    for i in range(n):
        values[i] = (values[i] & _MASK32) << 32 | values[i] >> 32
    return sort_unique(values, n)


@entry("long, long")
def intern_items(table, n):
    """Intern the items ``Scratch.longs[:n]``, in any order, many of them with composites; -1: request.

    All composites that are not made (`guided.automata.rules.composites`) are asked for.
    """
    machine = views.machine(table)
    counters = views.counters(table)
    out = views.scratch(table).longs
    if n <= counters[MOST_ITEMS]:
        return intern_set(table, out, sort_unique(out, n))
    n = _swap(out, n)
    m = np.int64(0)
    is_known = True
    i = np.int64(0)
    while i < n:
        frame = out[i] >> 32
        stop = i + 1
        # The item that lets the text end has no node.
        while stop < n and out[stop] >> 32 == frame and out[i] & _MASK32 > 0:
            stop += 1
        item = out[i]
        if stop > i + 1:
            for j in range(i, stop):
                out[j] = (out[j] & _MASK32) << 32
            listed = intern_set(table, out[i:stop], stop - i)
            if listed < 0:
                return -1
            item = frame << 32 | machine.composed[listed]
            if machine.composed[listed] == 0:
                is_known = False
                if not ask(table, COMPOSE, listed):
                    return -1
        if is_known:
            out[m] = item
            m += 1
        i = stop
    if not is_known:
        return -1
    m = _swap(out, m)
    counters[FUEL] -= n
    return intern_set(table, out, m)


@inner
def _unite(table, m, at, ended):
    """Add to ``Scratch.longs[:m]`` the items of the continuations at ``[at:at + ended]``, each once; -1: request."""
    machine = views.machine(table)
    counters = views.counters(table)
    scratch = views.scratch(table)
    out = scratch.longs
    slots = scratch.united
    size = slots.shape[0] // 2
    counters[STAMP] += 1
    stamp = counters[STAMP]
    counters[FUEL] -= m
    n = m
    m = np.int64(0)
    for which in range(-1, ended):
        start = np.int64(0)
        stop = n
        if which >= 0:
            start = machine.set_offset[out[at + which]]
            stop = machine.set_offset[out[at + which] + 1]
            counters[FUEL] -= stop - start
        for j in range(start, stop):
            item = out[j] if which < 0 else machine.items[j]
            slot = np.int64((np.uint64(item) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(20)) % np.uint64(size))
            while slots[2 * slot + 1] == stamp and slots[2 * slot] != item:
                slot += 1
                if slot == size:
                    slot = 0
            if slots[2 * slot + 1] != stamp:
                if 2 * m >= size or m + 1 >= at:
                    ask(table, GROW_SCRATCH)
                    return -1
                slots[2 * slot] = item
                slots[2 * slot + 1] = stamp
                out[m] = item
                m += 1
    return m


@inner
def settle(table, pairs, n):
    """Intern ``pairs[:n]`` after returning from every rule that may end: -1 with a request when not possible yet.

    All nodes that are not made are asked for.
    """
    rules = views.rules(table)
    machine = views.machine(table)
    counters = views.counters(table)
    scratch = views.scratch(table)
    out = scratch.longs
    m = np.int64(0)
    is_known = True
    for i in range(n):
        node = pairs[i] >> 32
        if rules.node_first[node] < 0:
            is_known = False
            if not ask(table, EXPAND_NODE, node):
                break
    if not is_known:
        return -1
    if 2 * n > out.shape[0]:
        ask(table, GROW_SCRATCH)
        return -1
    # What is returned to is kept at the upper end: many nodes may return to the same continuation.
    top = out.shape[0]
    at = top
    for i in range(n):
        flags = rules.flags[pairs[i] >> 32]
        if flags & OPEN:
            out[m] = pairs[i]
            m += 1
        if flags & FINAL:
            at -= 1
            out[at] = pairs[i] & _MASK32
    ended = np.int64(top - at)
    if ended > 1:
        ended = sort_unique(out[at:top], ended)
    total = m
    for i in range(at, at + ended):
        total += machine.set_offset[out[i] + 1] - machine.set_offset[out[i]]
    if total <= MANY:
        if total > at:
            ask(table, GROW_SCRATCH)
            return -1
        for i in range(at, at + ended):
            for j in range(machine.set_offset[out[i]], machine.set_offset[out[i] + 1]):
                out[m] = machine.items[j]
                m += 1
        counters[FUEL] -= m
        return intern_items(table, m)
    # A kernel that begins anew comes here with the same pairs again and again.
    given = intern_set(table, pairs, n)
    if given < 0:
        return -1
    if machine.composed[given] == 0:
        m = _unite(table, m, at, ended)
        if m < 0:
            return -1
        counters[FUEL] -= m
        found = intern_items(table, m)
        if found < 0:
            return -1
        machine.composed[given] = found
    return np.int64(machine.composed[given])


@inner
def union_sets(table, first, second):
    """The union of two continuations."""
    machine = views.machine(table)
    scratch = views.scratch(table)
    if first == second:
        return first
    out = scratch.longs
    m = np.int64(0)
    for which in range(2):
        item = first if which == 0 else second
        start = machine.set_offset[item]
        stop = machine.set_offset[item + 1]
        if m + stop - start > out.shape[0]:
            ask(table, GROW_SCRATCH)
            return -1
        for j in range(start, stop):
            out[m] = machine.items[j]
            m += 1
    return intern_items(table, m)


@inner
def _gather(table, at, frame, n_emits, n_calls):
    """Follow empty edges from ``at``: add its terminals to the emits and its calls to the calls; -1: request.

    Nodes that the present stamp was put on are left out: they were met with the same ``frame``.
    """
    rules = views.rules(table)
    counters = views.counters(table)
    scratch = views.scratch(table)
    stamp = counters[STAMP]
    stack = scratch.more
    depth = 0
    if rules.met[at] != stamp:
        rules.met[at] = stamp
        stack[0] = at
        depth = 1
    while depth > 0:
        depth -= 1
        node = stack[depth]
        first = rules.node_first[node]
        if first < 0:
            ask(table, EXPAND_NODE, node)
            return -1, -1
        for edge in range(first, first + rules.node_count[node]):
            kind = rules.kind[edge]
            if kind == READ:
                if n_emits == scratch.emits.shape[0]:
                    ask(table, GROW_SCRATCH)
                    return -1, -1
                scratch.emits[n_emits] = (np.int64(rules.to[edge]) << 32) | frame
                scratch.emit_states[n_emits] = rules.argument[edge]
                scratch.emit_labels[n_emits] = rules.label[edge]
                n_emits += 1
            elif kind == CALL:
                if n_calls == scratch.calls.shape[0]:
                    ask(table, GROW_SCRATCH)
                    return -1, -1
                scratch.calls[n_calls] = (np.int64(rules.to[edge]) << 32) | frame
                scratch.call_rules[n_calls] = rules.argument[edge]
                n_calls += 1
            elif kind == EMPTY:
                target = rules.to[edge]
                if rules.met[target] != stamp:
                    if depth == stack.shape[0]:
                        ask(table, GROW_SCRATCH)
                        return -1, -1
                    rules.met[target] = stamp
                    stack[depth] = target
                    depth += 1
    counters[FUEL] -= 1
    return n_emits, n_calls


@inner
def close(table, continuation):
    """Compute which terminals may come next at ``continuation`` and what follows each; 0 when done, -1: request."""
    rules = views.rules(table)
    machine = views.machine(table)
    counters = views.counters(table)
    scratch = views.scratch(table)
    if machine.closure_first[continuation] >= 0:
        return 0
    if counters[FUEL] < 0:
        ask(table, OUT_OF_FUEL)
        return -1
    n_emits = np.int64(0)
    n_calls = np.int64(0)
    start = machine.set_offset[continuation]
    n_items = machine.set_offset[continuation + 1] - start
    if n_items > scratch.longs.shape[0]:
        ask(table, GROW_SCRATCH)
        return -1
    # By what they return to: nodes that several of them lead to are looked at once.
    by_frame = scratch.longs
    for i in range(n_items):
        item = machine.items[start + i]
        by_frame[i] = (item & _MASK32) << 32 | item >> 32
    if n_items > 1:
        n_items = sort_unique(by_frame, n_items)
    for i in range(n_items):
        if i == 0 or by_frame[i - 1] >> 32 != by_frame[i] >> 32:
            counters[STAMP] += 1
        n_emits, n_calls = _gather(table, by_frame[i] & _MASK32, by_frame[i] >> 32, n_emits, n_calls)
        if n_emits < 0:
            return -1
    done = 0  # calls[:done] have been entered; the rest wait
    while done < n_calls:
        best = scratch.call_rules[done]
        for i in range(done + 1, n_calls):
            rule = scratch.call_rules[i]
            if rules.rank[rule] < rules.rank[best]:
                best = rule
        stop = done
        for i in range(done, n_calls):
            if scratch.call_rules[i] == best:
                scratch.call_rules[i] = scratch.call_rules[stop]
                scratch.call_rules[stop] = best
                held = scratch.calls[i]
                scratch.calls[i] = scratch.calls[stop]
                scratch.calls[stop] = held
                stop += 1
        frame = settle(table, scratch.calls[done:stop], stop - done)
        if frame < 0:
            return -1
        done = stop
        counters[STAMP] += 1
        n_emits, n_calls = _gather(table, rules.rule_start[best], frame, n_emits, n_calls)
        if n_emits < 0:
            return -1
    n_ignored = rules.ignored.shape[0]
    start = machine.set_offset[continuation]
    length = machine.set_offset[continuation + 1] - start
    first = counters[N_CLOSURE]
    if first + n_emits + n_ignored > machine.closure_state.shape[0]:
        ask(table, GROW_MACHINE)
        return -1
    # Group by automaton state: two uses of one terminal run as one thread with both continuations.
    order = scratch.calls
    stable_order(scratch.emit_states, n_emits, order)
    at = first
    i = 0
    while i < n_emits:
        state = scratch.emit_states[order[i]]
        label = scratch.emit_labels[order[i]]
        m = np.int64(0)
        while i < n_emits and scratch.emit_states[order[i]] == state:
            scratch.more[m] = scratch.emits[order[i]]
            m += 1
            i += 1
        after = settle(table, scratch.more, m)
        if after < 0:
            return -1
        for j in range(n_ignored):
            if rules.ignored[j] == state:
                after = union_sets(table, after, continuation)
                if after < 0:
                    return -1
        if after > 0:
            machine.closure_state[at] = state
            machine.closure_next[at] = after
            machine.closure_label[at] = label
            at += 1
    stop_own = at
    for j in range(n_ignored):
        known = False
        for i in range(first, stop_own):
            if machine.closure_state[i] == rules.ignored[j]:
                known = True
        if not known and length > 0:
            machine.closure_state[at] = rules.ignored[j]
            machine.closure_next[at] = continuation
            machine.closure_label[at] = -1
            at += 1
    counters[N_CLOSURE] = at
    machine.closure_count[continuation] = at - first
    machine.closure_first[continuation] = first
    return 0


@inner
def rehash_sets(table):
    """Enter all continuations but the empty one into the hash, which is empty."""
    machine = views.machine(table)
    counters = views.counters(table)
    slots = machine.set_hash
    size = slots.shape[0]
    for item in range(1, counters[N_SETS]):
        hashed = np.uint64(1469598103934665603)
        for i in range(machine.set_offset[item], machine.set_offset[item + 1]):
            hashed = (hashed ^ np.uint64(machine.items[i])) * np.uint64(1099511628211)
            hashed ^= hashed >> np.uint64(29)
        slot = np.int64(hashed % np.uint64(size))
        while slots[slot] >= 0:
            slot += 1
            if slot == size:
                slot = 0
        slots[slot] = item
