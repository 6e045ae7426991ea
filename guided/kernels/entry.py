"""The kernels that `machine` calls, each with the table of addresses of `views`."""

from __future__ import annotations

import numpy as np

from guided.kernels.data import views
from guided.kernels.data.asking import ask
from guided.kernels.data.layout import N_KEPT, N_STATES
from guided.kernels.data.requests import EXPAND_NODE
from guided.kernels.jit import entry, inner
from guided.kernels.masking import segments
from guided.kernels.masking.lexed import fill_lexed
from guided.kernels.masking.masks import fill
from guided.kernels.parsing import parser, threads
from guided.kernels.parsing.closings import price_lexed
from guided.kernels.parsing.costs import price_all, price_texts
from guided.kernels.parsing.marks import BEHIND, INSIDE, calls_marked
from guided.kernels.parsing.members import value_wanted
from guided.kernels.parsing.threads import next_bytes, open_boundary

__all__ = [
    "advance", "advance_each", "boundary_state", "fill", "fill_lexed", "next_bytes", "open_boundary", "price_all",
    "price_lexed", "price_texts", "rehash", "settle_one",
]  # fmt: skip

_QUOTE = 0x22


@inner
def _advance(t, lexed, marking, state, token):
    """As `advance`, without a look at what comes next."""
    data, begin, end = views.text(t), np.int64(0), np.int64(-token)
    if token >= 0:
        offsets = views.token_offsets(t)
        data, begin, end = views.token_data(t), offsets[token], offsets[token + 1]
    if begin == end:
        return np.int64(0)
    n = threads.load(t, state)
    found = np.int64(0)
    quoted = not marking
    for i in range(begin, end):
        n = threads.step(t, lexed, n, data[i])
        if n <= 0:
            return n
        if not quoted and data[i] == _QUOTE:
            quoted = True
            behind = calls_marked(t, n, np.bool_(False))
            if behind < 0:
                return np.int64(-1)
            found = np.int64(BEHIND) * behind
    if marking:
        inside = calls_marked(t, n, np.bool_(True))
        if inside < 0:
            return np.int64(-1)
        found += np.int64(INSIDE) * inside
    after = threads.intern_state(t, n)
    return after << 2 | found if marking and after > 0 else after


@entry("long, flag, flag, long, long")
def advance(t, lexed, marking, state, token):
    """The state after a token's bytes: 0 when dead or when it has none, -1: request.

    With ``token`` < 0 after so many bytes of the ``text``.  With ``marking`` the state ``<< 2``, with what
    `guided.kernels.parsing.marks` says of marked rules.

    A token that comes to a new state in which a name ends asks for the value as well: the colon's mask needs it next,
    and then asks for its lexer states.
    """
    counters = views.counters(t)
    n_states = counters[N_STATES]
    after = _advance(t, lexed, marking, state, token)
    if after < 0:
        return after
    if token >= 0 and counters[N_STATES] > n_states and not lexed:
        node = value_wanted(t, n_states)
        if node:
            ask(t, EXPAND_NODE, node)
            return np.int64(-1)
    return after


@entry("long, flag, long, longs, longs")
def advance_each(t, lexed, state, tokens, found):
    """Write the state after each of some tokens, all from one state, to ``found``; -1: request."""
    counters = views.counters(t)
    requests = views.requests(t)
    counters[N_KEPT] = 1
    code = np.int64(0)
    for i in range(tokens.shape[0]):
        after = _advance(t, lexed, False, state, tokens[i])
        if after < 0:
            # What the others lack is asked for as well.
            code = np.int64(-1)
            if requests.count[0] == requests.entries.shape[0]:
                break
        found[i] = after
    counters[N_KEPT] = 0
    return code


@entry("long, flag")
def rehash(t, kept):
    """Make the hash of segments anew (``kept``), or those of continuations and states, after room was made for more."""
    if kept:
        views.segments(t).hash_slot[:] = -1
        segments.rehash_segments(t)
        return np.int64(0)
    machine = views.machine(t)
    machine.set_hash[:] = -1
    machine.state_hash[:] = -1
    parser.rehash_sets(t)
    threads.rehash_states(t)
    return np.int64(0)


@entry("long, flag, long")
def settle_one(t, as_is, item):
    """The continuation of one item, after returns unless ``as_is``; -1: request."""
    scratch = views.scratch(t)
    if as_is:
        scratch.longs[0] = item
        return parser.intern_set(t, scratch.longs, 1)
    scratch.more[0] = item
    return parser.settle(t, scratch.more, 1)


@entry("long, long")
def boundary_state(t, continuation):
    """The state that is at the boundary of one continuation, owing nothing; -1: request."""
    scratch = views.scratch(t)
    scratch.thread_a[0] = 0
    scratch.thread_b[0] = continuation
    return threads.intern_state(t, 1)
