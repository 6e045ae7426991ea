"""The arrays of a constraint as kernels see them: views rebuilt from one table of addresses.

Handing an array to a compiled function costs about 0.3 us from Python, and a constraint has some seventy of them; from
kernel to kernel a call with all of them cost 0.8 us, more than most walks.  So the caller keeps one ``int64[n, 3]``
table of (data pointer, length, width), every kernel gets only where that is, and the views that a kernel uses are
rebuilt from it where they are used, for the price of a few loads.  The caller must keep the table and the arrays alive
and refresh the table when it replaces one.

Where the table is, kernels get as a number.  As an array it was counted at each call from kernel to kernel, by locked
instructions: a fifth of all the time that kernels took.

A group of arrays is handed on as the table's address alone.  As a tuple of all its arrays, each use of one was a load
of all of them until the compiler had sorted it out (two fifths of the time of compiling a mask), and what was in use
did not fit the registers anyway (first visits took 1.3 to 1.4 times as long).
"""

from __future__ import annotations

from typing import Any

from guided.kernels.data.layout import Automaton, Effects, Extra, Lalr, Machine, Parts, Rules, Scratch, Segments, Tokens
from guided.kernels.data.records import of_record
from guided.kernels.data.requests import Requests
from guided.kernels.jit import JUST_IN_TIME, intrinsic

if JUST_IN_TIME:
    from numba import types
    from numba.np.arrayobj import make_array, populate_array

    from guided.kernels.data.array_types import View, build_array, field_type, table_data, table_line

AUTOMATON = 0
RULES = AUTOMATON + len(Automaton._fields)
LALR = RULES + len(Rules._fields)
MACHINE = LALR + len(Lalr._fields)
SCRATCH = MACHINE + len(Machine._fields)
TOKENS = SCRATCH + len(Scratch._fields)
EFFECTS = TOKENS + len(Tokens._fields)
SEGMENTS = EFFECTS + len(Effects._fields)
EXTRA = SEGMENTS + len(Segments._fields)
"""Rows of a table at which the groups begin."""
REQUESTS = EXTRA + len(Extra._fields)
N_ROWS = REQUESTS + len(Requests._fields)


def _one(group: type, name: str, begin: int) -> Any:
    """A kernel's function of a table: the array of one field."""
    number = begin + group._fields.index(name)  # type: ignore[attr-defined]

    @intrinsic
    def view(typing_context: Any, t: Any) -> Any:
        kind = field_type(group, name)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            line = table_line(context, number)
            return build_array(context, builder, kind, table_data(builder, arguments), line, of_record(group, name))

        return kind(t), generate

    return view


def _all(group: type, begin: int) -> Any:
    """A kernel's function of a table: the arrays of a group."""

    @intrinsic
    def view(typing_context: Any, t: Any) -> Any:
        kind = View(group, begin)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(table_data(builder, arguments), context.get_value_type(kind))

        return kind(t), generate

    return view


automaton = _all(Automaton, AUTOMATON)
"""The lexer states."""

parts = _all(Parts, N_ROWS)
"""The parts of lexer states, which only tables of `guided.automata.lexer.states` hold."""

rules = _all(Rules, RULES)
"""The rule graph."""

lalr = _all(Lalr, LALR)
"""The LALR tables."""

machine = _all(Machine, MACHINE)
"""Continuations and states."""

scratch = _all(Scratch, SCRATCH)
"""Working memory."""

tokens = _all(Tokens, TOKENS)
"""The token tries."""

effects = _all(Effects, EFFECTS)
"""The token effects."""

segments = _all(Segments, SEGMENTS)
"""What boundaries allow of trie ranges."""

requests = _all(Requests, REQUESTS)
"""What was asked."""

counters = _one(Extra, "counters", EXTRA)
"""The counters."""

joined = _one(Extra, "joined", EXTRA)
"""Rows of (obligation, obligation, both)."""

rows = _one(Extra, "rows", EXTRA)
"""Mask rows."""

bytes_out = _one(Extra, "bytes_out", EXTRA)
"""``uint8[256]`` for answers about bytes."""

marked = _one(Extra, "marked", EXTRA)
"""``uint8[rules]``: 1 for marked rules."""

weights = _one(Extra, "weights", EXTRA)
"""Weights of a row's words."""

fewest = _one(Extra, "fewest", EXTRA)
"""Tokens that are enough for terminals, by the state in which they begin."""

farthest = _one(Extra, "farthest", EXTRA)
"""Tokens that are enough from anywhere inside them."""

token_data = _one(Extra, "token_data", EXTRA)
"""The bytes of all tokens of the vocabulary."""

token_offsets = _one(Extra, "token_offsets", EXTRA)
"""Where each token's begin."""

text = _one(Extra, "text", EXTRA)
"""Bytes that are no token's."""


@intrinsic
def uint32_rows(typing_context: Any, t: Any, i: Any) -> Any:
    """The rows of ``uint32`` that line ``i`` of an array of addresses says."""
    kind = types.Array(types.uint32, 2, "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        line = builder.mul(arguments[1], context.get_constant(types.intp, 3))
        data = make_array(signature.args[0])(context, builder, arguments[0]).data
        return build_array(context, builder, kind, data, line)

    return kind(t, types.intp), generate


@intrinsic
def flat_at(typing_context: Any, like: Any, begin: Any, length: Any) -> Any:
    """So many numbers from an address on, of the type of those of ``like``."""
    kind = types.Array(like.dtype, 1, "C")

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        made = make_array(kind)(context, builder)
        size = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
        data = builder.inttoptr(arguments[1], made.data.type)
        populate_array(made, data, [arguments[2]], [size], size, None)
        return made._getvalue()

    return kind(like, types.intp, types.intp), generate
