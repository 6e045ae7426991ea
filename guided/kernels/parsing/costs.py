"""How many tokens are enough to end a text: prices of continuations, and of what a token may begin.

If all tokens of a mask lead to prices below the budget, the mask is the one without a budget.  Python provides prices
of a grammar's nodes (`guided.automata.rules.costs`), and of terminals that are more than a chain of single bytes.
"""

from __future__ import annotations

import numpy as np

from guided.kernels.data import views
from guided.kernels.data.asking import ask
from guided.kernels.data.layout import (
    CALL,
    CANONICAL,
    CLOSES,
    EMPTY,
    FAR,
    FARTHEST,
    FINAL,
    MATCHED,
    N_CLOSURE,
    N_PRICED,
    N_REACHED,
    N_SETS,
    STRING,
)
from guided.kernels.data.local_arrays import local_bytes, local_ints
from guided.kernels.data.requests import PRICE_NODES, PRICE_TERMINAL
from guided.kernels.jit import entry, inner
from guided.kernels.lexing.nearest import least_left
from guided.kernels.lexing.strings import DIGITS, ESCAPE, HALF, HALF_ESCAPE, KIND

__all__ = ["left_inside", "price", "price_all", "price_new", "price_texts", "reach_of"]

_MASK32 = 0xFFFFFFFF

ESCAPE_LEFT = 5
"""Most bytes that are left of an escape that has begun and becomes one character below U+10000: ``u00e9``."""

LONG_ESCAPE_LEFT = 11
"""The same of any character: that of a surrogate pair, behind its backslash.  The canonical spelling has no such pairs,
and escapes only characters below U+0080."""

_NODES = 512
"""Nodes that are priced together; of rules with more, Python prices one after another."""

_LONGEST_TEXT, _PLACES = 256, 257
"""Bytes of a terminal with one text up to which it is priced here, and places in such a text."""


@entry("Machine, longs, ints, ints, long")
def price(machine, counters, node_cost, cost, first):
    """Fill ``cost[first:]`` for all continuations: the least after which the text may end.

    A continuation returns only to older ones, so one pass in order of ids is enough.  Returns the first node whose
    own cost is unknown, or -1 when all are priced.
    """
    for item in range(max(first, 1), counters[N_SETS]):
        best = 1 << 30
        for i in range(machine.set_offset[item], machine.set_offset[item + 1]):
            node = machine.items[i] >> 32
            frame = machine.items[i] & _MASK32
            if node == 0:
                best = 0
            elif frame == 0:
                break  # a list of nodes
            elif node >= node_cost.shape[0] or node_cost[node] < 0:
                return node
            else:
                best = min(best, node_cost[node] + cost[frame])
        cost[item] = best
    return -1


@inner
def _spell_chain(table, start):
    """Price a terminal of one text, each of whose states leads on with one byte; is it one?"""
    automaton = views.automaton(table)
    tokens = views.tokens(table)
    text = local_bytes(_LONGEST_TEXT)
    chain = local_ints(_LONGEST_TEXT)
    best = local_ints(_PLACES)
    n = 0
    at = np.int64(start)
    escapes = 0
    while True:
        if n == _LONGEST_TEXT or automaton.first[at] < 0 or automaton.owes[at] or automaton.base[at] != at:
            return False
        mode = automaton.mode[at]
        chain[n] = at
        if mode & CLOSES:
            if automaton.count[at]:
                return False
            text[n] = 0x22
            n += 1
            break
        if automaton.tag[at] >= 0 or automaton.count[at] != 1:
            return False
        edge = automaton.first[at]
        byte = automaton.low[edge]
        if byte != automaton.high[edge]:
            return False
        if mode & STRING:
            if byte < 0x20 or byte == 0x22 or byte == 0x5C:
                return False
            if not mode & CANONICAL:
                escapes = max(escapes, LONG_ESCAPE_LEFT if byte >= 0xF0 else ESCAPE_LEFT)
        text[n] = byte
        n += 1
        at = np.int64(automaton.target[edge])
        if at == MATCHED or (automaton.tag[at] >= 0 and automaton.first[at] >= 0 and automaton.count[at] == 0):
            break
    # As `guided.kernels.tokens.tokenize`: the fewest tokens from each place on, from the end.
    best[n] = 0
    for begin in range(n - 1, -1, -1):
        fewest = 1 << 30
        low, high = np.int64(1), np.int64(tokens.end[0])
        here = begin
        while here < n and low < high:
            fan = np.int64(tokens.fan[low])
            node = np.int64(0)
            if fan:
                node = np.int64(tokens.children[fan - 1, text[here]])
            else:
                child = low
                while child < high and tokens.byte[child] < text[here]:
                    child = np.int64(tokens.end[child])
                if child < high and tokens.byte[child] == text[here]:
                    node = child
            if node == 0:
                break
            here += 1
            if tokens.token_offset[node + 1] > tokens.token_offset[node]:
                fewest = min(fewest, best[here] + 1)
            low, high = node + 1, np.int64(tokens.end[node])
        if fewest >= 1 << 30:
            return False
        best[begin] = fewest
        state = chain[begin]
        if automaton.minimum[state] < 0:
            automaton.minimum[state] = n - begin
    views.fewest(table)[start] = best[0]
    # A token a byte, as `left_inside` counts: were it less here, a mask would depend on which of the two was asked.
    views.farthest(table)[start] = n + escapes
    return True


