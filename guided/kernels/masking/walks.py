"""Walks over token tries from one automaton state: tokens that live, and boundary tasks where a match ends."""

from __future__ import annotations

import numpy as np

from guided.kernels.data import views
from guided.kernels.data.asking import ask
from guided.kernels.data.layout import ANY, CLOSES, FAR, FUEL, LISTED, NOTED, STRING
from guided.kernels.data.requests import EXPAND_STATE, MEASURE_STATE
from guided.kernels.jit import inner
from guided.kernels.lexing.byte_classes import LINES, TEXT
from guided.kernels.lexing.nearest import least_left
from guided.kernels.lexing.strings import edge, enter, move, owe
from guided.kernels.masking.rows import add_tokens, remove_tokens
from guided.kernels.masking.segments import first_visit, list_tokens, note_after, note_tokens, push
from guided.kernels.parsing.costs import left_inside
from guided.kernels.parsing.threads import join
from guided.kernels.tokens.cursor import below, settled, start

_MASK32 = 0xFFFFFFFF

SMALL_RANGE = 96
"""Ranges of fewer nodes are walked rather than looked up: about the cost of one cached effect's copy (0.5 us)."""

CROWDED = 90
"""Ways in which the forbidden words go on from which a free printable character (of 95) is not taken for granted."""

EVASION = 4
"""Characters more with which a run is none of the words that it must not be: fewer than 95^4 words cannot be all texts
that are four printable characters longer than what is there."""

NONE, SOME, ALL = 0, 1, 2
"""Of the tokens below a node, those that a limit allows; `SOME` where they are looked at one by one."""

CHARACTER_LEFT = 3
"""Most bytes that are left of a character that has begun (RFC 3629)."""


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
def _keeps_below(table, at, node, continuation, limit):
    """Which tokens at and below a node does a limit allow where all stay in one state?  `NONE`, `SOME` or `ALL`.

    All of them end in the state, or inside a character that leads back to it.  With `LISTED` they are listed, or are
    `SOME`, which must be looked at.
    """
    tokens = views.tokens(table)
    least = least_left(table, at)
    if least < 0:
        ask(table, MEASURE_STATE, at)
        return NONE
    left = np.int64(least + views.machine(table).cost[continuation])
    if tokens.classes[node] & (TEXT | LINES):
        return ALL if left + CHARACTER_LEFT <= limit else SOME
    if limit == LISTED:
        list_tokens(table, node, tokens.end[node], left)
    return ALL if left <= limit else NONE


@inner
def _price_inside(table, place, debt, continuation):
    """What is enough behind tokens that end inside a terminal; `FAR` where that is asked for."""
    automaton = views.automaton(table)
    if place > _MASK32 and automaton.first[place & _MASK32] < 0:
        ask(table, EXPAND_STATE, place & _MASK32)
        return np.int64(FAR)
    left = left_inside(table, place)
    if left < 0:
        ask(table, MEASURE_STATE, ~left)
        return np.int64(FAR)
    if debt and automaton.mode[debt] & CLOSES:
        left += _evasion(automaton, debt)
    return np.int64(min(left + views.machine(table).cost[continuation], FAR))


@inner
def _leave(table, depth, node, state, continuation, debt, stamp):
    """Push what is left behind a node in whose state a match ends, in each way; the depth, -1: request.

    And whether a token that ends there owes nothing in one of the ways.
    """
    automaton = views.automaton(table)
    tokens = views.tokens(table)
    low, high = node + 1, np.int64(tokens.end[node])
    is_free = False
    ending = np.int64(state)
    while ending:
        due = join(table, debt, automaton.pending[ending])
        if due < 0:
            return np.int64(-1), False
        is_free = is_free or due == 0
        if continuation and low < high and payable_below(automaton, tokens, due, low, high):
            note_after(table, 0, low, high, due)
            if first_visit(table, stamp, low, continuation, due):
                depth = push(table, depth, low, high, 0, continuation, due)
                if depth < 0:
                    return np.int64(-1), False
        ending = np.int64(automaton.also[ending])
    return np.int64(depth), is_free


