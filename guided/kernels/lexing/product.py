"""States of a boolean combination of automata: tuples of the operands' states, found by hash, breadth or best first.

A combination is a program in postfix order over its operands: an entry that is not negative is an operand, twice its
number and one more if it must accept; ``-2 n`` and ``-2 n - 1`` say that of the last ``n`` one must hold, or all must.
A state costs what its operands' states cost, summed where all must hold and the least where one must: how far from an
end they look, or nothing and `INFINITE`, which asks whether the combination accepts here, or can at all.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data.local_arrays import local_bytes
from guided.kernels.jit import entry, inner

DONE, FOUND, UNKNOWN, FULL, SPENT = 0, 1, 2, 3, 4
"""How a walk ends: all has been seen; a state accepts; an operand's row is missing; no room; too many were taken up."""
COUNT, TAKEN, WAITING, AT, MOST, SEARCHING, WANTED, ROUND, PARTING, N_COUNTERS = range(10)
"""Counters: states; how many were taken up; how many wait; the one at hand, -1 before the first; the most to take up;
whether to search; operands that must accept, if it is a conjunction of these and of others that must not, else -1, or
``-2 - operand`` where there is one that must accept whatever the others do; searches so far; whether the alternatives
of operands that must accept are taken up one by one, until one accepts (1) or all have been (2)."""
MOST_WAYS = 1 << 14
"""Combinations of alternatives that one step may lead to."""
BEFORE, SEEN, STATUS = 0, 1, 2
"""Columns of marks of a state: where a search came to it from; the round of the search that met it; what is known."""
UNSEEN, ALIVE, DEAD = 0, 1, 2
"""What is known of a state: nothing, that it leads to an end, or that it does not."""
AHEAD, ACCEPTS, COVERS, KNOWN, FIRST_WAY, N_WAYS, N_ABOUT = 0, 2, 4, 5, 6, 7, 8
"""Columns about a state of an operand.  Two costs, each where it must accept and, one further, where it must not: how
far from an end, and whether here is one.  A state that is part of it, or itself.  Whether its row is known.  Where its
alternatives begin, and how many there are, 0 for a state that has none, -1 where they were not looked for."""
INFINITE = 1 << 28
_MIX = 0x9E3779B97F4A7C15 - (1 << 64)


@inner
def _cost(program, stack, states, about, column):
    """What a state costs."""
    top = 0
    for op in program:
        if op >= 0:
            stack[top] = about[states[op >> 1], column + 1 - (op & 1)]
        else:
            n = -op >> 1
            top -= n
            total = stack[top]
            for i in range(top + 1, top + n):
                total = total + stack[i] if -op & 1 else min(total, stack[i])
            stack[top] = min(total, INFINITE)
        top += 1
    return stack[0]


@inner
def _enter(states, pool, slots, marks, counters):
    """The number of a state, a new one if it has not been met."""
    size = states.shape[0]
    key = np.int64(_MIX)
    for i in range(size):
        key = (key ^ states[i]) * np.int64(_MIX)
        key ^= (key >> 29) & np.int64(0x7FFFFFFFF)
    slot = key & (slots.shape[0] - 1)
    while slots[slot]:
        found = np.int64(slots[slot] - 1)
        same = True
        for i in range(size):
            if pool[found, i] != states[i]:
                same = False
                break
        if same:
            return found
        slot = (slot + 1) & (slots.shape[0] - 1)
    found = counters[COUNT]
    counters[COUNT] += 1
    slots[slot] = found + 1
    for i in range(size):
        pool[found, i] = states[i]
    marks[found, SEEN] = 0
    marks[found, STATUS] = UNSEEN
    return found


@inner
def _arrange(states, wanted, about):
    """Order a conjunction's operands, so that equal ones are one state.  Is none unwanted that holds a wanted one?"""
    size = states.shape[0]
    for i in range(size):
        state = states[i]
        for j in range(wanted):
            if i < wanted and about[state, COVERS] == states[j]:
                states[i] = states[j]
            elif i >= wanted and (about[state, COVERS] == states[j] or state == states[j]):
                return False
    for i in range(1, size):
        state = states[i]
        j = i
        while j > (0 if i < wanted else wanted) and states[j - 1] > state:
            states[j] = states[j - 1]
            j -= 1
        states[j] = state
    return True


