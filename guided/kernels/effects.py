"""What the tokens of a trie range do from one automaton state: which stay inside, and tries of the rests of others.

Nothing here knows a parser, so the results serve every grammar of a vocabulary.  `survey` walks once and notes; `merge`
joins the subtrees below the nodes where matches end into one trie, appended to the pool.
"""

from __future__ import annotations

import numpy as np

from guided.kernels import views
from guided.kernels.jit import entry, inner
from guided.kernels.layout import (
    CLOSES,
    EXPAND_STATE,
    GROW_MACHINE,
    GROW_SCRATCH,
    MATCHED,
    REQUEST,
    REQUEST_A,
    STRING,
)
from guided.kernels.strings import SPELLED, enter, glance, move

_MASK32 = 0xFFFFFFFF

OWING = -2
"""What `survey` returns from states that come to owe something: their tokens must be walked with the parser."""

ROWS = 64
"""States whose table of what each byte leads to is kept during a walk, by the last bits of their number: 64 KB."""
WORTH = 16
"""Nodes still to come in a state from which on its table, some 100 ns, is made: finding an edge costs 10 ns a node."""

DENSE = 512
"""Tokens up to which an effect is kept as a list rather than a bitmask row; a guess at where the costs meet."""

FEW = 32
"""Nodes that are sorted by insertion; more are by counting, whose table of 256 costs as much as so many."""


@inner
def _note(counters, unknown, n, state):
    """Note that the edges of a state are not known; how many such states there are, -1 where there is no room."""
    for i in range(n):
        if unknown[i] == state:
            return n
    unknown[n] = state
    counters[REQUEST] = EXPAND_STATE
    counters[REQUEST_A] = n + 1
    return n + 1 if n + 1 < unknown.shape[0] else -1


@inner
def _tell_bytes(automaton, state, row):
    """Write to ``row[256]`` the state after each byte, 0 for dead, and -1 where only `glance` knows."""
    first = np.int64(automaton.first[state])
    if first < 0:
        row[:] = -1
        return
    row[:] = 0
    for e in range(first, first + automaton.count[state]):
        row[np.int64(automaton.low[e]) : np.int64(automaton.high[e]) + 1] = automaton.target[e]
    if automaton.mode[state] & STRING:
        row[:0x20] = 0
        row[0x22] = MATCHED if automaton.mode[state] & CLOSES else 0
        row[0x5C] = -1


@inner
def _keep(table, n, begin, stop, count):
    """Note that tokens of the nodes from ``begin`` to ``stop`` are kept; how many such pieces there are then."""
    pieces = views.scratch(table).tasks
    if n and pieces[3 * n - 2] == begin and pieces[3 * n - 1] == count:
        pieces[3 * n - 2] = stop
        return n
    pieces[3 * n] = begin
    pieces[3 * n + 1] = stop
    pieces[3 * n + 2] = count
    return n + 1


@inner
def _list(table, n_pieces, kept, kept_count):
    """List the tokens of all pieces, each with the count of its piece; how many they are."""
    tokens = views.tokens(table)
    pieces = views.scratch(table).tasks
    n = np.int64(0)
    for p in range(n_pieces):
        for i in range(tokens.token_offset[pieces[3 * p]], tokens.token_offset[pieces[3 * p + 1]]):
            kept_count[n] = pieces[3 * p + 2]
            kept[n] = tokens.token_ids[i]
            n += 1
    return n


@inner
def _set_bits(table, row, whole, low, high, n_pieces, kept):
    """Set the tokens of all pieces in a row, or list them where they are few; how many they are."""
    tokens = views.tokens(table)
    pieces = views.scratch(table).tasks
    masks = views.effects(table).masks
    offset = tokens.token_offset
    n = np.int64(0)
    for p in range(n_pieces):
        n += offset[pieces[3 * p + 1]] - offset[pieces[3 * p]]
    if n <= DENSE:
        return _list(table, n_pieces, kept, kept)
    if whole < 0 or 2 * n < offset[high] - offset[low]:
        masks[row, :] = 0
        for p in range(n_pieces):
            for i in range(offset[pieces[3 * p]], offset[pieces[3 * p + 1]]):
                token = tokens.token_ids[i]
                masks[row, token >> 5] |= np.uint32(1) << np.uint32(token & 31)
        return n
    masks[row, :] = masks[whole, :]
    begin = np.int64(low)
    for p in range(n_pieces + 1):
        stop = high if p == n_pieces else pieces[3 * p]
        for i in range(offset[begin], offset[stop]):
            token = tokens.token_ids[i]
            masks[row, token >> 5] &= ~(np.uint32(1) << np.uint32(token & 31))
        if p < n_pieces:
            begin = pieces[3 * p + 1]
    return n


