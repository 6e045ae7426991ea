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

import operator
from typing import Any, get_args, get_type_hints

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_builtin, lower_getattr_generic, models, register_model
from numba.np.arrayobj import getitem_array_tuple, getitem_arraynd_intp, make_array, populate_array, setitem_array
from numba.np.numpy_support import from_dtype

from guided.kernels.data.layout import Automaton, Effects, Extra, Lalr, Machine, Parts, Rules, Scratch, Segments, Tokens
from guided.kernels.data.records import of_record
from guided.kernels.data.requests import Requests

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


_TWO_DIMENSIONS = {
    "action", "goto", "children", "masks", "joined", "rows", "opening_live", "frees",
    "debts", "entries",
}  # fmt: skip
"""Fields that are rows; all others are flat."""


class Plain(types.Array):  # type: ignore[misc]
    """An array in which nothing is counted from the end: an index is the place, which must be there.

    Of all others the length is loaded too, and each index compared with 0.
    """

    def __init__(self, dtype: types.Type, ndim: int, layout: str) -> None:
        super().__init__(dtype, ndim, layout, name=f"Plain({dtype}, {ndim}, {layout})")

    def copy(self, dtype: Any = None, ndim: Any = None, layout: Any = None, readonly: Any = None) -> Any:
        """The type of a part."""
        return Plain(dtype or self.dtype, self.ndim if ndim is None else ndim, layout or self.layout)


register_model(Plain)(models.ArrayModel)


def _unsigned(kind: types.Type) -> types.Type:
    """The type of an index as of numbers that cannot be negative; the bits are the same."""
    if isinstance(kind, types.BaseTuple):
        return types.Tuple([_unsigned(part) for part in kind])
    return types.uintp if kind == types.intp else kind


def _plainly(lower: Any) -> Any:
    """What numba does where an index is unsigned."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, index, *rest = signature.args
        return lower(context, builder, signature.return_type(array, _unsigned(index), *rest), arguments)

    return generate


lower_builtin(operator.getitem, Plain, types.Integer)(_plainly(getitem_arraynd_intp))
lower_builtin(operator.getitem, Plain, types.BaseTuple)(_plainly(getitem_array_tuple))
lower_builtin(operator.setitem, Plain, types.Any, types.Any)(_plainly(setitem_array))


def _array_type(group: type, name: str) -> Plain:
    """The type of a field, from the annotations of `guided.kernels.data.layout`."""
    (_, dtype) = get_args(get_type_hints(group)[name])
    order = "A" if of_record(group, name) else "C"
    return Plain(from_dtype(np.dtype(get_args(dtype)[0])), 2 if name in _TWO_DIMENSIONS else 1, order)


def _build(context: Any, builder: Any, kind: Any, data: Any, line: Any, stride: Any = 0) -> Any:
    """The array that a line of the table at ``data`` says (address, length, width), ``stride`` bytes apart if not 0."""
    words = builder.bitcast(data, ir.IntType(64).as_pointer())

    def word(number: Any) -> Any:
        loaded = builder.load(builder.gep(words, [builder.add(line, context.get_constant(types.intp, number))]))
        # No kernel writes to a table, so what was loaded once need not be loaded again behind other writes.
        loaded.set_metadata("invariant.load", builder.module.add_metadata([]))
        return loaded

    made = make_array(kind)(context, builder)
    size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    shape = [word(1 + axis) for axis in range(kind.ndim)]
    strides = [context.get_constant(types.intp, stride or size)]
    if kind.ndim == 2:
        strides.insert(0, builder.mul(shape[1], strides[0]))
    address = builder.inttoptr(word(0), made.data.type)
    populate_array(made, address, shape, strides, context.get_constant(types.intp, size), None)
    return made._getvalue()


def _data(builder: Any, arguments: Any) -> Any:
    return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())


def _line(context: Any, number: Any) -> Any:
    return context.get_constant(types.intp, 3 * number)


def _one(group: type, name: str, begin: int) -> Any:
    """A kernel's function of a table: the array of one field."""
    number = begin + group._fields.index(name)  # type: ignore[attr-defined]

    @intrinsic
    def view(typing_context: Any, t: Any) -> Any:
        kind = _array_type(group, name)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            line = _line(context, number)
            return _build(context, builder, kind, _data(builder, arguments), line, of_record(group, name))

        return kind(t), generate

    return view


class View(types.Type):  # type: ignore[misc]
    """A group of arrays in a table: the table's address, from which each array is built where it is used."""

    def __init__(self, group: type, begin: int) -> None:
        super().__init__(f"View({group.__name__}, {begin})")
        self.group = group
        self.begin = begin


register_model(View)(models.OpaqueModel)


@infer_getattr
class _Fields(AttributeTemplate):  # type: ignore[misc]
    key = View

    def generic_resolve(self, view: Any, name: Any) -> Any:
        return _array_type(view.group, name) if name in view.group._fields else None


@lower_getattr_generic(View)
def _field(context: Any, builder: Any, view: Any, value: Any, name: Any) -> Any:
    line = _line(context, view.begin + view.group._fields.index(name))
    return _build(context, builder, _array_type(view.group, name), value, line, of_record(view.group, name))


def _all(group: type, begin: int) -> Any:
    """A kernel's function of a table: the arrays of a group."""

    @intrinsic
    def view(typing_context: Any, t: Any) -> Any:
        kind = View(group, begin)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(_data(builder, arguments), context.get_value_type(kind))

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
        return _build(context, builder, kind, data, line)

    return kind(t, types.intp), generate