@inner
def walk(table, row, undecided, depth, low, high, state, continuation, obligation, stamp, limit, most):
    """Walk one range from one automaton state; sets bits in ``row``, pushes boundary tasks; new depth, -1: request, -2:
    it comes to more than so many nodes.

    What is kept of the walk is written down (`guided.kernels.masking.segments.note`).

    Tokens after which something is still owed go to ``undecided``: the caller must see whether the debt can be met.
    What lies behind states whose edges are not known is left out, and these are asked for.  With
    ``limit`` >= 0 only tokens after which so many are enough; with `LISTED` no bits are set, but all tokens listed with
    what is enough after them.  Behind the continuation 0 nothing is walked.
    """
    automaton = views.automaton(table)
    counters = views.counters(table)
    scratch = views.scratch(table)
    tokens = views.tokens(table)
    owed = scratch.walk_obligation
    owed[0] = obligation
    level = np.int64(0)
    node = start(table, low, high, enter(automaton, state), level, False)
    visited = 0
    while True:
        node, level = settled(table, node, level)
        if node < 0:
            counters[FUEL] -= visited >> 6
            return depth
        visited += 1
        if visited > most:
            return np.int64(-2)
        byte = np.int64(tokens.byte[node])
        at = scratch.walk_state[level]
        end = np.int64(tokens.end[node])
        debt = np.int64(owed[level])
        if debt == 0 and stays_below(automaton, tokens, at, node):
            kept = ALL if limit == ANY else _keeps_below(table, at, node, continuation, limit)
            if kept == ALL:
                add_tokens(tokens, row, node, end)
                note_tokens(table, node, end)
            if kept != SOME:
                node = end
                continue
        place = move(automaton, at, byte)
        due = owe(automaton, debt, at >> 32, byte) if debt and place > 0 else np.int64(0)
        if place < 0 or due < 0:
            if not ask(table, EXPAND_STATE, -min(place, due)):
                return np.int64(-1)
            node = end
            continue
        if place == 0 or (due and automaton.tag[due] >= 0):
            node = end
            continue
        debt = due
        after = place & _MASK32
        if automaton.owes[after]:
            debt = np.int64(automaton.owes[after])
            after = place = np.int64(automaton.base[after])
        ends = automaton.tag[after] >= 0
        if ends and automaton.first[after] < 0:
            if not ask(table, EXPAND_STATE, after):
                return np.int64(-1)
            node = end
            continue
        inside = not ends or automaton.count[after] > 0
        payable = debt == 0 or automaton.mode[debt] != 0
        ends_free = False
        if ends:
            depth, ends_free = _leave(table, depth, node, after, continuation, debt, stamp)
            if depth < 0:
                return np.int64(-1)
        if tokens.token_offset[node] < tokens.token_offset[node + 1]:
            price = np.int64(FAR)
            if limit != ANY:
                if ends:
                    price = np.int64(views.machine(table).cost[continuation])
                if inside and (limit == LISTED or price > limit):
                    price = min(price, _price_inside(table, place, debt, continuation))
                if limit == LISTED:
                    list_tokens(table, node, node + 1, price)
            if limit == ANY or price <= limit:
                if ends_free or (inside and payable):
                    add_tokens(tokens, row, node, node + 1)
                    note_tokens(table, node, node + 1)
                else:
                    add_tokens(tokens, undecided, node, node + 1)
                    counters[NOTED] = -1
        is_met = automaton.loops[after] > 1 and place == after and end - node > SMALL_RANGE
        if is_met and inside and payable and limit != LISTED:
            # What goes on here is met in every grammar: its effect is known.
            note_after(table, after, node + 1, end, debt)
            depth = push(table, depth, node + 1, end, after, continuation, debt)
            if depth < 0:
                return np.int64(-1)
            node = end
        elif inside and end > node + 1:
            node, level = below(table, node, level, place, False)
            owed[level] = debt
        else:
            node = end


@inner
def forbid(table, share, low, high, obligation, room):
    """Take out of ``share`` the tokens of a range in which an obligation comes to a match; -1: request.

    With ``room`` >= 0 also those behind which the string may not close yet, and so many tokens are not enough to.
    """
    automaton = views.automaton(table)
    tokens = views.tokens(table)
    level = np.int64(0)
    node = start(table, low, high, obligation, level, False)
    while True:
        node, level = settled(table, node, level)
        if node < 0:
            return np.int64(0)
        end = np.int64(tokens.end[node])
        place = move(automaton, views.scratch(table).walk_state[level], tokens.byte[node])
        if place < 0:
            ask(table, EXPAND_STATE, -place)
            return np.int64(-1)
        debt = place & _MASK32
        if place and automaton.tag[debt] >= 0:
            remove_tokens(tokens, share, node, end)
            place = np.int64(0)
        elif place and room >= 0 and automaton.mode[debt] & CLOSES and room <= _evasion(automaton, debt):
            remove_tokens(tokens, share, node, node + 1)
        if place and end > node + 1:
            node, level = below(table, node, level, place, False)
        else:
            node = end
