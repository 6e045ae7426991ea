"""The kernels that `guided.constraint.machine` calls, each with the table of addresses of `guided.kernels.views`."""

from __future__ import annotations

import numpy as np

from guided.kernels import parser, threads, views
from guided.kernels.jit import entry
from guided.kernels.masks import fill
from guided.kernels.segments import rehash_segments
from guided.kernels.threads import advance as advance_bytes
from guided.kernels.threads import next_bytes, open_boundary

__all__ = [
    "advance_bytes", "advance_token", "boundary_state", "fill", "next_bytes", "open_boundary", "rehash_segments",
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
