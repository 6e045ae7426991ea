"""Which fields of a group lie side by side in memory: all fields of one entry share a line of the cache.

A mask reads several fields of each trie node and lexer state that it visits, seldom the same field of neighbours twice
in a row, and mostly after a long time.  In arrays of their own the fields cost a cache miss each.  Python still sees an
array for each field; each is a view with a stride.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from guided.kernels.data.layout import Automaton, Effects, Tokens
from guided.kernels.data.pages import gradual_zeros

__all__ = ["grown_records", "of_record", "records", "scalar_of"]

_LINE = 64
"""Bytes of a line of the cache, at whose multiples records begin, so that none lies in two lines."""

_TOGETHER: dict[type, tuple[tuple[str, ...], ...]] = {
    Automaton: (
        (
            "first", "count", "mode", "loops", "tag", "owes", "base", "decode", "pending", "also", "minimum", "widest",
            "closed", "boundless", "bound",
        ),
        ("target", "low", "high"),
    ),
    Tokens: (("end", "token_offset", "fan", "byte", "height"),),
    Effects: (
        ("key_low", "key_high", "key_state", "mask", "list_first", "list_count", "exit_first", "exit_count"),
        ("exit_low", "exit_high", "exit_tag", "exit_pending"),
    ),
}  # fmt: skip
"""The records of each group."""


def scalar_of(hint: Any) -> type[np.generic]:
    """The scalar type of an array's hint.

    ``NDArray[np.int32]`` is an alias that NumPy 2.5 leaves as it is; before, it is ``ndarray[..., dtype[int32]]``.
    """
    *_, last = get_args(hint)
    kind: type[np.generic] = get_args(last)[0] if get_args(last) else last
    return kind


def _record(group: type, names: tuple[str, ...]) -> np.dtype[Any]:
    """The record of some fields, as long as the next power of two."""
    hints = get_type_hints(group)
    kinds = [np.dtype(scalar_of(hints[name])) for name in names]
    record = np.dtype({"names": names, "formats": kinds}, align=True)
    placed: Mapping[str, Any] = record.fields or {}
    offsets = [placed[name][1] for name in names]
    size = 1 << (record.itemsize - 1).bit_length()
    return np.dtype({"names": names, "formats": kinds, "offsets": offsets, "itemsize": size}, align=True)


_RECORDS = {group: [_record(group, names) for names in together] for group, together in _TOGETHER.items()}
_OF_FIELD = {
    (group, name): record for group, kinds in _RECORDS.items() for record in kinds for name in record.names or ()
}


def of_record(group: type, name: str) -> int:
    """Bytes from an entry of a field to the next where it is part of a record, else 0."""
    record = _OF_FIELD.get((group, name))
    return 0 if record is None else record.itemsize


def records(group: type, name: str, size: int) -> dict[str, NDArray[Any]]:
    """Arrays of so many entries for all fields of the record of ``name``, zero."""
    record = _OF_FIELD[group, name]
    # A line more than that, to begin at one.
    memory = gradual_zeros(size * record.itemsize + _LINE)
    begin = -memory.ctypes.data % _LINE
    whole = memory[begin : begin + size * record.itemsize].view(record)
    return {field: whole[field] for field in record.names or ()}


def grown_records(arrays: Any, name: str, size: int, used: int = -1) -> dict[str, NDArray[Any]]:
    """Arrays of so many entries for all fields of the record of ``name``: copies of the first ``used`` (-1: all)."""
    grown = records(type(arrays), name, size)
    for field, array in grown.items():
        old = getattr(arrays, field)
        n = len(old) if used < 0 else used
        array[:n] = old[:n]
    return grown
