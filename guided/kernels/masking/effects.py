"""What the tokens of a trie range do from one automaton state: which stay inside, and where matches end.

Nothing here knows a parser, so the results serve every grammar of a vocabulary.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data import views
from guided.kernels.data.asking import ask
from guided.kernels.data.layout import CLOSES, MATCHED, STRING
from guided.kernels.data.local_arrays import local_int_rows, local_longs
from guided.kernels.data.requests import EXPAND_STATE, GROW_EXITS
from guided.kernels.jit import entry, inner
from guided.kernels.lexing.strings import enter, move
from guided.kernels.masking.rows import add_tokens, remove_tokens
from guided.kernels.masking.walks import payable_below
from guided.kernels.tokens.cursor import below, settled, start

_MASK32 = 0xFFFFFFFF

PLACES = -2
"""In the place of a state to be counted: the places in which tokens end are noted."""

PIECES = -3
"""The same, but the pieces of the trie are left as they are, three numbers each: the first node, the one behind the
last, and the place.  Exits are not noted."""

OWING = -2
"""What `survey` returns from states that come to owe something: their tokens must be walked with the parser."""

ROWS = 64
"""States whose table of what each byte leads to is kept during a walk, by the last bits of their number: 64 KB."""
WORTH = 16
"""Nodes still to come in a state from which on its table, some 100 ns, is made: finding an edge costs 10 ns a node."""

DENSE = 512
"""Tokens up to which an effect is kept as a list rather than a bitmask row; a guess at where the costs meet."""


@inner
def note_exits(table, exits, n, node, state, count):
    """Note the ways in which a match ends at a node in a state; how many exits there are, -1: request."""
    automaton = views.automaton(table)
    tokens = views.tokens(table)
    ending = np.int64(state)
    while ending:
        if n == exits.shape[0]:
            ask(table, GROW_EXITS)
            return np.int64(-1)
        pending = np.int64(automaton.pending[ending])
        # Behind a word that goes on there is an exit at each node, and hardly any has a byte below that is none of it.
        if pending == 0 or payable_below(automaton, tokens, pending, node + 1, tokens.end[node]):
            exits[n, 0] = node
            exits[n, 1] = automaton.tag[ending]
            exits[n, 2] = pending
            exits[n, 3] = count
            n += 1
        ending = np.int64(automaton.also[ending])
    return n


@inner
def tell_bytes(automaton, state, row):
    """Write to ``row[256]`` the state after each byte, 0 for dead, and -1 where `move` must be asked."""
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
def _list(table, n_pieces, kept):
    """List the tokens of all pieces; how many they are."""
    tokens = views.tokens(table)
    pieces = views.scratch(table).tasks
    n = np.int64(0)
    for p in range(n_pieces):
        for i in range(tokens.token_offset[pieces[3 * p]], tokens.token_offset[pieces[3 * p + 1]]):
            kept[n] = tokens.token_ids[i]
            n += 1
    return n


@inner
def _list_noted(table, n_pieces, kept, noted):
    """List where in `Tokens.token_ids` the tokens of all pieces are, each with what its piece says; how many."""
    tokens = views.tokens(table)
    pieces = views.scratch(table).tasks
    n = np.int64(0)
    for p in range(n_pieces):
        for i in range(tokens.token_offset[pieces[3 * p]], tokens.token_offset[pieces[3 * p + 1]]):
            noted[n] = pieces[3 * p + 2]
            kept[n] = i
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
        return _list(table, n_pieces, kept)
    if whole < 0 or 2 * n < offset[high] - offset[low]:
        masks[row, :] = 0
        for p in range(n_pieces):
            add_tokens(tokens, masks[row], pieces[3 * p], pieces[3 * p + 1])
        return n
    for word in range(masks.shape[1]):
        masks[row, word] = masks[whole, word]
    begin = np.int64(low)
    for p in range(n_pieces + 1):
        stop = high if p == n_pieces else pieces[3 * p]
        remove_tokens(tokens, masks[row], begin, stop)
        if p < n_pieces:
            begin = pieces[3 * p + 1]
    return n


@inner
def _behind_staying(tokens, row, at, node, stop):
    """The first node from one on, of those that end a token or go on with one, by whose byte a state is left."""
    while node < stop and row[tokens.byte[node]] == at:
        node += 1
    return node


@inner
def _count_below(table, n_pieces, node, level):
    """Keep all tokens at and below a node, with the characters that have begun where each ends; the pieces then."""
    tokens = views.tokens(table)
    scratch = views.scratch(table)
    counts, ends = scratch.walk_obligation, scratch.walk_end
    stop = np.int64(tokens.end[node])
    while node < stop:
        while node >= ends[level]:
            level -= 1
        count = counts[level] + (tokens.byte[node] & 0xC0 != 0x80)
        n_pieces = _keep(table, n_pieces, node, node + 1, count)
        level += 1
        counts[level] = count
        ends[level] = tokens.end[node]
        node += 1
    return n_pieces


@entry("long, long, long, long, long, long, flag, long, ints, longs, int_rows")
def survey(table, low, high, state, row, whole, apart, home, kept, noted, exits):
    """Walk ``[low, high)`` from ``state``: tokens that stay or end, and the nodes where matches end; -1: request.

    With ``row`` >= 0 tokens that stay or end are ``kept`` where they are no more than `DENSE`, else set in that row of
    `Effects.masks`, and exits are noted where something is below; nothing else of what follows.  ``whole`` is the row
    of all tokens of the range where each is there once, else -1.  With ``apart`` tokens behind which nothing can follow
    inside are left out, and all exits noted.  Without ``row`` every token is noted:

    ``kept[i]`` is where in `Tokens.token_ids` a token is, and ``noted[i]`` how many times its path came to the state
    ``home``, plus one when it ends between two such times, or -1 - count when it ends exactly where a match ends and
    nothing can follow inside; with `PLACES`, the place in which it ends, or before the character in which it ends,
    where all lead back there; with `PIECES` no token is noted, and the number of pieces takes that of tokens.
    ``exits`` rows are ``(node, tag, pending, count)``.  States whose edges are not known are asked for and their
    subtrees skipped, so that one round asks for as many as that has room for; the request holds their number.
    Returns ``n_kept << 32 | n_exits``, or `OWING`.
    """
    automaton = views.automaton(table)
    scratch = views.scratch(table)
    tokens = views.tokens(table)
    counts = scratch.walk_obligation
    rows = local_int_rows(ROWS, 256)
    held = local_longs(ROWS)
    held[:] = 0
    plain = row >= 0
    n_pieces = np.int64(0)
    n_exits = np.int64(0)
    requests = views.requests(table)
    counts[0] = 0
    level = np.int64(0)
    node = start(table, low, high, enter(automaton, state), level, True)
    while True:
        node, level = settled(table, node, level)
        if node < 0:
            if requests.count[0]:
                return np.int64(-1)
            if home == PIECES:
                return n_pieces << 32
            if plain:
                return _set_bits(table, row, whole, low, high, n_pieces, kept) << 32 | n_exits
            return _list_noted(table, n_pieces, kept, noted) << 32 | n_exits
        at = scratch.walk_state[level]
        left = scratch.walk_end[level] - node
        end = np.int64(tokens.end[node])
        byte = np.int64(tokens.byte[node])
        place = np.int64(-1)
        if at <= _MASK32:
            slot = at & (ROWS - 1)
            if held[slot] != at and left >= WORTH:
                tell_bytes(automaton, at, rows[slot])
                held[slot] = at
            if held[slot] == at:
                place = np.int64(rows[slot, byte])
            stays = automaton.tag[at] < 0
            staying = np.int64(0)
            if not plain:
                staying = at if home <= PLACES else np.int64(counts[level] + 1)
            if stays and place == at and at != home:
                # What is below goes on from the same state, as what comes beside it does.
                begin = node
                node = _behind_staying(tokens, rows[slot], at, node, node + left)
                n_pieces = _keep(table, n_pieces, begin, node, staying)
                continue
            closes = not tokens.classes[node] & ~automaton.closed[at]
            if stays and closes and (place < 0 or place == at or byte >= 0x80):
                # Every character here and below leads back: nothing is read but how many of them begin.
                if at == home:
                    n_pieces = _count_below(table, n_pieces, node, level)
                else:
                    n_pieces = _keep(table, n_pieces, node, end, staying)
                node = end
                continue
        if place < 0:
            place = move(automaton, at, byte)
        if place < 0:
            if not ask(table, EXPAND_STATE, -place):
                return np.int64(-1)
            node = node + left if -place == at else end
            continue
        if place == 0:
            node = end
            continue
        after = place & _MASK32
        if automaton.owes[after]:
            return np.int64(OWING)
        inside = True
        count = counts[level]
        if place == home:
            count += 1
        if automaton.tag[after] >= 0:
            if automaton.first[after] < 0:
                if not ask(table, EXPAND_STATE, after):
                    return np.int64(-1)
                node = end
                continue
            inside = automaton.count[after] > 0
            if home != PIECES and (not plain or apart or end > node + 1):
                n_exits = note_exits(table, exits, n_exits, node, after, count)
                if n_exits < 0:
                    return np.int64(-1)
        ended = np.int64(0)
        if home <= PLACES:
            ended = place
        elif not plain:
            # Where nothing follows inside, a token ends here.
            ended = np.int64((count if place == home else count + 1) if inside else -1 - count)
        if inside or not apart:
            n_pieces = _keep(table, n_pieces, node, node + 1, ended)
        if inside and end > node + 1:
            node, level = below(table, node, level, place, True)
            counts[level] = count
        else:
            node = end


@entry("long, long, ints, ints")
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


@entry("long, long, bytes, ints, bytes")
def closings(table, state, path_bytes, path_ends, closes):
    """For each of the nodes on some paths: does a string that goes on from ``state`` close there?

    Of each node there is the byte, and the place behind those below it.  Writes to ``closes``; -1: request for edges,
    as `survey`; `OWING` where tokens come to owe something.
    """
    automaton = views.automaton(table)
    scratch = views.scratch(table)
    places = scratch.walk_state
    ends = scratch.walk_end
    level = 0
    places[0] = enter(automaton, state)
    ends[0] = path_bytes.shape[0]
    requests = views.requests(table)
    closes[:] = 0
    at = 0
    while at < path_bytes.shape[0]:
        while at >= ends[level]:
            level -= 1
        byte = np.int64(path_bytes[at])
        place = move(automaton, places[level], byte)
        if place < 0 and not ask(table, EXPAND_STATE, -place):
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
    return -1 if requests.count[0] else 0


@entry("word_rows, long, ints")
def mark_tokens(rows, row, kept):
    """Turn over the bits of some tokens in a row: set them where it has none of them."""
    for i in range(kept.shape[0]):
        token = kept[i]
        rows[row, token >> 5] ^= np.uint32(1) << np.uint32(token & 31)