@entry
def survey(table, low, high, state, row, whole, apart, also, home, kept, kept_count, kept_at, exits, unknown):
    """Walk ``[low, high)`` from ``state``: tokens that stay or end, and the nodes where matches end; -1: request.

    With ``row`` >= 0 tokens that stay or end are ``kept`` where they are no more than `DENSE`, else set in that row of
    `Effects.masks`, and exits are noted where something is below; nothing else of what follows.  ``whole`` is the row
    of all tokens of the range where each is there once, else -1.  With ``apart`` tokens behind which nothing can follow
    inside are left out, and all exits noted.  Without ``row`` every token is noted:

    With ``also`` (0 for none) the walk is of the intersection with that state, whose product is never built; both read
    the same spelling, so both are inside a JSON string or neither is.

    ``kept[i]`` is a token and ``kept_count[i]`` how many times its path came to the state ``home``, plus one when it
    ends between two such times, or -1 - count when it ends exactly where a match ends and nothing can follow inside.
    ``kept_at`` are the states in which it ends, with ``also``, and what it began of an escape.  ``exits`` rows are
    ``(node, tag, pending, count)``.  States whose edges are not known are gathered in ``unknown`` and their subtrees
    skipped, so that one round asks for as many as that has room for; the request holds their number.  Returns
    ``n_kept << 32 | n_exits``, or `OWING`.
    """
    automaton = views.automaton(table)
    counters = views.counters(table)
    scratch = views.scratch(table)
    tokens = views.tokens(table)
    places = scratch.walk_state
    ends = scratch.walk_end
    counts = scratch.walk_obligation
    others = scratch.walk_other
    n_rows = 2 * ROWS if also else ROWS
    rows = np.empty((n_rows, 256), np.int32)
    held = np.zeros(n_rows, np.int64)
    level = 0
    places[0] = enter(automaton, np.int64(state))
    ends[0] = high
    counts[0] = 0
    others[0] = also
    plain = row >= 0
    n_pieces = np.int64(0)
    n_kept = np.int64(0)
    n_exits = 0
    n_unknown = np.int64(0)
    node = np.int64(low)
    while True:
        while node >= ends[level]:
            if level == 0:
                if n_unknown:
                    return -1
                n_kept = (
                    _set_bits(table, row, whole, low, high, n_pieces, kept)
                    if plain
                    else _list(table, n_pieces, kept, kept_count)
                )
                return (n_kept << 32) | n_exits
            level -= 1
        at = places[level]
        end = np.int64(tokens.end[node])
        byte = np.int64(tokens.byte[node])
        place = np.int64(-1)
        if at <= _MASK32:
            slot = at & (ROWS - 1)
            if held[slot] != at and ends[level] - node >= WORTH:
                _tell_bytes(automaton, at, rows[slot])
                held[slot] = at
            if held[slot] == at:
                place = np.int64(rows[slot, byte])
            stays = also == 0 and automaton.tag[at] < 0
            if stays and place == at and at != home:
                # What is below goes on from the same state, as what comes beside it does.
                begin = node
                stop = ends[level]
                node += 1
                while node < stop and rows[slot, tokens.byte[node]] == at:
                    node += 1
                n_pieces = _keep(table, n_pieces, begin, node, 0 if plain else counts[level] + 1)
                continue
            if (
                stays
                and (place < 0 or place == at or byte >= 0x80)
                and not tokens.classes[node] & ~automaton.closed[at]
            ):
                # Every character here and below leads back: nothing is read but how many of them begin.
                if at != home:
                    n_pieces = _keep(table, n_pieces, node, end, 0 if plain else counts[level] + 1)
                    node = end
                    continue
                base = level
                while node < end:
                    while node >= ends[level]:
                        level -= 1
                    count = counts[level] + 1
                    if tokens.byte[node] & 0xC0 == 0x80:
                        count -= 1
                    last = node + 1
                    n_pieces = _keep(table, n_pieces, node, last, count)
                    level += 1
                    counts[level] = count
                    ends[level] = tokens.end[node]
                    node = last
                level = base
                continue
        if place < 0:
            place = glance(automaton, at, byte)
            if place == SPELLED:
                place = move(automaton, at, byte)
        if place < 0:
            n_unknown = _note(counters, unknown, n_unknown, -place)
            if n_unknown < 0:
                return -1
            node = ends[level] if -place == at else end
            continue
        if place == 0:
            node = end
            continue
        after = np.int32(place & _MASK32)
        if automaton.owes[after]:
            return OWING
        tag = automaton.tag[after]
        other = others[level]
        if other:
            beside = np.int64(-1)
            if at <= _MASK32:
                slot = ROWS + (other & (ROWS - 1))
                if held[slot] != other and ends[level] - node >= WORTH:
                    _tell_bytes(automaton, np.int64(other), rows[slot])
                    held[slot] = other
                if held[slot] == other:
                    beside = np.int64(rows[slot, byte])
            if beside < 0:
                beside = glance(automaton, at & ~_MASK32 | other, byte)
                if beside == SPELLED:
                    beside = move(automaton, at & ~_MASK32 | other, byte)
            if beside < 0:
                n_unknown = _note(counters, unknown, n_unknown, -beside)
                if n_unknown < 0:
                    return -1
                node = end
                continue
            if beside == 0:
                node = end
                continue
            other = np.int32(beside & _MASK32)
            if automaton.tag[other] < 0:
                tag = np.int32(-1)
        inside = True
        count = counts[level]
        if place == home:
            count += 1
        if tag >= 0:
            if automaton.first[after] < 0:
                n_unknown = _note(counters, unknown, n_unknown, np.int64(after))
                if n_unknown < 0:
                    return -1
                node = end
                continue
            inside = automaton.count[after] > 0
            ending = after if not plain or apart or end > node + 1 else np.int32(0)
            while ending:
                if n_exits == exits.shape[0]:
                    counters[REQUEST] = GROW_SCRATCH
                    return -1
                exits[n_exits, 0] = node
                exits[n_exits, 1] = automaton.tag[ending]
                exits[n_exits, 2] = automaton.pending[ending]
                exits[n_exits, 3] = count
                n_exits += 1
                ending = automaton.also[ending]
        noted = np.int64(0)
        if not plain:
            # Where nothing follows inside, a token ends here.
            noted = np.int64((count if place == home else count + 1) if inside else -1 - count)
        if inside or not apart:
            n_pieces = _keep(table, n_pieces, node, node + 1, noted)
        if also:
            for _ in range(tokens.token_offset[node], tokens.token_offset[node + 1]):
                kept_at[n_kept, 0] = after
                kept_at[n_kept, 1] = other
                kept_at[n_kept, 2] = place >> 32
                n_kept += 1
        if inside and end > node + 1:
            level += 1
            if level + 1 >= places.shape[0]:
                counters[REQUEST] = GROW_SCRATCH
                return -1
            places[level] = place
            counts[level] = count
            others[level] = other
            ends[level] = end
            node += 1
        else:
            node = end


