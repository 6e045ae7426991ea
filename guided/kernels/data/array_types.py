"""The types of arrays and of groups of arrays in kernels, as Numba's compiler knows them."""

from __future__ import annotations

import operator
from typing import Any, get_args, get_type_hints

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, lower_builtin, lower_getattr_generic, models, register_model
from numba.np.arrayobj import getitem_array_tuple, getitem_arraynd_intp, make_array, populate_array, setitem_array
from numba.np.numpy_support import from_dtype

from guided.kernels.data.records import of_record

__all__ = ["Plain", "View", "build_array", "field_type", "table_data", "table_line"]

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


def field_type(group: type, name: str) -> Plain:
    """The type of a field, from the annotations of `guided.kernels.data.layout`."""
    (_, dtype) = get_args(get_type_hints(group)[name])
    order = "A" if of_record(group, name) else "C"
    return Plain(from_dtype(np.dtype(get_args(dtype)[0])), 2 if name in _TWO_DIMENSIONS else 1, order)


def build_array(context: Any, builder: Any, kind: Any, data: Any, line: Any, stride: Any = 0) -> Any:
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


def table_data(builder: Any, arguments: Any) -> Any:
    """Where the table is whose address is the first argument."""
    return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())


def table_line(context: Any, number: Any) -> Any:
    """The word at which a line of a table begins."""
    return context.get_constant(types.intp, 3 * number)


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
        return field_type(view.group, name) if name in view.group._fields else None


@lower_getattr_generic(View)
def _field(context: Any, builder: Any, view: Any, value: Any, name: Any) -> Any:
    line = table_line(context, view.begin + view.group._fields.index(name))
    return build_array(context, builder, field_type(view.group, name), value, line, of_record(view.group, name))
