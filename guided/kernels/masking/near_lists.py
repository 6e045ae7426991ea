"""What is listed of the tokens that stay inside a terminal: so many tokens are enough behind each to its end.

A walk (`guided.kernels.masking.effects.survey`) tells pieces of the trie and the place in which the tokens of each end.
Pieces are few, and mostly one price is that of nearly all tokens: only the others are listed.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data import views
from guided.kernels.data.asking import ask
from guided.kernels.data.layout import FAR
from guided.kernels.data.local_arrays import local_longs
from guided.kernels.data.requests import EXPAND_STATE, MEASURE_STATE
from guided.kernels.jit import entry, inner
from guided.kernels.lexing.byte_classes import TEXT
from guided.kernels.parsing.costs import left_inside

__all__ = ["CROWDED", "list_near"]

CROWDED = -2
"""What `list_near` returns where there are more prices than it has room for."""

_MASK32 = 0xFFFFFFFF

MET = 256
"""Places whose prices are held, by the last bits of their number: most tokens end in few."""


@inner
def _price_pieces(table, n_pieces):
    """Write what is enough behind the tokens of each piece in the place of where they end; False: some is asked for.

    As ``~(price << 1 | is_before)``: a token that ends inside a character, all of which lead back to a place, is said
    to end in that place, and is before it.  So what has a price is known where the rest is asked for again.
    """
    automaton = views.automaton(table)
    pieces = views.scratch(table).tasks
    places, prices = local_longs(MET), local_longs(MET)
    places[:] = -1
    is_whole = True
    for p in range(n_pieces):
        place = np.int64(pieces[3 * p + 2])
        if place < 0:
            continue
        state = place & _MASK32
        slot = place & (MET - 1)
        if places[slot] == place:
            pieces[3 * p + 2] = prices[slot]
            continue
        left = np.int64(0)
        if place != state or automaton.tag[state] < 0:
            if place != state and automaton.first[state] < 0:
                is_whole = False
                if not ask(table, EXPAND_STATE, state):
                    return False
                continue
            left = left_inside(table, place)
            if left < 0:
                is_whole = False
                if not ask(table, MEASURE_STATE, ~left):
                    return False
                continue
        is_before = np.int64(place == state and automaton.closed[state] & TEXT != 0)
        pieces[3 * p + 2] = ~(min(left, np.int64(FAR)) << 1 | is_before)
        places[slot], prices[slot] = place, pieces[3 * p + 2]
    return is_whole


@inner
def _slot_of(slots, price):
    """Where a price is in a hash of two numbers each, the price plus one and another, or where it belongs."""
    last = np.int64(slots.shape[0] // 2 - 1)
    slot = np.int64((np.uint64(price) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & last
    while slots[2 * slot] and slots[2 * slot] != price + 1:
        slot = (slot + 1) & last
    return 2 * slot


@inner
def _count(slots, order, n, price, n_tokens):
    """Count tokens that have a price; how many prices there are then, ascending in ``order``."""
    if n_tokens == 0:
        return n
    slot = _slot_of(slots, price)
    if slots[slot] == 0:
        slots[slot] = price + 1
        at = np.int64(n)
        while at and order[at - 1] > price:
            order[at] = order[at - 1]
            at -= 1
        order[at] = price
        n += 1
    slots[slot + 1] += n_tokens
    return n


@inner
def _arrange(slots, order, n, listed):
    """Write the prices where their tokens are to be listed, and to ``slots`` where those of each begin; their end.

    Those that the usual price has are not listed: there is -1.
    """
    usual = np.int64(0)
    for i in range(n):
        if slots[_slot_of(slots, order[i]) + 1] > slots[_slot_of(slots, order[usual]) + 1]:
            usual = np.int64(i)
    listed[0] = order[usual]
    at = np.int64(2)
    for step in range(n):
        # From the dearest down to the usual one, then the others from the cheapest up.
        i = n - 1 - step if step < n - usual else step - (n - usual)
        slot = _slot_of(slots, order[i])
        n_tokens = slots[slot + 1]
        if i == usual:
            listed[1] = at - 2
            slots[slot + 1] = -1
        else:
            listed[at] = ~order[i]
            slots[slot + 1] = at + 1
            at += 1 + n_tokens
    return at


@inner
def _put(tokens, slots, price, first, stop, listed):
    """List tokens of the pool that have a price."""
    slot = _slot_of(slots, price)
    at = slots[slot + 1]
    if at >= 0:
        for i in range(first, stop):
            listed[at] = tokens.token_ids[i]
            at += 1
        slots[slot + 1] = at


@entry("long, long, ints, bytes, longs, longs, ints")
def list_near(table, n_pieces, lacking, lacks, slots, order, listed):
    """List the tokens of some pieces of a walk as `guided.kernels.masking.masks` reads them; how long the list is.

    ``lacking`` are the places in the pool of tokens that end inside a character, and ``lacks`` how many bytes of it are
    lacking.  ``slots`` and ``order`` are working memory for prices, twice as many slots as prices at least, and a power
    of two.  -1: request, `CROWDED`: these are too few.
    """
    if not _price_pieces(table, n_pieces):
        return np.int64(-1)
    pieces = views.scratch(table).tasks
    tokens = views.tokens(table)
    offset = tokens.token_offset
    slots[:] = 0
    n = np.int64(0)
    at = np.int64(0)
    for p in range(n_pieces):
        if n + 5 > order.shape[0]:
            return np.int64(CROWDED)
        first, stop = np.int64(offset[pieces[3 * p]]), np.int64(offset[pieces[3 * p + 1]])
        price = ~pieces[3 * p + 2] >> 1
        n_whole = stop - first
        while at < lacking.shape[0] and lacking[at] < stop:
            if lacking[at] >= first and ~pieces[3 * p + 2] & 1:
                n = _count(slots, order, n, price + lacks[at], 1)
                n_whole -= 1
            at += 1
        n = _count(slots, order, n, price, n_whole)
    if n == 0:
        listed[0], listed[1] = FAR, 0
        return np.int64(2)
    size = _arrange(slots, order, n, listed)
    usual = np.int64(listed[0])
    at = np.int64(0)
    for p in range(n_pieces):
        first, stop = np.int64(offset[pieces[3 * p]]), np.int64(offset[pieces[3 * p + 1]])
        price = ~pieces[3 * p + 2] >> 1
        while at < lacking.shape[0] and lacking[at] < first:
            at += 1
        is_before = ~pieces[3 * p + 2] & 1 and at < lacking.shape[0] and lacking[at] < stop
        if price == usual and not is_before:
            continue
        while is_before and at < lacking.shape[0] and lacking[at] < stop:
            _put(tokens, slots, price, first, lacking[at], listed)
            first = np.int64(lacking[at]) + 1
            _put(tokens, slots, price + lacks[at], first - 1, first, listed)
            at += 1
        _put(tokens, slots, price, first, stop, listed)
    return size
