"""The kernels that `guided.constraint.machine` calls, each with the table of addresses of `guided.kernels.views`."""

from __future__ import annotations

import numpy as np
from numba import njit

from guided.kernels import parser, threads, views
from guided.kernels.masks import fill
from guided.kernels.threads import advance as advance_bytes
from guided.kernels.threads import next_bytes, open_boundary

__all__ = ["advance_bytes", "advance_token", "boundary_state", "fill", "next_bytes", "open_boundary", "settle_one"]


@njit(cache=True, nogil=True)
def advance_token(t, lexed, state, token):
    """The state after a token's bytes: 0 when dead, -1: request."""
    return threads.advance(t, lexed, state, views.token_bytes(t, token))


@njit(cache=True, nogil=True)
def settle_one(t, as_is, item):
    """The continuation of one item, after returns unless ``as_is``; -1: request."""
    scratch = views.scratch(t)
    if as_is:
        scratch.longs[0] = item
        return parser.intern_set(t, scratch.longs, np.int64(1))
    scratch.more[0] = item
    return parser.settle(t, scratch.more, np.int64(1))


@njit(cache=True, nogil=True)
def boundary_state(t, continuation):
    """The state that is at the boundary of one continuation, owing nothing; -1: request."""
    scratch = views.scratch(t)
    scratch.thread_a[0] = 0
    scratch.thread_b[0] = continuation
    return threads.intern_state(t, np.int64(1))