@inner
def _wait(heap, n, item):
    """Add an item to a heap of ``n``."""
    while n > 0 and heap[(n - 1) >> 1] > item:
        heap[n] = heap[(n - 1) >> 1]
        n = (n - 1) >> 1
    heap[n] = item


@inner
def _take(heap, n):
    """Take the least item off a heap, of which ``n`` are left."""
    last = heap[n]
    hole = 0
    while 2 * hole + 1 < n:
        child = 2 * hole + 1
        if child + 1 < n and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= last:
            break
        heap[hole] = heap[child]
        hole = child
    heap[hole] = last


@entry("int_rows, int_rows, ints, ints, longs, ints, ints, int_rows, ints, int_rows, longs, int_rows, longs")
def walk(rows, about, ways, program, stack, states, whole, pool, slots, marks, heap, table, counters):
    """Take up states until one accepts, or all have been; returns how it ended, and goes on when called again.

    ``rows [operand state, range of bytes]`` and what is known ``about`` operand states, with the alternatives that they
    have, ``ways``; ``pool [state, operand]`` with ``slots`` as its hash table and ``marks``.  ``states`` is the first
    to take up; ``whole`` is room for as many.

    Searching, the nearest to an end comes first of those that wait in ``heap``.  Else one comes after another, and
    ``table [state, range of bytes]`` gets the states that each leads to, -1 for what cannot lead on.
    """
    size = pool.shape[1]
    searching = counters[SEARCHING]
    wanted = counters[WANTED]
    accepts = np.int64(ACCEPTS)
    at = counters[AT]
    fresh = local_bytes(256)
    while True:
        width = 1
        if at >= 0:
            width = rows.shape[1]
            if counters[WAITING] == 0:
                return DONE
            at = heap[0] & 0xFFFFFFFF if searching else counters[TAKEN]
            counters[AT] = at
            if (
                searching
                and counters[PARTING] < 2
                and (marks[at, STATUS] == ALIVE or _cost(program, stack, pool[at], about, accepts) == 0)
            ):
                return FOUND
            for i in range(size):
                if not about[pool[at, i], KNOWN]:
                    return UNKNOWN
                if counters[PARTING] and i < wanted:
                    for column in range(width):
                        if about[rows[pool[at, i], column], N_WAYS] < 0:
                            return UNKNOWN
            if counters[COUNT] + width > pool.shape[0]:
                return FULL
            if counters[TAKEN] >= counters[MOST]:
                return SPENT
            counters[TAKEN] += 1
            counters[WAITING] -= 1
            if searching:
                _take(heap, counters[WAITING])
            # Where some operand leads elsewhere than on the range before.
            fresh[:] = 0
            for i in range(size):
                row = rows[pool[at, i]]
                for column in range(width - 1):
                    fresh[column + 1] |= row[column] != row[column + 1]
        found = np.int64(-1)
        for column in range(width):
            if column == 0 or fresh[column]:
                if at >= 0:
                    for i in range(size):
                        states[i] = rows[pool[at, i], column]
                found = np.int64(-1)
                for i in range(size if wanted < -1 else 0):
                    # What the operand that must accept is part of accepts what counts: all, then.
                    if i != -2 - wanted and about[states[i], COVERS] == states[-2 - wanted]:
                        states[i] = 1
                combinations = np.int64(1)
                if counters[PARTING]:
                    for i in range(size):
                        whole[i] = states[i]
                        if i < wanted:
                            combinations *= max(about[states[i], N_WAYS], 1)
                    if combinations > MOST_WAYS:
                        return SPENT
                    if counters[COUNT] + combinations > pool.shape[0]:
                        return FULL
                for combination in range(combinations):
                    if counters[PARTING]:
                        rest = combination
                        for i in range(size):
                            states[i] = whole[i]
                            n = np.int64(about[whole[i], N_WAYS]) if i < wanted else 0
                            if n:
                                states[i] = ways[about[whole[i], FIRST_WAY] + rest % n]
                                rest //= n
                    if wanted < 0 or _arrange(states, wanted, about):
                        ahead = _cost(program, stack, states, about, AHEAD)
                        if ahead < INFINITE:
                            found = _enter(states, pool, slots, marks, counters)
                            if marks[found, SEEN] != counters[ROUND] and marks[found, STATUS] != DEAD:
                                marks[found, SEEN] = counters[ROUND]
                                marks[found, BEFORE] = at
                                if searching:
                                    _wait(heap, counters[WAITING], ahead << 32 | found)
                                counters[WAITING] += 1
            if at >= 0 and not searching:
                table[at, column] = found
        at = np.int64(0)


