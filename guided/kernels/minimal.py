"""The states of minimal automata, each language once: a register that automata are placed in.

Of an automaton whose equal states are merged, those that lead to each other are placed together, after all else that
they lead to: they are found as they have been placed before, or are new.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.jit import entry, inner

N_STATES, N_EDGES = 0, 1
"""Counters of a register."""
NEVER = 1 << 28
"""A length that no text has."""
_ROUNDS = 3
"""Steps that states must have in common to be compared in full."""
_MIX = 0x9E3779B97F4A7C15 - (1 << 64)


@inner
def _row(table, state, labels, cuts, low, high, target):
    """The ranges of bytes that lead on from a state, and their targets' labels; returns how many."""
    n = 0
    last = -1
    for column in range(table.shape[1]):
        after = table[state, column]
        label = labels[after] if after >= 0 else -1
        if label >= 0:
            if label == last:
                high[n - 1] = cuts[column + 1] - 1
            else:
                low[n], high[n], target[n] = cuts[column], cuts[column + 1] - 1, label
                n += 1
        last = label
    return n


@inner
def _mixed(digest, value):
    digest = (digest ^ value) * np.int64(_MIX)
    return digest ^ ((digest >> 31) & np.int64(0x1FFFFFFFF))


@entry
def place(table, accepting, labels, some, cuts, texts, numbers, first, end, near, around, infinite, text, low, high,
          target, slots, digests, counters):  # fmt: skip
    """Find or add all that is reached from label ``labels[0]``; ``numbers [label]`` gets where they are.

    The register: ``first [state]`` of its edges ``low .. high`` to ``target``; ``end``: may the text end; lengths of
    texts, counted in bytes that begin a character: ``near`` the least, ``around`` one from which on there are all (or
    `NEVER`), ``infinite`` whether there are endlessly many; ``text``, if known, is the state of any text that it is
    part of, from ``texts [label]``.  ``slots`` and ``digests`` are its hash table.  There must be room for everything.

    Source: Tarjan, "Depth-First Search and Linear Graph Algorithms", 1972.
    """
    n = some.shape[0]
    width = table.shape[1]
    lows, highs, targets = np.empty(width, np.int32), np.empty(width, np.int32), np.empty(width, np.int32)
    index = np.zeros(n, np.int32)
    lowest = np.zeros(n, np.int32)
    stack = np.empty(n, np.int32)
    calls = np.empty(n, np.int32)
    column = np.zeros(n, np.int32)
    digest = np.zeros(n, np.int64)
    after = np.zeros(n, np.int64)
    match = np.full(n, -1, np.int32)
    numbers[:] = -1
    start = labels[0]
    calls[0] = stack[0] = start
    depth, top, met = 1, 1, 1
    index[start] = lowest[start] = 1
    while depth:
        state = calls[depth - 1]
        if column[state] < width:
            follow = table[some[state], column[state]]
            column[state] += 1
            if follow >= 0:
                label = labels[follow]
                if index[label] == 0:
                    met += 1
                    index[label] = lowest[label] = met
                    stack[top] = label
                    calls[depth] = label
                    top += 1
                    depth += 1
                elif numbers[label] < 0:
                    lowest[state] = min(lowest[state], index[label])
            continue
        depth -= 1
        if depth:
            lowest[calls[depth - 1]] = min(lowest[calls[depth - 1]], lowest[state])
        if lowest[state] < index[state]:
            continue
        # All from this state on the stack lead to each other, and otherwise to what is placed.
        bottom = top - 1
        while stack[bottom] != state:
            bottom -= 1
        for i in range(bottom, top):
            digest[stack[i]] = accepting[some[stack[i]]]
        for _ in range(_ROUNDS if top - bottom > 1 else 1):
            for i in range(bottom, top):
                label = stack[i]
                value = _mixed(np.int64(top - bottom), np.int64(accepting[some[label]]))
                m = _row(table, some[label], labels, cuts, lows, highs, targets)
                for j in range(m):
                    other = numbers[targets[j]]
                    value = _mixed(value, np.int64(lows[j] << 8 | highs[j]))
                    value = _mixed(value, digest[targets[j]] if other < 0 else np.int64(other) << 16)
                after[label] = value
            for i in range(bottom, top):
                digest[stack[i]] = after[stack[i]]
        slot = digest[state] & (slots.shape[0] - 1)
        same = False
        while slots[slot] and not same:
            if digests[slot] == digest[state]:
                # Compared step by step: `calls`, beyond its depth, is what has been matched and is still to compare.
                same = True
                match[state] = slots[slot] - 1
                calls[depth] = state
                work, matched = depth, depth + 1
                while same and work < matched:
                    label = calls[work]
                    work += 1
                    own = match[label]
                    m = _row(table, some[label], labels, cuts, lows, highs, targets)
                    if end[own] != accepting[some[label]] or first[own + 1] - first[own] != m:
                        same = False
                        break
                    for j in range(m):
                        at = first[own] + j
                        other = targets[j]
                        if low[at] != lows[j] or high[at] != highs[j]:
                            same = False
                        elif numbers[other] >= 0:
                            same = same and numbers[other] == target[at]
                        elif match[other] >= 0:
                            same = same and match[other] == target[at]
                        else:
                            match[other] = target[at]
                            calls[matched] = other
                            matched += 1
                for i in range(depth, matched):
                    label = calls[i]
                    if same:
                        numbers[label] = match[label]
                    match[label] = -1
            slot = (slot + 1) & (slots.shape[0] - 1)
        if not same:
            for i in range(bottom, top):
                numbers[stack[i]] = counters[N_STATES] + i - bottom
            for i in range(bottom, top):
                label = stack[i]
                own = counters[N_STATES]
                at = counters[N_EDGES]
                m = _row(table, some[label], labels, cuts, lows, highs, targets)
                infinite[own] = top - bottom > 1
                for j in range(m):
                    low[at + j], high[at + j], target[at + j] = lows[j], highs[j], numbers[targets[j]]
                    if target[at + j] == own or (numbers[targets[j]] < own and infinite[target[at + j]]):
                        infinite[own] = True
                end[own] = accepting[some[label]]
                text[own] = -1
                near[own] = around[own] = NEVER
                first[own + 1] = at + m
                counters[N_STATES] += 1
                counters[N_EDGES] += m
                slot = digest[label] & (slots.shape[0] - 1)
                while slots[slot]:
                    slot = (slot + 1) & (slots.shape[0] - 1)
                slots[slot] = own + 1
                digests[slot] = digest[label]
            for phase in range(2):
                changed = True
                while changed:
                    changed = False
                    for i in range(top - 1, bottom - 1, -1):
                        own = numbers[stack[i]]
                        least = NEVER
                        if phase == 0 and end[own]:
                            least = 0
                        for at in range(first[own], first[own + 1]):
                            begins = 0 if 0x80 <= low[at] < 0xC0 else 1
                            if phase == 0:
                                least = min(least, near[target[at]] + begins)
                            else:
                                least = min(least, around[target[at]] + begins)
                                if target[at] == own and low[at] < 0x80:
                                    # A character that leads back can be read any number of times.
                                    least = min(least, near[own])
                        known = near if phase == 0 else around
                        if least < known[own]:
                            known[own] = least
                            changed = True
        for i in range(bottom, top):
            own = numbers[stack[i]]
            if text[own] < 0:
                text[own] = texts[stack[i]]
        top = bottom
