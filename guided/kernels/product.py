"""States of a boolean combination of automata: tuples of the operands' states, found by hash, breadth or best first.

A combination is a program in postfix order over its operands: an entry that is not negative is an operand, twice its
number and one more if it must accept; ``-2 n`` and ``-2 n - 1`` say that of the last ``n`` one must hold, or all must.
A state costs what its operands' states cost, summed where all must hold and the least where one must: how far from an
end they look, or nothing and `INFINITE`, which asks whether the combination accepts here, or can at all.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.jit import entry, inner

DONE, FOUND, UNKNOWN, FULL, SPENT = 0, 1, 2, 3, 4
"""How a walk ends: all has been seen; a state accepts; an operand's row is missing; no room; too many were taken up."""
COUNT, TAKEN, WAITING, AT, MOST, SEARCHING, WANTED, ROUND, HASHED, N_COUNTERS = range(10)
"""Counters: states; how many were taken up; how many wait; the one at hand; the most to take up; whether to search;
operands that must accept, if it is a conjunction of these and of others that must not, else -1; searches so far; states
in the hash table."""
UNSEEN, ALIVE, DEAD = 0, 1, 2
"""What is known of a state: nothing, that it leads to an end, or that it does not."""
AHEAD, ACCEPTS = 0, 2
"""Columns of costs: how far from an end, and whether here is one; where it must accept, and one further, must not."""
INFINITE = 1 << 28
_MIX = 0x9E3779B97F4A7C15 - (1 << 64)


@inner
def _cost(program, stack, states, costs, column):
    """What a state costs."""
    top = 0
    for op in program:
        if op >= 0:
            stack[top] = costs[states[op >> 1], column + 1 - (op & 1)]
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
def _enter(states, pool, slots, seen, status, counters):
    """The number of a state, a new one if it has not been met; or puts the next of the pool into the hash table."""
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
    found = counters[HASHED]
    slots[slot] = found + 1
    counters[HASHED] += 1
    if found == counters[COUNT]:
        for i in range(size):
            pool[found, i] = states[i]
        seen[found] = 0
        status[found] = UNSEEN
        counters[COUNT] += 1
    return found


@inner
def _arrange(states, wanted, covers):
    """Order a conjunction's operands, so that equal ones are one state.  Is none unwanted that holds a wanted one?"""
    size = states.shape[0]
    for i in range(size):
        state = states[i]
        for j in range(wanted):
            if i < wanted and covers[state] == states[j]:
                states[i] = states[j]
            elif i >= wanted and (covers[state] == states[j] or state == states[j]):
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


@entry
def walk(rows, known, costs, covers, program, stack, states, pool, slots, before, seen, status, heap, table,
         counters):  # fmt: skip
    """Take up states until one accepts, or all have been; returns how it ended, and goes on when called again.

    ``rows [operand state, range of bytes]`` are known where ``known``, ``costs [operand state, 4]``, ``covers [operand
    state]`` is a state that is part of it, or itself; ``pool [state, operand]`` with ``slots`` as its hash table.
    ``states`` is the first to take up where none waits.

    Searching, the nearest to an end comes first: ``before`` is where a state was come to from, ``seen`` the round of
    the search that met it, ``status`` what is known of it, ``heap`` those that wait.  Else one after another:
    ``table [state, range of bytes]`` gets the states that each leads to, -1 for what cannot lead on.
    """
    size = pool.shape[1]
    width = rows.shape[1]
    searching = counters[SEARCHING]
    wanted = counters[WANTED]
    if counters[TAKEN] == 0 and counters[WAITING] == 0:
        if wanted >= 0 and not _arrange(states, wanted, covers):
            return DONE
        at = _enter(states, pool, slots, seen, status, counters)
        if searching:
            if status[at] == DEAD:
                return DONE
            before[at] = -1
            seen[at] = counters[ROUND]
            heap[0] = at
            counters[WAITING] = 1
    while counters[HASHED] < counters[COUNT]:
        # The table has been replaced by a larger one.
        states[:] = pool[counters[HASHED]]
        _enter(states, pool, slots, seen, status, counters)
    while True:
        if searching:
            if counters[WAITING] == 0:
                return DONE
            at = heap[0] & 0xFFFFFFFF
        else:
            at = counters[TAKEN]
            if at == counters[COUNT]:
                return DONE
        counters[AT] = at
        if searching and (status[at] == ALIVE or _cost(program, stack, pool[at], costs, ACCEPTS) == 0):
            return FOUND
        for i in range(size):
            if not known[pool[at, i]]:
                return UNKNOWN
        if counters[COUNT] + width > pool.shape[0]:
            return FULL
        if counters[TAKEN] >= counters[MOST]:
            return SPENT
        counters[TAKEN] += 1
        if searching:
            counters[WAITING] -= 1
            _take(heap, counters[WAITING])
        found = np.int64(-1)
        for column in range(width):
            fresh = column == 0
            for i in range(size):
                state = pool[at, i]
                states[i] = rows[state, column]
                if column and rows[state, column - 1] != states[i]:
                    fresh = True
            if fresh:
                found = np.int64(-1)
                if wanted < 0 or _arrange(states, wanted, covers):
                    ahead = _cost(program, stack, states, costs, AHEAD)
                    if ahead < INFINITE:
                        found = _enter(states, pool, slots, seen, status, counters)
                        if searching and seen[found] != counters[ROUND] and status[found] != DEAD:
                            seen[found] = counters[ROUND]
                            before[found] = at
                            _wait(heap, counters[WAITING], ahead << 32 | found)
                            counters[WAITING] += 1
            if not searching:
                table[at, column] = found


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


