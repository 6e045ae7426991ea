"""The types of a kernel's parameters, as its `entry` says them and as the compiler takes them.

``long``, ``int``, ``short``, ``flag`` are numbers of 64, 32 and 16 bits and truth values; ``longs``, ``ints``,
``shorts``, ``bytes``, ``words``, ``long_words`` and ``flags`` are flat arrays in one piece, ``singles`` and ``doubles``
those of floating-point numbers, ``int_rows`` and the like have two dimensions.  A ``const`` array is only read, and may
be one that cannot be written.  Arrays in brackets are a tuple, and the name of a group of `guided.kernels.data.layout`
is all its arrays.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, get_args, get_type_hints

import numpy as np
from numba import types
from numba.np.numpy_support import from_dtype

from guided.kernels.data import layout

__all__ = ["Array", "Group", "Number", "Parameter", "parameters", "signature"]


@dataclass(frozen=True)
class Number:
    """A number of so many bits; 1 for a truth value."""

    bits: int


@dataclass(frozen=True)
class Array:
    """An array in one piece."""

    dtype: str
    dimensions: int
    const: bool


@dataclass(frozen=True)
class Group:
    """A tuple of arrays: a plain one, or a group of the layout."""

    arrays: tuple[Array, ...]
    of: type | None = None


Parameter = Number | Array | Group

_NUMBERS = {"long": 64, "int": 32, "short": 16, "flag": 1}
_DTYPES = {
    "long": "int64", "int": "int32", "short": "int16", "byte": "uint8", "word": "uint32", "long_word": "uint64",
    "flag": "bool", "single": "float32", "double": "float64",
}  # fmt: skip
_PART = re.compile(r"\s*(?:\(([^)]*)\)|([^,()]+))\s*(?:,|$)")


def parameters(text: str) -> tuple[Parameter, ...]:
    """The parameters that a signature says."""
    found: list[Parameter] = []
    at = 0
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            raise ValueError(f"{text!r} is no signature of a kernel, at {text[at:]!r}")
        within, one = part.groups()
        found.append(_parameter(one.strip()) if one else Group(tuple(_array(each) for each in within.split(","))))
        at = part.end()
    return tuple(found)


def _parameter(text: str) -> Parameter:
    if text in _NUMBERS:
        return Number(_NUMBERS[text])
    group = getattr(layout, text, None) if text[:1].isupper() else None
    if group is None:
        return _array(text)
    hints = get_type_hints(group)
    kinds = [np.dtype(get_args(get_args(hints[name])[1])[0]).name for name in group._fields]
    return Group(tuple(Array(kind, 1, False) for kind in kinds), group)


def _array(text: str) -> Array:
    words = text.split()
    const, name = words[:-1] == ["const"], words[-1]
    for ending, dimensions in (("_rows", 2), ("s", 1)):
        if name.endswith(ending) and name.removesuffix(ending) in _DTYPES and len(words) == 1 + const:
            return Array(_DTYPES[name.removesuffix(ending)], dimensions, const)
    raise ValueError(f"{text!r} is no type of a kernel's parameter")


def signature(of: tuple[Parameter, ...]) -> tuple[Any, ...]:
    """The parameters as Numba's types."""
    return tuple(_type(parameter) for parameter in of)


def _type(of: Parameter) -> Any:
    if isinstance(of, Number):
        return {64: types.int64, 32: types.int32, 16: types.int16, 1: types.boolean}[of.bits]
    if isinstance(of, Array):
        return types.Array(from_dtype(np.dtype(of.dtype)), of.dimensions, "C", readonly=of.const)
    arrays = [_type(array) for array in of.arrays]
    return types.BaseTuple.from_types(arrays, of.of)