@inner
def _mark(item, elements, position, block, first, marked, touched, n):
    """Mark an item of a partition: it stands among the first of its block.  ``n`` blocks have marked items."""
    own = block[item]
    i, j = position[item], first[own] + marked[own]
    if i < j:
        return n
    elements[i] = elements[j]
    position[elements[i]] = i
    elements[j] = item
    position[item] = j
    if marked[own] == 0:
        touched[n] = own
        n += 1
    marked[own] += 1
    return n


@inner
def _split(elements, block, first, past, marked, touched, n, blocks):
    """Part the marked items of every touched block from the others; the fewer of the two are a new block."""
    for i in range(n):
        own = touched[i]
        middle = first[own] + marked[own]
        marked[own] = 0
        if middle == past[own]:
            continue
        if middle - first[own] <= past[own] - middle:
            first[blocks], past[blocks] = first[own], middle
            first[own] = middle
        else:
            first[blocks], past[blocks] = middle, past[own]
            past[own] = middle
        for j in range(first[blocks], past[blocks]):
            block[elements[j]] = blocks
        blocks += 1
    return blocks


@entry("int_rows, flags, ints, ints, int_rows")
def merge(arrows, accepting, block, some, room):
    """Label states, equal ones the same, from 0 in ``block [state]``; ``some [label]`` is a state of each.

    ``arrows [what is read, state]`` is where states lead; ``room [15, states + arrows]`` is written over.  Returns the
    number of labels.

    Source: Hopcroft, 1971, in the form of Valmari, "Fast brief practical DFA minimization", 2012: the arrows are
    partitioned beside the states, at first by what is read.
    """
    reads, n = arrows.shape
    total = reads * n
    elements, position, first, past, marked, touched, arriving = (
        room[0], room[1], room[2], room[3], room[4], room[5], room[6]
    )  # fmt: skip
    order, order_position, order_block, order_first, order_past, order_marked, order_touched, into = (
        room[7], room[8], room[9], room[10], room[11], room[12], room[13], room[14]
    )  # fmt: skip
    marked[:] = 0
    order_marked[:] = 0
    arriving[:] = 0
    for at in range(total):
        order[at] = order_position[at] = at
        order_block[at] = at // n
        arriving[arrows[at // n, at % n]] += 1
    for state in range(n):
        elements[state] = position[state] = state
        block[state] = 0
        arriving[state + 1] += arriving[state]
    for at in range(total):
        target = arrows[at // n, at % n]
        arriving[target] -= 1
        into[arriving[target]] = at
    for read in range(reads):
        order_first[read], order_past[read] = read * n, read * n + n
    first[0], past[0] = 0, n
    # The first step marks what accepts.
    blocks, order_blocks = np.int64(1), reads
    done, order_done = 0, -1
    while done < blocks or order_done < order_blocks:
        m = np.int64(0)
        if order_done < order_blocks:
            if order_done < 0:
                for state in range(n):
                    if accepting[state]:
                        m = _mark(state, elements, position, block, first, marked, touched, m)
            else:
                for i in range(order_first[order_done], order_past[order_done]):
                    m = _mark(order[i] % n, elements, position, block, first, marked, touched, m)
            blocks = _split(elements, block, first, past, marked, touched, m, blocks)
            order_done += 1
        else:
            for i in range(first[done], past[done]):
                for j in range(arriving[elements[i]], arriving[elements[i] + 1]):
                    item = np.int64(into[j])
                    m = _mark(item, order, order_position, order_block, order_first, order_marked, order_touched, m)
            order_blocks = _split(
                order, order_block, order_first, order_past, order_marked, order_touched, m, order_blocks
            )
            done += 1
    for i in range(blocks):
        some[i] = elements[first[i]]
    return blocks
