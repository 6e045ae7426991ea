"""The kernels that Python calls, each with a single table of addresses instead of sixty arrays.

Handing an array to a compiled function costs about 0.3 us; a constraint has some sixty of them, which made a 1 us step
cost 25 us.  So the caller keeps one ``int64[n, 3]`` table of (data pointer, length, width), and the entry points here
rebuild the array views from it.  The caller must keep the arrays alive and refresh the table when it replaces one.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import carray, njit, types
from numba.extending import intrinsic

from guided.kernels import masks, parser, threads
from guided.kernels.layout import Automaton, Effects, Lalr, Machine, Rules, Scratch, Tokens

EXTRA = ("counters", "joined", "rows", "token_data", "token_offsets", "bytes_out")
"""What stands in the table after the fields of the groups, which come in the order of the offsets below."""

_RULES = len(Automaton._fields)
_LALR = _RULES + len(Rules._fields)
_MACHINE = _LALR + len(Lalr._fields)
_SCRATCH = _MACHINE + len(Machine._fields)
_TOKENS = _SCRATCH + len(Scratch._fields)
_EFFECTS = _TOKENS + len(Tokens._fields)
_EXTRA = _EFFECTS + len(Effects._fields)
N_ROWS = _EXTRA + len(EXTRA)


@intrinsic
def _pointer(typing_context, address):  # type: ignore[no-untyped-def]
    """An integer address as an untyped pointer."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return types.voidptr(types.int64), generate


@njit(cache=True, nogil=True)
def _u8(t, i):
    return carray(_pointer(t[i, 0]), t[i, 1], np.uint8)


@njit(cache=True, nogil=True)
def _i32(t, i):
    return carray(_pointer(t[i, 0]), t[i, 1], np.int32)


@njit(cache=True, nogil=True)
def _i64(t, i):
    return carray(_pointer(t[i, 0]), t[i, 1], np.int64)


@njit(cache=True, nogil=True)
def _i32_2d(t, i):
    return carray(_pointer(t[i, 0]), (t[i, 1], t[i, 2]), np.int32)


@njit(cache=True, nogil=True)
def _u32_2d(t, i):
    return carray(_pointer(t[i, 0]), (t[i, 1], t[i, 2]), np.uint32)


@njit(cache=True, nogil=True)
def _i64_2d(t, i):
    return carray(_pointer(t[i, 0]), (t[i, 1], t[i, 2]), np.int64)


