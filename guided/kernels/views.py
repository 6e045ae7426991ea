"""The arrays of a constraint as kernels see them: views rebuilt from one table of addresses.

Handing an array to a compiled function costs about 0.3 us from Python, and a constraint has some seventy of them; from
kernel to kernel a call with all of them cost 0.8 us, more than most walks.  So the caller keeps one ``int64[n, 3]``
table of (data pointer, length, width), every kernel gets only that, and the views that a kernel uses are rebuilt from
it for the price of a few loads.  The caller must keep the arrays alive and refresh the table when it replaces one.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import carray, njit, types
from numba.extending import intrinsic

from guided.kernels.layout import Automaton, Effects, Extra, Lalr, Machine, Rules, Scratch, Segments, Tokens

_RULES = len(Automaton._fields)
_LALR = _RULES + len(Rules._fields)
_MACHINE = _LALR + len(Lalr._fields)
_SCRATCH = _MACHINE + len(Machine._fields)
_TOKENS = _SCRATCH + len(Scratch._fields)
_EFFECTS = _TOKENS + len(Tokens._fields)
_SEGMENTS = _EFFECTS + len(Effects._fields)
_EXTRA = _SEGMENTS + len(Segments._fields)
N_ROWS = _EXTRA + len(Extra._fields)


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
def uint32_rows(t, i):
    """The rows of ``uint32`` that line ``i`` of a table of addresses says."""
    return carray(_pointer(t[i, 0]), (t[i, 1], t[i, 2]), np.uint32)


@njit(cache=True, nogil=True)
def _i64_2d(t, i):
    return carray(_pointer(t[i, 0]), (t[i, 1], t[i, 2]), np.int64)


@njit(cache=True, nogil=True)
def automaton(t):
    """The lexer states."""
    return Automaton(
        _i32(t, 0), _i32(t, 1), _u8(t, 2), _u8(t, 3), _i32(t, 4), _i32(t, 5), _i32(t, 6), _i32(t, 7),
        _u8(t, 8), _i32(t, 9), _i32(t, 10), _u8(t, 11), _i32(t, 12), _i32(t, 13), _i32(t, 14), _i32(t, 15),
        _i64(t, 16),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def rules(t):
    """The rule graph."""
    r = _RULES
    return Rules(
        _i32(t, r), _i32(t, r + 1), _u8(t, r + 2), _u8(t, r + 3), _i32(t, r + 4), _i32(t, r + 5), _i32(t, r + 6),
        _i32(t, r + 7), _i32(t, r + 8), _i32(t, r + 9),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def lalr(t):
    """The LALR tables."""
    return Lalr(_i32_2d(t, _LALR), _i32_2d(t, _LALR + 1), _i32(t, _LALR + 2), _i32(t, _LALR + 3), _i32(t, _LALR + 4))


@njit(cache=True, nogil=True)
def machine(t):
    """Continuations and states."""
    m = _MACHINE
    return Machine(
        _i32(t, m), _i64(t, m + 1), _i32(t, m + 2), _i32(t, m + 3), _i32(t, m + 4), _i32(t, m + 5), _i32(t, m + 6),
        _i32(t, m + 7), _i32(t, m + 8), _i32(t, m + 9), _i32(t, m + 10), _i32(t, m + 11), _i32(t, m + 12),
        _i32(t, m + 13),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def scratch(t):
    """Working memory."""
    s = _SCRATCH
    return Scratch(
        _i64(t, s), _i64(t, s + 1), _i64(t, s + 2), _i32(t, s + 3), _i64(t, s + 4), _i32(t, s + 5), _i32(t, s + 6),
        _i64(t, s + 7), _i32(t, s + 8), _i64(t, s + 9), _i32(t, s + 10), _i64(t, s + 11), _i64(t, s + 12),
        _i64(t, s + 13), _i32(t, s + 14), _i32(t, s + 15), _i32(t, s + 16), _i32(t, s + 17), _i32(t, s + 18),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def tokens(t):
    """The token tries."""
    k = _TOKENS
    return Tokens(
        _u8(t, k), _i32(t, k + 1), _i32(t, k + 2), _i32(t, k + 3), _i32(t, k + 4), _i32_2d(t, k + 5), _i64(t, k + 6)
    )  # fmt: skip


@njit(cache=True, nogil=True)
def effects(t):
    """The token effects."""
    e = _EFFECTS
    return Effects(
        _i32(t, e), _i32(t, e + 1), _i32(t, e + 2), _i32(t, e + 3), _i32(t, e + 4), _i32(t, e + 5), _i32(t, e + 6),
        _i32(t, e + 7), _i32(t, e + 8), uint32_rows(t, e + 9), _i32(t, e + 10), _i32(t, e + 11), _i32(t, e + 12),
        _i32(t, e + 13), _i32(t, e + 14),
    )  # fmt: skip


@njit(cache=True, nogil=True)
def segments(t):
    """What boundaries allow of trie ranges."""
    s = _SEGMENTS
    return Segments(_i32(t, s), _i64(t, s + 1), _i32(t, s + 2), _i32(t, s + 3), _i32(t, s + 4))


@njit(cache=True, nogil=True)
def counters(t):
    """The counters."""
    return _i64(t, _EXTRA)


@njit(cache=True, nogil=True)
def joined(t):
    """Rows of (obligation, obligation, both)."""
    return _i64_2d(t, _EXTRA + 1)


@njit(cache=True, nogil=True)
def rows(t):
    """Mask rows."""
    return uint32_rows(t, _EXTRA + 2)


@njit(cache=True, nogil=True)
def token_bytes(t, token):
    """The bytes of a token of the vocabulary."""
    offsets = _i64(t, _EXTRA + 4)
    return _u8(t, _EXTRA + 3)[offsets[token] : offsets[token + 1]]


@njit(cache=True, nogil=True)
def bytes_out(t):
    """``uint8[256]`` for answers about bytes."""
    return _u8(t, _EXTRA + 5)
