"""Arrays of a kernel's own: places on the stack, of a fixed size, gone when the kernel returns.

No kernel makes arrays in NumPy's way.  Each kind would be a function to compile (0.2 s), memory to allocate at each
call, and a reason to count references, which all kernels do without (`guided.kernels.jit`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from guided.kernels.jit import JUST_IN_TIME, intrinsic

if JUST_IN_TIME:
    from numba import types
    from numba.core import cgutils
    from numba.core.errors import RequireLiteralValue
    from numba.np.arrayobj import make_array, populate_array
    from numba.np.numpy_support import from_dtype

    from guided.kernels.data.array_types import Plain

__all__ = ["local_bytes", "local_doubles", "local_int_rows", "local_ints", "local_long_rows", "local_longs"]


def _made(kind: Plain, shape: tuple[int, ...]) -> Any:
    """What lowers a call to an array of this shape, with anything in it."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def number(of: int) -> Any:
            return context.get_constant(types.intp, of)

        entry = context.get_data_type(kind.dtype)
        size = context.get_abi_sizeof(entry)
        entries = 1
        strides: list[Any] = []
        for length in reversed(shape):
            strides.insert(0, number(entries * size))
            entries *= length
        made = make_array(kind)(context, builder)
        room = cgutils.alloca_once(builder, entry, size=number(entries))
        populate_array(made, room, [number(length) for length in shape], strides, number(size), None)
        return made._getvalue()

    return generate


def _literal(length: Any) -> int:
    if not isinstance(length, types.IntegerLiteral):
        raise RequireLiteralValue("the length of a local array must be a constant")
    return int(length.literal_value)


def _flat(dtype: type) -> Any:
    """A kernel's function of a length."""

    @intrinsic(prefer_literal=True)
    def local(typing_context: Any, length: Any) -> Any:
        kind = Plain(from_dtype(np.dtype(dtype)), 1, "C")
        return kind(length), _made(kind, (_literal(length),))

    return local


def _rows(dtype: type) -> Any:
    """A kernel's function of a number of rows and their length."""

    @intrinsic(prefer_literal=True)
    def local(typing_context: Any, length: Any, width: Any) -> Any:
        kind = Plain(from_dtype(np.dtype(dtype)), 2, "C")
        return kind(length, width), _made(kind, (_literal(length), _literal(width)))

    return local


local_bytes = _flat(np.uint8)
local_ints = _flat(np.int32)
local_longs = _flat(np.int64)
local_doubles = _flat(np.float64)
local_int_rows = _rows(np.int32)
local_long_rows = _rows(np.int64)