@entry
def paths_to(table, low, nodes, found):
    """Write in order the nodes on the paths to some ``nodes`` (ascending) of a range, with these; how many they are."""
    tokens = views.tokens(table)
    n = 0
    node = np.int64(low)
    at = 0
    while at < nodes.shape[0]:
        end = np.int64(tokens.end[node])
        if nodes[at] >= end:
            node = end
            continue
        found[n] = node
        n += 1
        if nodes[at] == node:
            at += 1
        node += 1
    return n


@entry
def closings(table, state, path_bytes, path_ends, closes, unknown):
    """For each of the nodes on some paths: does a string that goes on from ``state`` close there?

    Of each node there is the byte, and the place behind those below it.  Writes to ``closes``; -1: request for edges,
    as `survey`; `OWING` where tokens come to owe something.
    """
    automaton = views.automaton(table)
    counters = views.counters(table)
    scratch = views.scratch(table)
    places = scratch.walk_state
    ends = scratch.walk_end
    level = 0
    places[0] = enter(automaton, np.int64(state))
    ends[0] = path_bytes.shape[0]
    n_unknown = np.int64(0)
    closes[:] = 0
    at = 0
    while at < path_bytes.shape[0]:
        while at >= ends[level]:
            level -= 1
        byte = np.int64(path_bytes[at])
        place = glance(automaton, places[level], byte)
        if place == SPELLED:
            place = move(automaton, places[level], byte)
        if place < 0:
            n_unknown = _note(counters, unknown, n_unknown, -place)
            if n_unknown < 0:
                return -1
        if place > 0 and automaton.owes[place & _MASK32]:
            return OWING
        if place == MATCHED:
            closes[at] = 1
        if place > MATCHED:
            # No token has more bytes than there are levels.
            level += 1
            places[level] = place
            ends[level] = path_ends[at]
            at += 1
        else:
            at = path_ends[at]
    return -1 if n_unknown else 0


