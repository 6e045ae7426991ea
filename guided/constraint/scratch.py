"""Working memory of walks and steps, and arrays that grow."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from guided.kernels.layout import Scratch

__all__ = ["grown", "small_scratch"]

_Scalar = TypeVar("_Scalar", bound=np.generic)


def small_scratch(longest: int, size: int = 1 << 10) -> Scratch:
    """Working memory for walks and steps; ``longest`` is the longest token in bytes."""
    depth = longest + 8
    longs = dict.fromkeys(("longs", "more", "calls", "emits", "thread_a", "thread_c"), size)
    longs.update(tasks=3 * size, visited=3 * size, walk_state=depth)
    ints = dict.fromkeys(("call_rules", "emit_states", "emit_labels", "thread_b", "thread_d"), size)
    ints.update(dict.fromkeys(("walk_obligation", "walk_end", "walk_other", "walk_fan", "walk_way"), depth))
    # From two blocks of memory: constraints are made often, and each array by itself costs a microsecond.
    arrays: dict[str, Any] = {}
    for sizes, kind in ((longs, np.int64), (ints, np.int32)):
        block, at = np.zeros(sum(sizes.values()), kind), 0
        for name, length in sizes.items():
            arrays[name] = block[at : at + length]
            at += length
    return Scratch(**arrays)


def grown(array: NDArray[_Scalar], size: int) -> NDArray[_Scalar]:
    """A copy with room for ``size`` entries, zero where new."""
    bigger = np.zeros(max(size, array.size), array.dtype)
    bigger[: array.size] = array
    return bigger
