"""What processors do with floating-point numbers, and Python's operators do not; and exponentials made of it."""

from __future__ import annotations

import math
from typing import Any

from guided.kernels.jit import JUST_IN_TIME, inlined, intrinsic

if JUST_IN_TIME:
    from numba import types

__all__ = ["exponential", "fused"]

_PER_LOG_2 = 1.0 / math.log(2.0)
_LOG_2_HIGH = 6.93147180369123816490e-01
"""The first 32 bits of the logarithm of 2, so that a product with a whole number of 11 bits is exact."""
_LOG_2_LOW = 1.90821492927058770002e-10

_ROUNDING = 1.5 * 2.0**52
"""Added to a number below 2^51 it leaves the nearest whole one in the lowest bits."""

_LEAST = -708.0
"""Below, exponentials are about to leave the numbers of full precision: they are 0 here."""

_EXPONENT_OF_1 = 1023

# The series of the exponential.  Between -log(2)/2 and log(2)/2 what is left out, r^13/13!, is below 1.7e-16.
_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12 = (1.0 / math.factorial(n) for n in range(1, 13))


@intrinsic
def fused(typing_context: Any, factor: Any, other: Any, summand: Any) -> Any:
    """``factor * other + summand``, rounded once."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


@intrinsic
def _bits(typing_context: Any, number: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.int64))

    return types.int64(types.float64), generate


@intrinsic
def _of_bits(typing_context: Any, bits: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], context.get_value_type(types.float64))

    return types.float64(types.int64), generate


@inlined
def exponential(x):
    """The exponential of a number up to 709, within 4e-16 of itself; 0 below -708, NaN for NaN.

    ``exp(x) = 2^k exp(r)`` with ``x = k log(2) + r``.  There is no branch and no table, so LLVM does several at once in
    a loop.  Those of the mathematical library go one by one.
    """
    rounded = fused(x, _PER_LOG_2, _ROUNDING)
    k = rounded - _ROUNDING
    r = fused(k, -_LOG_2_LOW, fused(k, -_LOG_2_HIGH, x))
    series = fused(_12, r, _11)
    series = fused(series, r, _10)
    series = fused(series, r, _9)
    series = fused(series, r, _8)
    series = fused(series, r, _7)
    series = fused(series, r, _6)
    series = fused(series, r, _5)
    series = fused(series, r, _4)
    series = fused(series, r, _3)
    series = fused(series, r, _2)
    series = fused(series, r, _1)
    series = fused(series, r, 1.0)
    power = _of_bits((_bits(rounded) + _EXPONENT_OF_1) << 52)
    return 0.0 if x < _LEAST else series * power
