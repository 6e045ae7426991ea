"""Walks over token tries from one automaton state: tokens that live, and boundary tasks where a match ends."""

from __future__ import annotations

import numpy as np

from guided.kernels.data import views
from guided.kernels.data.asking import ask
from guided.kernels.data.layout import ANY, CLOSES, FAR, FUEL, LISTED, NOTED, STRING
from guided.kernels.data.requests import EXPAND_STATE, GROW_SCRATCH, MEASURE_STATE
from guided.kernels.jit import inner
from guided.kernels.lexing.byte_classes import LINES, TEXT
from guided.kernels.lexing.strings import ESCAPE, SPELLED, edge, enter, glance, move
from guided.kernels.masking.segments import first_visit, list_token, note, note_after, push
from guided.kernels.parsing.costs import left_inside
from guided.kernels.parsing.threads import join

_MASK32 = 0xFFFFFFFF

SMALL_RANGE = 96
"""Ranges of fewer nodes are walked rather than looked up: about the cost of one cached effect's copy (0.5 us)."""

CROWDED = 90
"""Ways in which the forbidden words go on from which a free printable character (of 95) is not taken for granted."""

EVASION = 4
"""Characters more with which a run is none of the words that it must not be: fewer than 95^4 words cannot be all texts
that are four printable characters longer than what is there."""

ESCAPES = (0x22, 0x2F, 0x5C, 0x62, 0x66, 0x6E, 0x72, 0x74, 0x75)
"""What may come after a backslash."""

CHARACTER_LEFT = 3
"""Most bytes that are left of a character that has begun (RFC 3629)."""

FEW = 24
"""Bytes that may come up to which the children for just these are looked up, where a table has them; else all 200 or so
are looked at one after the other, each a miss of the cache."""


@inner
def ways(automaton, tokens, place, low):
    """The table of a range's children, if few bytes lead on from a place and it has one; else 0."""
    fan = np.int64(tokens.fan[low])
    if fan == 0 or place >> 32 == ESCAPE:
        return fan
    if place >> 32:
        return np.int64(0)
    first = automaton.first[place]
    if first < 0:
        return np.int64(0)
    width = np.int64(0)
    for at in range(first, first + automaton.count[place]):
        width += np.int64(automaton.high[at]) - np.int64(automaton.low[at]) + 1
    return fan if width <= FEW else np.int64(0)


@inner
def way(automaton, place, index):
    """The byte of number ``index`` that may lead on from a place, -1 after the last."""
    if place >> 32:
        return np.int64(ESCAPES[index]) if index < len(ESCAPES) else np.int64(-1)
    state = place
    if automaton.mode[state] & STRING:
        if index < 2:
            return np.int64(0x22 if index == 0 else 0x5C)
        index -= 2
    first = automaton.first[state]
    for at in range(first, first + automaton.count[state]):
        width = np.int64(automaton.high[at]) - np.int64(automaton.low[at]) + 1
        if index < width:
            return np.int64(automaton.low[at]) + index
        index -= width
    return np.int64(-1)


@inner
def payable_below(automaton, tokens, obligation, low, high):
    """May a byte that begins one of a range's children come under an obligation?  True also where that is not known.

    Behind a terminal that may end anywhere there are as many ends as nodes, and hardly any goes on with what is not
    the terminal's own: a task for each took most of the time of a first mask.
    """
    if obligation == 0 or automaton.mode[obligation] & STRING:
        return True
    node = np.int64(low)
    while node < high:
        due = edge(automaton, obligation, tokens.byte[node])
        if due <= 0 or automaton.tag[due] < 0:
            return True
        node = np.int64(tokens.end[node])
    return False


@inner
def begins(automaton, tokens, state, low, high):
    """May a child of a range be read from a state?  True also where that is not known.

    Of what may come at a boundary hardly anything begins with the few bytes that a small range has.
    """
    first = automaton.first[state]
    if first < 0 or automaton.mode[state] != 0 or automaton.count[state] == 0:
        return True
    least, most = automaton.low[first], automaton.high[first + automaton.count[state] - 1]
    if tokens.fan[low]:
        return least < most or tokens.children[tokens.fan[low] - 1, least] > 0
    node = np.int64(low)
    while node < high:
        byte = tokens.byte[node]
        if byte >= least:
            return byte <= most
        node = np.int64(tokens.end[node])
    return False


@inner
def stays_below(automaton, tokens, place, node):
    """Does a state in which nothing may end lead back to itself on every character at and below a node?"""
    if place > _MASK32:
        return False
    closed = automaton.closed[place]
    return closed != 0 and tokens.classes[node] & ~closed == 0 and automaton.tag[place] < 0


@inner
def _evasion(automaton, debt):
    """Tokens more where a string may not close, since it would be one of the words that it must not be."""
    return np.int64(1 if automaton.count[debt] < CROWDED else EVASION)