@inner
def _holds_lines(tokens, node):
    """Is U+2028 or U+2029 below a node whose byte is their first?"""
    second = node + 1
    while second < tokens.end[node]:
        if tokens.byte[second] == 0x80:
            third = second + 1
            while third < tokens.end[second]:
                if tokens.byte[third] == 0xA8 or tokens.byte[third] == 0xA9:
                    return True
                third = tokens.end[third]
        second = tokens.end[second]
    return False


@entry
def mark_tokens(rows, row, kept):
    """Turn over the bits of some tokens in a row: set them where it has none of them."""
    for i in range(kept.shape[0]):
        token = kept[i]
        rows[row, token >> 5] ^= np.uint32(1) << np.uint32(token & 31)


@entry
def index_trie(table, low, high, used, least, class_of_byte, phase_after, readable):
    """Note the classes of bytes at and below every node of a trie, and give those with many children a table of them.

    A table for ``least`` children or more, one for the whole range among them; ``used`` rows of ``children`` are taken.
    Returns how many are then, -1 when there is no room.  ``readable`` is working memory, a byte per node of the range:
    the phases of UTF-8 (``phase_after``) in which all that is below a node can be read.
    """
    tokens = views.tokens(table)
    text = class_of_byte[0x80]
    broken = text << 2
    for parent in range(high - 1, low - 2, -1):
        first = parent + 1
        stop = np.int64(tokens.end[parent]) if parent >= low else high
        count = 0
        classes = np.int64(0)
        phases = np.int64(0xFF)
        node = first
        while node < stop:
            count += 1
            byte = tokens.byte[node]
            classes |= tokens.classes[node] & ~broken
            if phases:
                here = np.int64(0)
                for phase in range(8):
                    after = phase_after[phase, byte]
                    if after < 8 and readable[node - low] >> after & 1:
                        here |= 1 << phase
                phases &= here
            node = np.int64(tokens.end[node])
        if parent >= low:
            readable[parent - low] = phases
            byte = tokens.byte[parent]
            classes |= class_of_byte[byte]
            if byte == 0xE2 and _holds_lines(tokens, parent):
                classes |= text << 1
            after = phase_after[0, byte]
            if classes & text and (after == 8 or not phases >> after & 1):
                classes |= broken
            tokens.classes[parent] = classes
        if count < least:
            continue
        if used == tokens.children.shape[0]:
            return -1
        tokens.children[used, :] = 0
        node = first
        while node < stop:
            tokens.children[used, tokens.byte[node]] = node
            node = np.int64(tokens.end[node])
        used += 1
        tokens.fan[first] = used
    return used


