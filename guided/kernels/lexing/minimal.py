"""A register of minimal automata: one state for each language.

The input is an automaton whose equal states are merged.  States on a cycle are placed together, after all others that
they lead to.  Each is found in the register, or is new.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data.local_arrays import local_int_rows
from guided.kernels.jit import entry, inner

N_STATES, N_EDGES = 0, 1
"""Counters of a register."""
FIRST, END, NEAR, AROUND, INFINITE, TEXT, ENDLESS, N_FIELDS = range(8)
"""Columns about a state: the first of its edges; may the text end; lengths of its texts, in bytes that begin a
character: the least, and one from which on there are all, or `NEVER`; are there endlessly many; of which any text it is
part, -1 if that is not known; are there endlessly many of it and of every state that it leads to."""
NEVER = 1 << 28
"""A length that no text has."""
_ROUNDS = 3
"""Steps that states must have in common to be compared in full."""
_MIX = 0x9E3779B97F4A7C15 - (1 << 64)


@inner
def _row(table, state, labels, cuts, row):
    """The ranges of bytes that lead on from a state, and their targets' labels; returns how many."""
    n = 0
    last = -1
    for column in range(table.shape[1]):
        after = table[state, column]
        label = labels[after] if after >= 0 else -1
        if label >= 0:
            if label != last:
                row[n, 0], row[n, 2] = cuts[column], label
                n += 1
            row[n - 1, 1] = cuts[column + 1] - 1
        last = label
    return n


@inner
def _mixed(digest, value):
    digest = (digest ^ value) * np.int64(_MIX)
    return digest ^ ((digest >> 31) & np.int64(0x1FFFFFFFF))


@entry("int_rows, flags, ints, ints, ints, ints, ints, int_rows, int_rows, ints, longs, longs, long_rows")
def place(table, accepting, labels, some, cuts, texts, numbers, states, edges, slots, digests, counters, room):
    """Find or add all that is reached from label ``labels[0]``; ``numbers [label]`` gets where they are.

    ``table [state, range of bytes]`` leads to states or -1, ``labels`` are -1 for states that lead nowhere; ``some
    [label]`` is a state of each, ``texts [label]`` is what `TEXT` is.  The register: ``states [state, field]``, ``edges
    [edge] = low, high, target``; ``slots`` and ``digests`` are its hash table.  There must be
    room for everything; ``room [8, labels]`` is working memory, zeros.

    Source: Tarjan, "Depth-First Search and Linear Graph Algorithms", 1972.
    """
    width = table.shape[1]
    row = local_int_rows(256, 3)
    index, lowest, stack, calls = room[0], room[1], room[2], room[3]
    column, match, digest, after = room[4], room[5], room[6], room[7]
    match[:] = -1
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
            label = labels[follow] if follow >= 0 else -1
            if label >= 0:
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
                value = _mixed(top - bottom, accepting[some[label]])
                m = _row(table, some[label], labels, cuts, row)
                for j in range(m):
                    other = numbers[row[j, 2]]
                    value = _mixed(value, row[j, 0] << 8 | row[j, 1])
                    value = _mixed(value, digest[row[j, 2]] if other < 0 else np.int64(other) << 16)
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
                    m = _row(table, some[label], labels, cuts, row)
                    if states[own, END] != accepting[some[label]] or states[own + 1, FIRST] - states[own, FIRST] != m:
                        same = False
                        break
                    for j in range(m):
                        at = states[own, FIRST] + j
                        other = row[j, 2]
                        known = numbers[other] if numbers[other] >= 0 else match[other]
                        if edges[at, 0] != row[j, 0] or edges[at, 1] != row[j, 1]:
                            same = False
                        elif known >= 0:
                            same = same and known == edges[at, 2]
                        else:
                            match[other] = edges[at, 2]
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
            begin = counters[N_STATES]
            throughout = True
            for i in range(bottom, top):
                label = stack[i]
                own = counters[N_STATES]
                at = counters[N_EDGES]
                m = _row(table, some[label], labels, cuts, row)
                endless = top - bottom > 1
                for j in range(m):
                    target = numbers[row[j, 2]]
                    edges[at + j, 0], edges[at + j, 1], edges[at + j, 2] = row[j, 0], row[j, 1], target
                    endless = endless or target == own or states[target, INFINITE] != 0
                    throughout = throughout and (target >= begin or states[target, ENDLESS] != 0)
                throughout = throughout and endless
                states[own, END] = accepting[some[label]]
                states[own, INFINITE] = endless
                states[own, TEXT] = -1
                states[own, NEAR] = states[own, AROUND] = NEVER
                states[own + 1, FIRST] = at + m
                counters[N_STATES] += 1
                counters[N_EDGES] += m
                slot = digest[label] & (slots.shape[0] - 1)
                while slots[slot]:
                    slot = (slot + 1) & (slots.shape[0] - 1)
                slots[slot] = own + 1
                digests[slot] = digest[label]
            for i in range(bottom, top):
                states[numbers[stack[i]], ENDLESS] = throughout
            for field in range(NEAR, AROUND + 1):
                changed = True
                while changed:
                    changed = False
                    for i in range(top - 1, bottom - 1, -1):
                        own = numbers[stack[i]]
                        least = NEVER
                        if field == NEAR and states[own, END]:
                            least = 0
                        for at in range(states[own, FIRST], states[own + 1, FIRST]):
                            begins = 0 if 0x80 <= edges[at, 0] < 0xC0 else 1
                            least = min(least, states[edges[at, 2], field] + begins)
                            if field == AROUND and edges[at, 2] == own and edges[at, 0] < 0x80:
                                # A character that leads back can be read any number of times.
                                least = min(least, states[own, NEAR])
                        if least < states[own, field]:
                            states[own, field] = least
                            changed = True
        for i in range(bottom, top):
            own = numbers[stack[i]]
            if states[own, TEXT] < 0:
                states[own, TEXT] = texts[stack[i]]
        top = bottom