@inner
def walk(table, row, undecided, depth, low, high, state, continuation, obligation, stamp, limit):
    """Walk one range from one automaton state; sets bits in ``row``, pushes boundary tasks; new depth, -1: request.

    Where the counter `NOTED` is not -1, tokens and tasks are written down there for `guided.kernels.masking.segments`;
    it is then the place behind them, -1 where that was too much.

    Tokens after which something is still owed go to ``undecided``: the caller must see whether the debt can be met.
    What lies behind states whose edges are not known is left out, and these are asked for.  With
    ``limit`` >= 0 only tokens after which so many are enough; with `LISTED` no bits are set, but all tokens listed with
    what is enough after them.  Behind the continuation 0 nothing is walked.
    """
    automaton = views.automaton(table)
    machine = views.machine(table)
    counters = views.counters(table)
    scratch = views.scratch(table)
    tokens = views.tokens(table)
    places = scratch.walk_state
    owed = scratch.walk_obligation
    ends = scratch.walk_end
    fans = scratch.walk_fan
    next_way = scratch.walk_way
    beyond_at = scratch.walk_other
    level = 0
    places[0] = enter(automaton, state)
    owed[0] = obligation
    node = np.int64(low)
    ends[0] = beyond_at[0] = high
    # Where few bytes lead on, only the children for these are looked at.
    fans[0] = ways(automaton, tokens, places[0], low)
    if fans[0]:
        next_way[0] = ends[0] = 0
    visited = 0
    noted = counters[NOTED]
    while True:
        while node >= ends[level]:
            if fans[level]:
                chosen = way(automaton, places[level], next_way[level])
                if chosen >= 0:
                    next_way[level] += 1
                    child = np.int64(tokens.children[fans[level] - 1, chosen])
                    if child > 0:
                        node = child
                        ends[level] = tokens.end[child]
                    continue
                node = np.int64(beyond_at[level])
            if level == 0:
                counters[FUEL] -= visited >> 6
                counters[NOTED] = noted
                return depth
            level -= 1
        byte = np.int64(tokens.byte[node])
        visited += 1
        at = places[level]
        end = np.int64(tokens.end[node])
        debt = owed[level]
        stays = debt == 0 and stays_below(automaton, tokens, at, node)
        if stays and limit != ANY:
            # All of them end in one state, or inside a character that leads back to it.
            if automaton.minimum[at] < 0 and not ask(table, MEASURE_STATE, at):
                return -1
            left = np.int64(automaton.minimum[at] + machine.cost[continuation])
            is_text = tokens.classes[node] & (TEXT | LINES) != 0
            if not is_text and (limit == LISTED or left > limit):
                if limit == LISTED:
                    for i in range(tokens.token_offset[node], tokens.token_offset[end]):
                        if list_token(table, tokens.token_ids[i], min(left, FAR)) < 0:
                            return -1
                node = end
                continue
            stays = left + CHARACTER_LEFT <= limit if is_text else True
        if stays:
            for i in range(tokens.token_offset[node], tokens.token_offset[end]):
                token = tokens.token_ids[i]
                row[token >> 5] |= np.uint32(1) << np.uint32(token & 31)
                noted = note(table, noted, token)
            node = end
            continue
        place = glance(automaton, at, byte)
        if place == SPELLED:
            place = move(automaton, at, byte)
        if place < 0:
            if not ask(table, EXPAND_STATE, -place):
                return -1
            node = end
            continue
        if place == 0:
            node = end
            continue
        if debt:
            owing = np.int64(debt)
            if automaton.mode[debt] & STRING:
                owing |= at & ~_MASK32
            due = glance(automaton, owing, byte)
            if due == SPELLED:
                due = move(automaton, owing, byte)
            if due < 0:
                if not ask(table, EXPAND_STATE, -due):
                    return -1
                node = end
                continue
            due &= _MASK32
            if due > 0 and automaton.tag[due] >= 0:
                node = end
                continue
            debt = np.int32(due)
        after = place & _MASK32
        if automaton.owes[after]:
            debt = automaton.owes[after]
            after = np.int64(automaton.base[after])
            place = after
        tag = automaton.tag[after]
        payable = debt == 0 or automaton.mode[debt] != 0
        inside = True
        ends_free = False
        fits = limit == ANY
        priced = not fits and tokens.token_offset[node] < tokens.token_offset[node + 1]
        price = np.int64(FAR)
        ending = np.int64(0)
        if tag >= 0:
            if automaton.first[after] < 0:
                if not ask(table, EXPAND_STATE, after):
                    return -1
                node = end
                continue
            inside = automaton.count[after] > 0
            ending = np.int64(after)
        while ending:
            due = join(table, debt, automaton.pending[ending])
            if due < 0:
                return -1
            ends_free = ends_free or due == 0
            price = min(price, np.int64(machine.cost[continuation]))
            if continuation and end > node + 1 and payable_below(automaton, tokens, due, node + 1, end):
                noted = note_after(table, noted, 0, node + 1, end, due)
                if first_visit(table, stamp, node + 1, continuation, due):
                    depth = push(table, depth, node + 1, end, 0, continuation, due)
                    if depth < 0:
                        return -1
            ending = np.int64(automaton.also[ending])
        if priced:
            if inside and (limit == LISTED or price > limit):
                if place > _MASK32 and automaton.first[after] < 0:
                    if not ask(table, EXPAND_STATE, after):
                        return -1
                    node = end
                    continue
                left = left_inside(table, place)
                if left < 0 and not ask(table, MEASURE_STATE, ~left):
                    return -1
                if debt and automaton.mode[debt] & CLOSES:
                    left += _evasion(automaton, debt)
                price = min(price, left + machine.cost[continuation])
            fits = price <= limit
            if limit == LISTED:
                for i in range(tokens.token_offset[node], tokens.token_offset[node + 1]):
                    if list_token(table, tokens.token_ids[i], min(price, FAR)) < 0:
                        return -1
        if fits:
            free = ends_free or (inside and payable)
            for i in range(tokens.token_offset[node], tokens.token_offset[node + 1]):
                token = tokens.token_ids[i]
                bit = np.uint32(1) << np.uint32(token & 31)
                if free:
                    row[token >> 5] |= bit
                    noted = note(table, noted, token)
                else:
                    undecided[token >> 5] |= bit
                    noted = np.int64(-1)
        if (
            inside
            and end - node > SMALL_RANGE
            and limit != LISTED
            and payable
            and automaton.loops[after] > 1
            and place == after
        ):
            # What goes on here is met in every grammar: its effect is known.
            noted = note_after(table, noted, after, node + 1, end, debt)
            depth = push(table, depth, node + 1, end, after, continuation, debt)
            if depth < 0:
                return -1
            node = end
        elif inside and end > node + 1:
            level += 1
            if level + 1 >= places.shape[0]:
                ask(table, GROW_SCRATCH)
                return -1
            places[level] = place
            owed[level] = debt
            ends[level] = beyond_at[level] = end
            node += 1
            fans[level] = ways(automaton, tokens, place, node)
            if fans[level]:
                next_way[level] = ends[level] = 0
        else:
            node = end