@njit(cache=True, nogil=True)
def _automaton(t):
    return Automaton(
        _i32(t, 0), _i32(t, 1), _u8(t, 2), _u8(t, 3), _i32(t, 4), _i32(t, 5), _i32(t, 6), _i32(t, 7),
        _u8(t, 8), _i32(t, 9), _i32(t, 10),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _rules(t):
    r = _RULES
    return Rules(
        _i32(t, r), _i32(t, r + 1), _u8(t, r + 2), _u8(t, r + 3), _i32(t, r + 4), _i32(t, r + 5), _i32(t, r + 6),
        _i32(t, r + 7), _i32(t, r + 8), _i32(t, r + 9),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _lalr(t):
    return Lalr(_i32_2d(t, _LALR), _i32_2d(t, _LALR + 1), _i32(t, _LALR + 2), _i32(t, _LALR + 3), _i32(t, _LALR + 4))


@njit(cache=True, nogil=True)
def _machine(t):
    m = _MACHINE
    return Machine(
        _i32(t, m), _i64(t, m + 1), _i32(t, m + 2), _i32(t, m + 3), _i32(t, m + 4), _i32(t, m + 5), _i32(t, m + 6),
        _i32(t, m + 7), _i32(t, m + 8), _i32(t, m + 9), _i32(t, m + 10), _i32(t, m + 11), _i32(t, m + 12),
        _i32(t, m + 13),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _scratch(t):
    s = _SCRATCH
    return Scratch(
        _i64(t, s), _i64(t, s + 1), _i64(t, s + 2), _i32(t, s + 3), _i64(t, s + 4), _i32(t, s + 5), _i32(t, s + 6),
        _i64(t, s + 7), _i32(t, s + 8), _i64(t, s + 9), _i32(t, s + 10), _i64(t, s + 11), _i64(t, s + 12),
        _i32(t, s + 13), _i32(t, s + 14), _i32(t, s + 15), _i32(t, s + 16),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def _tokens(t):
    return Tokens(_u8(t, _TOKENS), _i32(t, _TOKENS + 1), _i32(t, _TOKENS + 2), _i32(t, _TOKENS + 3))


@njit(cache=True, nogil=True)
def _effects(t):
    e = _EFFECTS
    return Effects(
        _i32(t, e), _i32(t, e + 1), _i32(t, e + 2), _i32(t, e + 3), _i32(t, e + 4), _i32(t, e + 5), _i32(t, e + 6),
        _i32(t, e + 7), _i32(t, e + 8), _i32(t, e + 9), _i32(t, e + 10), _u32_2d(t, e + 11), _i32(t, e + 12),
        _i32(t, e + 13), _i32(t, e + 14), _i32(t, e + 15), _i32(t, e + 16),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def advance_token(t, lexed, state, token):
    """The state after a token's bytes: 0 when dead, -1: request."""
    offsets = _i64(t, _EXTRA + 4)
    data = _u8(t, _EXTRA + 3)[offsets[token] : offsets[token + 1]]
    return threads.advance(
        lexed, _automaton(t), _rules(t), _lalr(t), _machine(t), _i64(t, _EXTRA), _scratch(t), _i64_2d(t, _EXTRA + 1),
        state, data,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def advance_bytes(t, lexed, state, data):
    """The state after ``data``: 0 when dead, -1: request."""
    return threads.advance(
        lexed, _automaton(t), _rules(t), _lalr(t), _machine(t), _i64(t, _EXTRA), _scratch(t), _i64_2d(t, _EXTRA + 1),
        state, data,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def fill(t, lexed, root, state, limit):
    """Fill row 0 with the mask of ``state``, with ``limit`` >= 0 only where so many tokens can end it; -1: request."""
    return masks.fill(
        lexed, _automaton(t), _rules(t), _lalr(t), _machine(t), _i64(t, _EXTRA), _scratch(t), _i64_2d(t, _EXTRA + 1),
        _tokens(t), _effects(t), root, state, _u32_2d(t, _EXTRA + 2), limit,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def next_bytes(t, lexed, state):
    """Mark the bytes that may come next in the ``bytes_out`` array; -1: request."""
    return threads.next_bytes(
        lexed, _automaton(t), _rules(t), _machine(t), _i64(t, _EXTRA), _scratch(t), state, _u8(t, _EXTRA + 5)
    )


@njit(cache=True, nogil=True)
def open_boundary(t, lexed, continuation):
    """Make the closure of a continuation known; -1: request."""
    return threads.open_boundary(lexed, _rules(t), _machine(t), _i64(t, _EXTRA), _scratch(t), continuation)


@njit(cache=True, nogil=True)
def settle_one(t, as_is, item):
    """The continuation of one item, after returns unless ``as_is``; -1: request."""
    scratch = _scratch(t)
    if as_is:
        scratch.longs[0] = item
        return parser.intern_set(_machine(t), _i64(t, _EXTRA), scratch.longs, 1)
    scratch.more[0] = item
    return parser.settle(_rules(t), _machine(t), _i64(t, _EXTRA), scratch, scratch.more, 1)


@njit(cache=True, nogil=True)
def boundary_state(t, continuation):
    """The state that is at the boundary of one continuation, owing nothing; -1: request."""
    scratch = _scratch(t)
    scratch.thread_a[0] = 0
    scratch.thread_b[0] = continuation
    return threads.intern_state(_machine(t), _i64(t, _EXTRA), scratch, 1)
