"""Rows of the table of addresses that kernels get (`guided.kernels.data.views`), without loading the compiler."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from itertools import count
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["REPLACED", "Block", "Fresh", "SharedAddresses", "address", "address_row", "address_rows"]

Arrays = Sequence[NDArray[Any]]
Group = TypeVar("Group", bound=NamedTuple)


def address_rows(arrays: Arrays) -> NDArray[np.int64]:
    """``int64[n, 3]``: address, length and width of each array; good while they are held on to."""
    return np.asarray([address_row(array) for array in arrays], np.int64).reshape(len(arrays), 3)


def address_row(array: NDArray[Any]) -> tuple[int, int, int]:
    """One row of them."""
    shape = array.shape
    return address(array), shape[0], shape[1] if len(shape) > 1 else 0


def address(array: NDArray[Any]) -> int:
    """Where an array's data begins, 0 for none: a tenth of the time that ``array.ctypes.data`` takes, and more."""
    if not array.size:
        return 0
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        # Not writable, or not in one piece.
        return int(array.ctypes.data)


class SharedAddresses:
    """The rows of arrays that many constraints use, made anew when they are replaced."""

    def __init__(self) -> None:
        self._made: tuple[Arrays, NDArray[np.int64]] = ((), np.zeros((0, 3), np.int64))

    def of(self, arrays: Arrays) -> NDArray[np.int64]:
        """The rows of ``arrays``; remembered for the same object."""
        known, rows = self._made
        if known is not arrays:
            rows = address_rows(arrays)
            self._made = arrays, rows
        return rows


class Replaced:
    """Whether shared arrays of this process were replaced: whoever holds their addresses looks again when ``last`` is
    another number.
    """

    __slots__ = ("_numbers", "last")

    def __init__(self) -> None:
        self._numbers = count(1)
        self.last = 0

    def note(self) -> None:
        """Say that one was.  Of threads that do so at once one is the last; no number comes twice."""
        self.last = next(self._numbers)


REPLACED = Replaced()


class Fresh(Generic[Group]):
    """A group of arrays in one piece of memory: there for kernels at once, for Python when it is asked for."""

    __slots__ = ("_block", "_group", "_memory", "rows")

    def __init__(self, block: Block[Group], memory: NDArray[np.uint8], rows: NDArray[np.int64]) -> None:
        self._block = block
        self._memory = memory
        self._group: Group | None = None
        self.rows = rows
        """The group's `address_rows`, good while this is held on to."""

    def group(self) -> Group:
        """The arrays, made the first time in a third of a microsecond each."""
        found = self._group
        if found is None:
            found = self._group = self._block.views(self._memory)
        return found

    def __len__(self) -> int:
        return len(self.rows)


class Block(Generic[Group]):
    """Makes groups of arrays that begin alike, each group in one piece of memory; their addresses follow by addition.

    An array made by itself takes a microsecond and more, and a constraint begins with forty.

    >>> class Pair(NamedTuple):
    ...     ids: NDArray[np.int32]
    ...     rows: NDArray[np.int64]
    >>> block = Block(Pair(np.full(3, -1, np.int32), np.zeros((2, 2), np.int64)))
    >>> fresh = block.fresh()
    >>> fresh.group().ids.tolist(), (fresh.rows == address_rows(fresh.group())).all()
    ([-1, -1, -1], np.True_)
    """

    def __init__(self, prototype: Group, shared: Sequence[str] = ()) -> None:
        """Of the ``shared`` fields all groups have the very array of the prototype."""
        names = prototype._fields
        arrays: Arrays = prototype
        self._kind = type(prototype)
        self._parts: list[NDArray[Any] | tuple[tuple[int, ...], np.dtype[Any], int]] = []
        self._rows = address_rows(arrays)
        self._moved: list[int] = []
        size = 0
        for i, (name, array) in enumerate(zip(names, arrays, strict=True)):
            if name in shared:
                self._parts.append(array)
            else:
                self._parts.append((array.shape, array.dtype, size))
                self._rows[i, 0] = size
                self._moved.append(i)
                size += -(-array.nbytes // _ALIGNED) * _ALIGNED
        self._memory = np.zeros(size, np.uint8)
        for array, part in zip(arrays, self._parts, strict=True):
            if isinstance(part, tuple):
                shape, kind, offset = part
                np.ndarray(shape, kind, self._memory, offset)[...] = array
        self._is_zero = not self._memory.any()

    def fresh(self) -> Fresh[Group]:
        """A group of new arrays."""
        memory = np.zeros(self._memory.size, np.uint8) if self._is_zero else self._memory.copy()
        rows = self._rows.copy()
        # Entry by entry: numpy's own addition takes fifteen microseconds where it was not used for a while.
        view: Any = rows.data
        begin = address(memory)
        for i in self._moved:
            view[i, 0] += begin
        return Fresh(self, memory, rows)

    def views(self, memory: NDArray[np.uint8]) -> Group:
        """The arrays of a group that lies in ``memory``."""
        arrays = [
            np.ndarray(part[0], part[1], memory, part[2]) if isinstance(part, tuple) else part for part in self._parts
        ]
        return self._kind._make(arrays)


_ALIGNED = 16
"""Bytes at whose multiples arrays begin, as those that numpy makes."""
