"""The subset construction over parts: edges of lexer states that are sets of parts.

Python finds the edges of a part once (`guided.grammar.regular.partial`); a pattern has about as many parts as symbols.
The kernel finds what a set of parts leads to.  That takes a few microseconds a state, where a derivative of the whole
pattern takes two hundred.

Source: Antimirov, "Partial Derivatives of Regular Expressions and Finite Automaton Constructions", 1996; Rabin and
Scott, 1959 (sets of states).
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data import views
from guided.kernels.data.layout import CANONICAL, CLOSES, EXAMINED, STRING
from guided.kernels.data.local_arrays import local_bytes, local_longs
from guided.kernels.jit import entry, inner
from guided.kernels.lexing.part_pairs import (
    ABSORBS,
    AT_HEAD,
    BEGUN,
    COMMON,
    DERIVED,
    LOOPS,
    NO_ROOM,
    NULLABLE,
    SPELLED_ONCE,
    TEXTUAL,
    WANTED,
    WORDS,
    expand_derived,
)

__all__ = [
    "EDGES",
    "MISSING",
    "NEEDED",
    "N_COUNTS",
    "POOL",
    "QUEUED",
    "ROOM",
    "RUN",
    "SETS",
    "STATES",
    "WIDE",
    "add_edge",
    "describe",
    "determinise",
    "leads_back",
    "publish",
    "rehash",
    "write_names",
    "write_words",
]  # fmt: skip

STATES, EDGES, POOL, SETS, RUN, QUEUED, MISSING, NEEDED, MARK, ROOM = range(10)
"""What `counts` holds: entries in use, the number of the last call, what a call leaves in `queue` and `missing`, how
many of the missing are for the states that the call is about, and how many states there may be."""

N_COUNTS = 15
"""With those of `guided.kernels.lexing.part_pairs`."""

PAIRS = 64
"""States inside a character, with its phase, that are looked at; more only where bytes are distinguished one by one."""

WIDE = 8
"""Bytes that must lead on from a looping state before its effect is cached; below, a walk is as cheap as the copy."""


@inner
def _new_state(automaton, parts, counts, first, count):
    """A state for the set that lies in the pool at ``first``."""
    state = np.int64(counts[STATES])
    counts[STATES] = state + 1
    traits = np.int64(0)
    for i in range(first, first + count):
        traits |= parts.traits[parts.pool[i]]
    nullable = traits & NULLABLE
    if traits & TEXTUAL:
        mode = STRING
        if traits & SPELLED_ONCE:
            mode |= CANONICAL
        if nullable:
            mode |= CLOSES
        automaton.mode[state] = mode
    elif nullable:
        automaton.tag[state] = 0
    parts.set_first[state] = first
    parts.set_count[state] = count
    if count == 1:
        part = np.int64(parts.pool[first])
        boundless = np.int64(parts.alone[parts.boundless[part]])
        if parts.bound[part] > 0 and boundless > 0:
            automaton.boundless[state] = boundless
            automaton.bound[state] = parts.bound[part]
    return state


@inner
def _slot(pool, first, n, size):
    """Where to look for a set first."""
    mixed = np.uint64(0xCBF29CE484222325)
    for i in range(first, first + n):
        mixed = (mixed ^ np.uint64(pool[i])) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return np.int64(mixed % np.uint64(size))


@inner
def _state_of(automaton, parts, counts, found, n):
    """The state of a set: ``n`` parts in ``found``, ascending.  There is room for a new one."""
    if n == 1:
        part = np.int64(found[0])
        state = np.int64(parts.alone[part])
        if state == 0:
            first = np.int64(counts[POOL])
            parts.pool[first] = part
            counts[POOL] = first + 1
            state = _new_state(automaton, parts, counts, first, 1)
            parts.alone[part] = state
        return state
    size = parts.set_hash.shape[0]
    slot = _slot(found, 0, n, size)
    while parts.set_hash[slot] > 0:
        state = np.int64(parts.set_hash[slot])
        if parts.set_count[state] == n:
            first = np.int64(parts.set_first[state])
            same = True
            for i in range(n):
                if parts.pool[first + i] != found[i]:
                    same = False
                    break
            if same:
                return state
        slot += 1
        if slot == size:
            slot = 0
    first = np.int64(counts[POOL])
    for i in range(n):
        parts.pool[first + i] = found[i]
    counts[POOL] = first + n
    state = _new_state(automaton, parts, counts, first, n)
    parts.set_hash[slot] = state
    counts[SETS] += 1
    return state


@inner
def _expand(automaton, parts, counts, state):
    """Write the edges of a state all of whose parts have theirs; where they begin, or -1: no room."""
    first = np.int64(parts.set_first[state])
    stop = first + parts.set_count[state]
    if counts[EDGES] + 256 > automaton.low.shape[0]:
        return np.int64(-1)
    begins = local_bytes(257)
    begins[:] = 0
    traits = np.int64(0)
    for i in range(first, stop):
        part = np.int64(parts.pool[i])
        traits |= parts.traits[part]
        for e in range(parts.edge_first[part], parts.edge_first[part] + parts.edge_count[part]):
            begins[parts.low[e]] = 1
            begins[np.int64(parts.high[e]) + 1] = 1
    found = parts.work
    start = np.int64(counts[EDGES])
    at = start
    width = np.int64(0)
    low = np.int64(0)
    while low < 256:
        high = low + 1
        while high < 256 and not begins[high]:
            high += 1
        counts[MARK] += 1
        mark = np.int32(counts[MARK])
        n = np.int64(0)
        whole = np.int64(-1)
        for i in range(first, stop):
            part = np.int64(parts.pool[i])
            for e in range(parts.edge_first[part], parts.edge_first[part] + parts.edge_count[part]):
                if parts.low[e] <= low and low <= parts.high[e]:
                    to = np.int64(parts.to[e])
                    if parts.met[to] == mark:
                        continue
                    parts.met[to] = mark
                    if parts.traits[to] & ABSORBS:
                        whole = to
                    place = n
                    while place > 0 and found[place - 1] > to:
                        found[place] = found[place - 1]
                        place -= 1
                    found[place] = to
                    n += 1
        if n:
            if whole >= 0:
                found[0] = whole
                n = np.int64(1)
            if (
                counts[STATES] == counts[ROOM]
                or counts[POOL] + n > parts.pool.shape[0]
                or 2 * counts[SETS] >= parts.set_hash.shape[0]
            ):
                return np.int64(-1)
            target = _state_of(automaton, parts, counts, found, n)
            width += high - low
            if at > start and automaton.target[at - 1] == target and automaton.high[at - 1] == low - 1:
                automaton.high[at - 1] = high - 1
            else:
                automaton.low[at] = low
                automaton.high[at] = high - 1
                automaton.target[at] = target
                at += 1
        low = high
    alone = stop - first == 1
    if traits & LOOPS and (width >= WIDE or (alone and traits & AT_HEAD)):
        automaton.loops[state] = 2 if alone and traits & COMMON else 1
    automaton.count[state] = at - start
    counts[EDGES] = at
    return start


@inner
def _is_begun(parts, state):
    """Is this a state inside a character?"""
    first = np.int64(parts.set_first[state])
    return first >= 0 and parts.traits[parts.pool[first]] & BEGUN != 0


@entry("long, long, long, flag")
def determinise(t, n_queue, limit, inside):
    """Find the edges of ``queue[:n_queue]`` and of the states that they lead to, nearest first, ``limit`` at most.

    Of those inside a character only with ``inside``, where one of the first is one, or where what is before the
    character leads back to itself: each character of a counted run has seven of them, and most texts come to none.
    Returns -1 when there is no room.  ``queue`` holds all states looked at then, ``counts[QUEUED]`` of them, and
    ``firsts`` where edges begin that this call has written (-1 for others): they count once `publish` has been called,
    since another thread must not find them before the caller has taken note of the new states.
    ``missing`` gets the states whose parts, or the edges of whose parts, are wanted, and those which begin with a word
    or a list of them: ``counts[MISSING]``, at most as many as it has room for.
    """
    automaton = views.automaton(t)
    parts = views.parts(t)
    counts, queue, firsts, missing = parts.counts, parts.queue, parts.firsts, parts.missing
    counts[RUN] += 1
    run = np.int32(counts[RUN])
    counts[MISSING] = 0
    counts[WANTED] = 0
    for i in range(n_queue):
        parts.asked[queue[i]] = run
        firsts[i] = -1
        inside = inside or _is_begun(parts, queue[i])
    at = np.int64(0)
    n_begin = n_queue
    while at < n_queue:
        if at == n_begin:
            counts[NEEDED] = counts[MISSING]
        state = np.int64(queue[at])
        begin = np.int64(automaton.first[state])
        if begin < 0:
            first = np.int64(parts.set_first[state])
            stop = first + parts.set_count[state]
            # Words are written, not read byte by byte.
            known = first >= 0 and not (stop - first == 1 and parts.traits[parts.pool[first]] & WORDS)
            if known:
                for i in range(first, stop):
                    part = np.int64(parts.pool[i])
                    if known and parts.edge_first[part] < 0:
                        known = False
                        if parts.traits[part] & DERIVED:
                            code = expand_derived(parts, part)
                            if code == NO_ROOM:
                                counts[QUEUED] = n_queue
                                counts[WANTED] = NO_ROOM
                                return -1
                            known = code >= 0
            if not known:
                if counts[MISSING] < missing.shape[0]:
                    missing[counts[MISSING]] = state
                    counts[MISSING] += 1
                at += 1
                continue
            begin = _expand(automaton, parts, counts, state)
            if begin < 0:
                counts[QUEUED] = n_queue
                return -1
            describe(t, state, begin)
            firsts[at] = begin
        at += 1
        stop = begin + automaton.count[state]
        skips = not inside and automaton.closed[state] == 0
        for e in range(begin, stop):
            target = np.int64(automaton.target[e])
            if skips and _is_begun(parts, target):
                continue
            if n_queue < limit and parts.asked[target] != run and not automaton.owes[target]:
                parts.asked[target] = run
                queue[n_queue] = target
                firsts[n_queue] = -1
                n_queue += 1
    counts[QUEUED] = n_queue
    if n_queue == n_begin:
        counts[NEEDED] = counts[MISSING]
    return 0


@entry("long")
def publish(t):
    """Let the edges that `determinise` has found be seen; how many of the states lead back to themselves.

    ``queue`` holds those then of which it is not known yet whether they do so on characters above ASCII.
    """
    automaton = views.automaton(t)
    parts = views.parts(t)
    queue, firsts = parts.queue, parts.firsts
    n = np.int64(0)
    for i in range(parts.counts[QUEUED]):
        state = np.int64(queue[i])
        if firsts[i] >= 0:
            automaton.first[state] = firsts[i]
        if 0 < automaton.closed[state] < EXAMINED:
            queue[n] = state
            n += 1
    return n


@inner
def add_edge(automaton, first, at, byte, target):
    """Write an edge of one byte behind those of a state from ``first`` on, or widen the last; where the next begins."""
    if at > first and automaton.target[at - 1] == target and automaton.high[at - 1] == byte - 1:
        automaton.high[at - 1] = byte
        return at
    automaton.low[at] = automaton.high[at] = byte
    automaton.target[at] = target
    return at + 1


@entry("long, const bytes, ints, int_rows, long, long, long")
def write_words(t, data, ends, nodes, state, last, mode):
    """Write the edges of ``state``, new states for what is left of some words, and their edges; where its own begin.

    The words, sorted and none twice, are ``data[ends[i - 1] : ends[i]]``; each leads to ``last``, or to a state that
    may end where another goes on.  There must be room for as many states and edges as there are bytes.  ``nodes`` is
    working memory, a row more than there are bytes: of the first state and each new one what is left behind ``depth``
    bytes of the words from ``low`` to ``high``.  The caller writes ``automaton.first[state]``, once this has returned.
    """
    automaton = views.automaton(t)
    counts = views.parts(t).counts
    nodes[0, 0], nodes[0, 1], nodes[0, 2] = 0, ends.shape[0], 0
    n_nodes = 1
    before = np.int64(counts[STATES]) - 1
    begin = edge = np.int64(counts[EDGES])
    at = 0
    while at < n_nodes:
        here = before + at if at else np.int64(state)
        word, stop, depth = np.int64(nodes[at, 0]), np.int64(nodes[at, 1]), np.int64(nodes[at, 2])
        start = np.int64(ends[word - 1]) if word else np.int64(0)
        automaton.mode[here] = mode
        if start + depth == ends[word]:
            if mode:
                automaton.mode[here] = mode | CLOSES
            else:
                automaton.tag[here] = 0
            start = np.int64(ends[word])
            word += 1
        first = edge
        while word < stop:
            byte = data[start + depth]
            low = word
            whole = start + depth + 1 == ends[word]
            while word < stop and data[start + depth] == byte:
                start = np.int64(ends[word])
                word += 1
            target = np.int64(last)
            if word > low + 1 or not whole:
                nodes[n_nodes, 0], nodes[n_nodes, 1], nodes[n_nodes, 2] = low, word, depth + 1
                target = before + n_nodes
                n_nodes += 1
            edge = add_edge(automaton, first, edge, byte, target)
        automaton.count[here] = edge - first
        if at:
            automaton.first[here] = first
        at += 1
    counts[STATES] = before + n_nodes
    counts[EDGES] = edge
    return begin


@entry("long, const bytes, long, long, long, long")
def write_names(t, data, state, at, last, mode):
    """Write the states from ``state`` on that read quoted texts one byte each, and their edges from ``at`` on.

    In ``data`` each text stands behind a byte 0xFF, which is in none; it leads to ``last``.
    """
    automaton = views.automaton(t)
    n = data.shape[0]
    for i in range(n):
        here, edge, byte = state + i, at + i, data[i]
        automaton.mode[here] = mode
        if byte == 0xFF:
            automaton.mode[here] = 0
            byte = 0x22
        automaton.first[here], automaton.count[here] = edge, 1
        automaton.low[edge] = automaton.high[edge] = byte
        automaton.target[edge] = last if i + 1 == n or data[i + 1] == 0xFF else here + 1


@entry("long, long, long")
def describe(t, state, first):
    """Note in ``closed`` the classes of ASCII bytes on which a state whose edges begin at ``first`` stays as it is."""
    automaton = views.automaton(t)
    class_of_byte = views.parts(t).class_of_byte
    stays = local_bytes(128)
    stays[:] = 0
    text = automaton.mode[state] & STRING
    any_byte = False
    for e in range(first, first + automaton.count[state]):
        if automaton.target[e] == state:
            for byte in range(np.int64(automaton.low[e]), min(np.int64(automaton.high[e]), np.int64(127)) + 1):
                # Written as escapes, or the end: in a string these never stand for themselves.
                if not (text and (byte < 0x20 or byte == 0x22 or byte == 0x5C)):
                    stays[byte] = 1
                    any_byte = True
    closed = np.int64(0)
    if any_byte:
        leaves = np.int64(0)
        for byte in range(128):
            closed |= class_of_byte[byte]
            if not stays[byte]:
                leaves |= class_of_byte[byte]
        closed &= ~leaves
    automaton.closed[state] = closed


@entry("long, long")
def rehash(t, n_states):
    """Enter all sets of several parts into an empty ``set_hash``; how many there are."""
    parts = views.parts(t)
    size = parts.set_hash.shape[0]
    n_sets = np.int64(0)
    for state in range(n_states):
        count = np.int64(parts.set_count[state])
        if count > 1:
            slot = _slot(parts.pool, parts.set_first[state], count, size)
            while parts.set_hash[slot] > 0:
                slot += 1
                if slot == size:
                    slot = 0
            parts.set_hash[slot] = state
            n_sets += 1
    return n_sets


@entry("long, long, longs, bytes, bytes, longs")
def leads_back(t, state, first, low, high, after):
    """Does every character whose bytes some phases say lead from a state back to it?  1, 0, ``-state``: edges needed.

    The bytes of phase ``p`` are ``low[i]..high[i]`` for ``i`` in ``first[p]..first[p + 1]``, the phase behind them
    ``after[i]``, 0 at the end of a character.
    """
    automaton = views.automaton(t)
    states = local_longs(PAIRS)
    phases = local_longs(PAIRS)
    states[0] = state
    phases[0] = 0
    n = 1
    at = 0
    while at < n:
        here = states[at]
        begin = np.int64(automaton.first[here])
        if begin < 0:
            return -here
        end = begin + automaton.count[here]
        for i in range(first[phases[at]], first[phases[at] + 1]):
            byte = np.int64(low[i])
            for e in range(begin, end):
                if automaton.low[e] <= byte and byte <= automaton.high[e]:
                    target = np.int64(automaton.target[e])
                    if after[i] == 0:
                        if target != state:
                            return np.int64(0)
                    else:
                        known = False
                        for j in range(n):
                            if states[j] == target and phases[j] == after[i]:
                                known = True
                                break
                        if not known:
                            if n == PAIRS:
                                return np.int64(0)
                            states[n] = target
                            phases[n] = after[i]
                            n += 1
                    byte = np.int64(automaton.high[e]) + 1
                    if byte > high[i]:
                        break
            if byte <= high[i]:
                return np.int64(0)
        at += 1
    return np.int64(1)
