"""What processors tell of bits, and Python's operators do not."""

from __future__ import annotations

from typing import Any

from guided.kernels.jit import JUST_IN_TIME, intrinsic

if JUST_IN_TIME:
    from numba import types

__all__ = ["trailing_zeros"]


@intrinsic
def trailing_zeros(typing_context: Any, number: Any) -> Any:
    """The number of the lowest bit that is set; of 0, how many bits there are."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], context.get_constant(types.boolean, False))

    return number(number), generate
