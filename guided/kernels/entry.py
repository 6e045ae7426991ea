"""The kernels that `guided.constraint.machine` calls, each with the table of addresses of `guided.kernels.views`."""

from __future__ import annotations

import numpy as np

from guided.kernels import parser, segments, threads, views
from guided.kernels.jit import entry
from guided.kernels.masks import fill
from guided.kernels.rows import fingerprint
from guided.kernels.threads import advance as advance_bytes
from guided.kernels.threads import next_bytes, open_boundary

__all__ = [
    "advance_bytes", "advance_token", "boundary_state", "fill", "fill_first", "next_bytes", "open_boundary", "rehash",
    "settle_one",
]  # fmt: skip


@entry
def advance_token(t, lexed, state, token):
    """The state after a token's bytes: 0 when dead or when it has none, -1: request."""
    data = views.token_bytes(t, token)
    if data.shape[0] == 0:
        return np.int64(0)
    return threads.advance(t, lexed, state, data)


@entry
def fill_first(t, root, state):
    """As `fill` without a lexer and a limit: the row's fingerprint ``<< 1`` and what `fill` returns; -1: request."""
    ends = fill(t, np.bool_(False), root, state, np.int64(-1))
    if ends < 0:
        return ends
    return fingerprint(views.rows(t)[0], views.weights(t)) << 1 | ends


@entry
def rehash(t):
    """Make the hashes of continuations, states and segments anew, after room was made for more of them."""
    machine = views.machine(t)
    machine.set_hash[:] = -1
    machine.state_hash[:] = -1
    views.segments(t).hash_slot[:] = -1
    parser.rehash_sets(t)
    threads.rehash_states(t)
    segments.rehash_segments(t)
    return np.int64(0)


@entry
def settle_one(t, as_is, item):
    """The continuation of one item, after returns unless ``as_is``; -1: request."""
    scratch = views.scratch(t)
    if as_is:
        scratch.longs[0] = item
        return parser.intern_set(t, scratch.longs, np.int64(1))
    scratch.more[0] = item
    return parser.settle(t, scratch.more, np.int64(1))


@entry
def boundary_state(t, continuation):
    """The state that is at the boundary of one continuation, owing nothing; -1: request."""
    scratch = views.scratch(t)
    scratch.thread_a[0] = 0
    scratch.thread_b[0] = continuation
    return threads.intern_state(t, np.int64(1))