@inner
def forbid(table, share, low, high, obligation, room):
    """Take out of ``share`` the tokens of a range in which an obligation comes to a match; -1: request.

    With ``room`` >= 0 also those behind which the string may not close yet, and so many tokens are not enough to.
    """
    automaton = views.automaton(table)
    scratch = views.scratch(table)
    tokens = views.tokens(table)
    places = scratch.walk_state
    ends = scratch.walk_end
    level = 0
    fans = scratch.walk_fan
    next_way = scratch.walk_way
    beyond_at = scratch.walk_other
    places[0] = obligation
    ends[0] = beyond_at[0] = high
    node = np.int64(low)
    fans[0] = ways(automaton, tokens, places[0], low)
    if fans[0]:
        next_way[0] = ends[0] = 0
    while True:
        while node >= ends[level]:
            if fans[level]:
                chosen = way(automaton, places[level], next_way[level])
                if chosen >= 0:
                    next_way[level] += 1
                    child = np.int64(tokens.children[fans[level] - 1, chosen])
                    if child > 0:
                        node = child
                        ends[level] = tokens.end[child]
                    continue
                node = np.int64(beyond_at[level])
            if level == 0:
                return 0
            level -= 1
        byte = np.int64(tokens.byte[node])
        place = glance(automaton, places[level], byte)
        if place == SPELLED:
            place = move(automaton, places[level], byte)
        if place < 0:
            ask(table, EXPAND_STATE, -place)
            return -1
        end = np.int64(tokens.end[node])
        if place == 0:
            node = end
            continue
        if automaton.tag[place & _MASK32] >= 0:
            for i in range(tokens.token_offset[node], tokens.token_offset[end]):
                token = tokens.token_ids[i]
                share[token >> 5] &= ~(np.uint32(1) << np.uint32(token & 31))
            node = end
            continue
        debt = place & _MASK32
        if room >= 0 and automaton.mode[debt] & CLOSES and room <= _evasion(automaton, debt):
            for i in range(tokens.token_offset[node], tokens.token_offset[node + 1]):
                token = tokens.token_ids[i]
                share[token >> 5] &= ~(np.uint32(1) << np.uint32(token & 31))
        if end > node + 1:
            level += 1
            if level + 1 >= places.shape[0]:
                ask(table, GROW_SCRATCH)
                return -1
            places[level] = place
            ends[level] = beyond_at[level] = end
            node += 1
            fans[level] = ways(automaton, tokens, place, node)
            if fans[level]:
                next_way[level] = ends[level] = 0
        else:
            node = end