@entry("long, longs")
def price_texts(table, states):
    """Price those terminals, by the states in which they begin, that have one text; 0."""
    fewest = views.fewest(table)
    for i in range(states.shape[0]):
        if states[i] < fewest.shape[0] and fewest[states[i]] == 0:
            _spell_chain(table, states[i])
    return np.int64(0)


@inner
def _give_up(node_cost, nodes, n):
    """Leave the prices of some nodes unknown."""
    for i in range(n):
        node_cost[nodes[i]] = -1


@inner
def _step_price(table, edge):
    """What an edge takes; -1: it is asked for, -2: it can be neither told nor asked for."""
    rules = views.rules(table)
    argument = np.int64(rules.argument[edge])
    if rules.kind[edge] == EMPTY:
        return np.int64(0)
    if rules.kind[edge] == CALL:
        begin = np.int64(rules.rule_start[argument])
        node_cost = views.machine(table).node_cost
        if begin >= node_cost.shape[0]:
            return np.int64(-2)
        if node_cost[begin] >= 0:
            return np.int64(node_cost[begin])
        ask(table, PRICE_NODES, begin, argument + 1)
        return np.int64(-1)
    fewest = views.fewest(table)
    if argument >= fewest.shape[0]:
        return np.int64(-2)
    if fewest[argument] == 0 and not _spell_chain(table, argument):
        ask(table, PRICE_TERMINAL, argument)
        return np.int64(-1)
    return np.int64(fewest[argument])


@inner
def _price_node(table, start):
    """Price a node with those that it leads to, where all of them are made; else ask for what is lacking.

    While they are gathered, ``node_cost`` holds -2 for them.  Then each is as cheap as its cheapest way on, again and
    again from the last met until nothing changes: they mostly lead to later ones.
    """
    rules = views.rules(table)
    node_cost = views.machine(table).node_cost
    nodes = local_ints(_NODES)
    if start >= node_cost.shape[0] or rules.node_first[start] < 0:
        ask(table, PRICE_NODES, start)
        return False
    nodes[0] = start
    node_cost[start] = -2
    n = np.int64(1)
    at = np.int64(0)
    lacks = False
    while at < n:
        first = np.int64(rules.node_first[nodes[at]])
        for edge in range(first, first + rules.node_count[nodes[at]]):
            step = _step_price(table, edge)
            target = np.int64(rules.to[edge])
            lacks = lacks or step == -1
            is_beyond = target >= node_cost.shape[0]
            if target > 0 and (is_beyond or node_cost[target] == -1):
                if is_beyond or rules.node_first[target] < 0 or n == _NODES:
                    step = np.int64(-2)
                else:
                    node_cost[target] = -2
                    nodes[n] = target
                    n += 1
            if step == -2:
                _give_up(node_cost, nodes, n)
                ask(table, PRICE_NODES, start)
                return False
        at += 1
    if lacks:
        _give_up(node_cost, nodes, n)
        return False
    for i in range(n):
        node_cost[nodes[i]] = FAR
    changed = True
    while changed:
        changed = False
        for i in range(n - 1, -1, -1):
            node = np.int64(nodes[i])
            best = np.int64(0 if rules.flags[node] & FINAL else node_cost[node])
            first = np.int64(rules.node_first[node])
            for edge in range(first, first + rules.node_count[node]):
                target = np.int64(rules.to[edge])
                behind = np.int64(node_cost[target] if target else 0)
                best = min(best, _step_price(table, edge) + behind)
            if best < node_cost[node]:
                node_cost[node] = best
                changed = True
    return True


