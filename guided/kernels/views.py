"""The arrays of a constraint as kernels see them: views rebuilt from one table of addresses.

Handing an array to a compiled function costs about 0.3 us from Python, and a constraint has some seventy of them; from
kernel to kernel a call with all of them cost 0.8 us, more than most walks.  So the caller keeps one ``int64[n, 3]``
table of (data pointer, length, width), every kernel gets only that, and the views that a kernel uses are rebuilt from
it for the price of a few loads.  The caller must keep the arrays alive and refresh the table when it replaces one.
"""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array
from numba.np.numpy_support import from_dtype

from guided.kernels.jit import inner
from guided.kernels.layout import Automaton, Effects, Extra, Lalr, Machine, Parts, Rules, Scratch, Segments, Tokens

_RULES = len(Automaton._fields)
_LALR = _RULES + len(Rules._fields)
_MACHINE = _LALR + len(Lalr._fields)
_SCRATCH = _MACHINE + len(Machine._fields)
_TOKENS = _SCRATCH + len(Scratch._fields)
_EFFECTS = _TOKENS + len(Tokens._fields)
_SEGMENTS = _EFFECTS + len(Effects._fields)
_EXTRA = _SEGMENTS + len(Segments._fields)
N_ROWS = _EXTRA + len(Extra._fields)


_TWO_DIMENSIONS = {"action", "goto", "children", "masks", "joined", "rows"}
"""Fields that are rows; all others are flat."""


def _array_type(group: type, name: str) -> types.Array:
    """The type of a field, from the annotations of `guided.kernels.layout`."""
    (_, dtype) = get_args(get_type_hints(group)[name])
    return types.Array(from_dtype(np.dtype(get_args(dtype)[0])), 2 if name in _TWO_DIMENSIONS else 1, "C")


def _build(context, builder, kind, table, line):  # type: ignore[no-untyped-def]
    """The array that ``table[line]`` says: address, length, width."""
    words = builder.bitcast(table.data, ir.IntType(64).as_pointer())

    def word(number):  # type: ignore[no-untyped-def]
        return builder.load(builder.gep(words, [builder.add(line, context.get_constant(types.intp, number))]))

    made = make_array(kind)(context, builder)
    size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    shape = [word(1 + axis) for axis in range(kind.ndim)]
    strides = [context.get_constant(types.intp, size)]
    if kind.ndim == 2:
        strides.insert(0, builder.mul(shape[1], strides[0]))
    address = builder.inttoptr(word(0), made.data.type)
    populate_array(made, address, shape, strides, context.get_constant(types.intp, size), None)
    return made._getvalue()


def _table(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
    return make_array(signature.args[0])(context, builder, arguments[0])


def _line(context, number):  # type: ignore[no-untyped-def]
    return context.get_constant(types.intp, 3 * number)


def _one(group: type, name: str, begin: int) -> Any:
    """A kernel's function of a table: the array of one field."""
    number = begin + group._fields.index(name)  # type: ignore[attr-defined]

    @intrinsic
    def view(typing_context, t):  # type: ignore[no-untyped-def]
        kind = _array_type(group, name)

        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            table = _table(context, builder, signature, arguments)
            return _build(context, builder, kind, table, _line(context, number))

        return kind(t), generate

    return view


def _all(group: type, begin: int) -> Any:
    """A kernel's function of a table: the arrays of a group.

    Code of its own at every call is less to compile than a kernel that is called: of what is not used, nothing is left.
    """

    @intrinsic
    def view(typing_context, t):  # type: ignore[no-untyped-def]
        kinds = [_array_type(group, name) for name in group._fields]  # type: ignore[attr-defined]

        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            table = _table(context, builder, signature, arguments)
            made = [
                _build(context, builder, kind, table, _line(context, begin + i)) for i, kind in enumerate(kinds)
            ]  # fmt: skip
            return context.make_tuple(builder, signature.return_type, made)

        return types.NamedTuple(kinds, group)(t), generate

    return view


automaton = _all(Automaton, 0)
"""The lexer states."""

parts = _all(Parts, N_ROWS)
"""The parts of lexer states, which only tables of `guided.automata.states` hold."""

rules = _all(Rules, _RULES)
"""The rule graph."""

lalr = _all(Lalr, _LALR)
"""The LALR tables."""

machine = _all(Machine, _MACHINE)
"""Continuations and states."""

scratch = _all(Scratch, _SCRATCH)
"""Working memory."""

tokens = _all(Tokens, _TOKENS)
"""The token tries."""

effects = _all(Effects, _EFFECTS)
"""The token effects."""

segments = _all(Segments, _SEGMENTS)
"""What boundaries allow of trie ranges."""

counters = _one(Extra, "counters", _EXTRA)
"""The counters."""

joined = _one(Extra, "joined", _EXTRA)
"""Rows of (obligation, obligation, both)."""

rows = _one(Extra, "rows", _EXTRA)
"""Mask rows."""

bytes_out = _one(Extra, "bytes_out", _EXTRA)
"""``uint8[256]`` for answers about bytes."""

weights = _one(Extra, "weights", _EXTRA)
"""Weights of a row's words."""

_token_data = _one(Extra, "token_data", _EXTRA)
_token_offsets = _one(Extra, "token_offsets", _EXTRA)


@intrinsic
def uint32_rows(typing_context, t, i):  # type: ignore[no-untyped-def]
    """The rows of ``uint32`` that line ``i`` of a table of addresses says."""
    kind = types.Array(types.uint32, 2, "C")

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        line = builder.mul(arguments[1], context.get_constant(types.intp, 3))
        return _build(context, builder, kind, _table(context, builder, signature, arguments), line)

    return kind(t, types.intp), generate


@inner
def token_bytes(t, token):
    """The bytes of a token of the vocabulary."""
    offsets = _token_offsets(t)
    return _token_data(t)[offsets[token] : offsets[token + 1]]