@inner
def _columns(table):
    """Ranges of bytes, without those by which all states lead to the same as by another."""
    n, width = table.shape
    kept = np.empty(width, np.int64)
    digests = np.empty(width, np.int64)
    count = 0
    for column in range(width):
        digest = np.int64(0)
        for state in range(n):
            digest = (digest ^ table[state, column]) * np.int64(_MIX) + state
        fresh = True
        for i in range(count):
            if digests[i] == digest:
                fresh = False
                for state in range(n):
                    if table[state, column] != table[state, kept[i]]:
                        fresh = True
                        break
                if not fresh:
                    break
        if fresh:
            kept[count] = column
            digests[count] = digest
            count += 1
    return kept[:count]


@entry
def merge(table, accepting, labels, some):
    """Label the states that lead to an end, equal ones the same, from 0; the others -1.  Returns the number of labels.

    ``table [state, range of bytes]`` holds states or -1; those that lead nowhere are replaced by -1.  ``some [label]``
    is a state of that label.

    Source: Hopcroft, 1971, in the form of Valmari, "Fast brief practical DFA minimization", 2012: the transitions are
    partitioned beside the states, at first by what is read.
    """
    n = table.shape[0]
    elements = np.empty(n, np.int32)
    position = np.full(n, -1, np.int32)
    block = labels
    first = np.zeros(n + 1, np.int32)
    past = np.zeros(n + 1, np.int32)
    arriving = np.zeros(n + 2, np.int32)
    live, blocks, total = 0, 0, 0
    for again in range(2):
        columns = _columns(table)
        arriving[:] = 0
        total = 0
        for column in columns:
            for state in range(n):
                if table[state, column] >= 0:
                    arriving[table[state, column]] += 1
                    total += 1
        for state in range(1, n + 2):
            arriving[state] += arriving[state - 1]
        tail = np.empty(total, np.int32)
        into = np.empty(total, np.int32)
        cord = np.empty(total, np.int32)
        cord_first = np.zeros(total + 1, np.int32)
        cord_past = np.zeros(total + 1, np.int32)
        cords, at = 0, 0
        for column in columns:
            start = at
            for state in range(n):
                target = table[state, column]
                if target >= 0:
                    tail[at] = state
                    cord[at] = cords
                    arriving[target] -= 1
                    into[arriving[target]] = at
                    at += 1
            if at > start:
                cord_first[cords], cord_past[cords] = start, at
                cords += 1
        if again:
            break
        # From the ends backwards; states unequally far from one are not equal.
        for state in range(n):
            labels[state] = -1
            if accepting[state]:
                elements[live] = state
                position[state] = live
                live += 1
        start = 0
        while start < live:
            stop = live
            first[blocks], past[blocks] = start, stop
            for i in range(start, stop):
                block[elements[i]] = blocks
                for j in range(arriving[elements[i]], arriving[elements[i] + 1]):
                    state = tail[into[j]]
                    if position[state] < 0:
                        elements[live] = state
                        position[state] = live
                        live += 1
            blocks += 1
            start = stop
        if live == n:
            break
        for state in range(n):
            for column in range(table.shape[1]):
                if table[state, column] >= 0 and position[table[state, column]] < 0:
                    table[state, column] = -1
    marked = np.zeros(n + 1, np.int32)
    touched = np.empty(n + 1, np.int32)
    arrows = np.arange(total).astype(np.int32)
    arrow_position = np.arange(total).astype(np.int32)
    arrow_marked = np.zeros(total + 1, np.int32)
    arrow_touched = np.empty(total + 1, np.int32)
    done, done_cords = 0, 0
    while done < blocks or done_cords < cords:
        if done_cords < cords:
            m = 0
            for i in range(cord_first[done_cords], cord_past[done_cords]):
                m = _mark(tail[arrows[i]], elements, position, block, first, marked, touched, m)
            blocks = _split(elements, block, first, past, marked, touched, m, blocks)
            done_cords += 1
        else:
            m = 0
            for i in range(first[done], past[done]):
                for j in range(arriving[elements[i]], arriving[elements[i] + 1]):
                    m = _mark(into[j], arrows, arrow_position, cord, cord_first, arrow_marked, arrow_touched, m)
            cords = _split(arrows, cord, cord_first, cord_past, arrow_marked, arrow_touched, m, cords)
            done += 1
    for i in range(blocks):
        some[i] = elements[first[i]]
    return blocks