@inner
def _sorted_children(tokens, parents, low, high, nodes, first, spare):
    """Write the children of ``parents[low:high]`` to ``nodes[first:]``, ordered by byte; their end, or -1: no room."""
    n = first
    for i in range(low, high):
        child = parents[i] + 1
        last = tokens.end[parents[i]]
        while child < last:
            if n == nodes.shape[0]:
                return -1
            nodes[n] = child
            n += 1
            child = tokens.end[child]
    if high - low == 1:
        return n  # the children of one node are in order
    if n - first <= FEW:
        for i in range(first + 1, n):
            node = nodes[i]
            at = i
            while at > first and tokens.byte[nodes[at - 1]] > tokens.byte[node]:
                nodes[at] = nodes[at - 1]
                at -= 1
            nodes[at] = node
        return n
    place = np.zeros(257, np.int32)
    for i in range(first, n):
        place[np.int64(tokens.byte[nodes[i]]) + 1] += 1
    for i in range(256):
        place[i + 1] += place[i]
    for i in range(first, n):
        byte = np.int64(tokens.byte[nodes[i]])
        spare[place[byte]] = nodes[i]
        place[byte] += 1
    for i in range(n - first):
        nodes[first + i] = spare[i]
    return n


@entry
def merge(table, starts, n_starts, nodes_used, tokens_used, nodes, spare, stamp, frames):
    """Append to the pool one trie that holds all children of the nodes ``starts[:n_starts]``, each token once a node.

    The new trie is the range from ``nodes_used``, where ``token_offset`` is ``tokens_used``; returns its end, or -1
    with a request: `GROW_MACHINE` when the pool is full, `GROW_SCRATCH` when ``nodes`` and ``spare`` are.  ``stamp``
    is ``int32[tokens]`` of -1, and so it must be again after a request.  Rows of ``frames`` are the place in ``nodes``
    that a level has come to, its end, and the node that it is below.  What only one of the nodes has below a byte is
    copied as it lies, so that the work is what tries share.
    """
    tokens = views.tokens(table)
    counters = views.counters(table)
    used = nodes_used
    held = tokens_used
    depth = 0
    frames[0, 0] = 0
    frames[0, 1] = _sorted_children(tokens, starts, np.int64(0), n_starts, nodes, np.int64(0), spare)
    frames[0, 2] = -1
    if frames[0, 1] < 0:
        counters[REQUEST] = GROW_SCRATCH
        return -1
    while depth >= 0:
        at = np.int64(frames[depth, 0])
        end = np.int64(frames[depth, 1])
        if at == end:
            if frames[depth, 2] >= 0:
                tokens.end[frames[depth, 2]] = used
            depth -= 1
            continue
        byte = tokens.byte[nodes[at]]
        last = np.int64(at + 1)
        while last < end and tokens.byte[nodes[last]] == byte:
            last += 1
        frames[depth, 0] = last
        size = 1
        n_ids = 0
        source = nodes[at]
        first_id = tokens.token_offset[source]
        if last == at + 1:
            size = tokens.end[source] - source
            n_ids = tokens.token_offset[source + size] - first_id
        else:
            for i in range(at, last):
                n_ids += tokens.token_offset[nodes[i] + 1] - tokens.token_offset[nodes[i]]
        if used + size >= tokens.byte.shape[0] or held + n_ids > tokens.token_ids.shape[0]:
            counters[REQUEST] = GROW_MACHINE
            return -1
        if last == at + 1:
            for i in range(size):
                tokens.byte[used + i] = tokens.byte[source + i]
                tokens.end[used + i] = tokens.end[source + i] + (used - source)
                tokens.token_offset[used + i + 1] = tokens.token_offset[source + i + 1] + (held - first_id)
            for i in range(n_ids):
                tokens.token_ids[held + i] = tokens.token_ids[first_id + i]
            used += size
            held += n_ids
            continue
        node = used
        tokens.byte[node] = byte
        used += 1
        for i in range(at, last):
            for j in range(tokens.token_offset[nodes[i]], tokens.token_offset[nodes[i] + 1]):
                token = tokens.token_ids[j]
                if stamp[token] != node:
                    stamp[token] = node
                    tokens.token_ids[held] = token
                    held += 1
        tokens.token_offset[used] = held
        below = _sorted_children(tokens, nodes, at, last, nodes, end, spare)
        if below < 0:
            counters[REQUEST] = GROW_SCRATCH
            return -1
        if below == end:
            tokens.end[node] = used
        else:
            depth += 1
            frames[depth, 0] = end
            frames[depth, 1] = below
            frames[depth, 2] = node
    return used