@inner
def price_new(table):
    """Price the continuations that have come since, and what may be begun at boundaries; 0, -1: request.

    What is lacking is asked for together.
    """
    machine = views.machine(table)
    counters = views.counters(table)
    farthest = views.farthest(table)
    lacks = False
    for item in range(max(counters[N_PRICED], 1), counters[N_SETS]):
        best = FAR
        for i in range(machine.set_offset[item], machine.set_offset[item + 1]):
            node = machine.items[i] >> 32
            if node == 0:
                best = 0
            elif machine.items[i] & _MASK32 == 0:
                break  # a list of nodes
            elif (node >= machine.node_cost.shape[0] or machine.node_cost[node] < 0) and not _price_node(table, node):
                lacks = True
            else:
                best = min(best, machine.node_cost[node] + machine.cost[machine.items[i] & _MASK32])
        if not lacks:
            machine.cost[item] = best
            machine.reach[item] = -1
            counters[N_PRICED] = item + 1
    for at in range(counters[N_REACHED], counters[N_CLOSURE]):
        start = np.int64(machine.closure_state[at])
        far = np.int64(FAR)
        if start < farthest.shape[0]:
            if farthest[start] == 0 and not _spell_chain(table, start):
                ask(table, PRICE_TERMINAL, start)
                lacks = True
            far = np.int64(farthest[start])
        if not lacks:
            after = machine.closure_next[at]
            machine.reach[after] = max(machine.reach[after], min(far + machine.cost[after], FAR))
            counters[FARTHEST] = max(counters[FARTHEST], far)
            counters[N_REACHED] = at + 1
    return np.int64(-1 if lacks else 0)


@inner
def reach_of(table, continuation):
    """Tokens that are enough to end the text from anywhere inside a terminal behind which a continuation comes.

    One that was put together from several, of threads that met, is behind some terminal that was begun.
    """
    machine = views.machine(table)
    reach = np.int64(machine.reach[continuation])
    if reach < 0:
        reach = np.int64(machine.cost[continuation]) + views.counters(table)[FARTHEST]
    return min(reach, np.int64(FAR))


@inner
def _escape_left(decode, canonical):
    """The most bytes that are left of an escape; each byte of it makes that less."""
    kind, count = decode & KIND, (decode >> 12) & 3
    if kind == ESCAPE:
        return np.int64(ESCAPE_LEFT if canonical else LONG_ESCAPE_LEFT)
    if canonical:
        return np.int64(4 - count)
    if kind in (HALF, HALF_ESCAPE):
        return np.int64(6 if kind == HALF else 5)
    is_half = kind == DIGITS and (count == 0 or (decode & 0xFFF) >> (4 * (count - 1)) == 0xD)
    return np.int64(10 if is_half else 4) - count


@inner
def left_inside(table, place):
    """Tokens that are enough from a place to the end of its match, one a byte; ``~state`` of one that is not measured.

    Inside an escape they are enough whichever character it becomes; the edges of its state must be known.
    """
    automaton = views.automaton(table)
    state = place & _MASK32
    if place == state:
        least = np.int64(automaton.minimum[state])
        if least < 0 < automaton.bound[state]:
            # A shortest way that does not come to the bound is a shortest way under it.
            other = np.int64(automaton.boundless[state])
            shortest = least_left(table, other)
            if shortest < 0:
                return ~other
            if shortest <= automaton.bound[state]:
                least = shortest
        if least < 0:
            least = least_left(table, state)
        return least if least >= 0 else ~state
    ahead = np.int64(0)
    for at in range(automaton.first[state], automaton.first[state] + automaton.count[state]):
        target = np.int64(automaton.target[at])
        least = least_left(table, target)
        if least < 0:
            return ~target
        ahead = max(ahead, least)
    return ahead + _escape_left(place >> 32, automaton.mode[state] & CANONICAL)


@entry("long")
def price_all(table):
    """Price all continuations; 0, -1: request."""
    return price_new(table)
