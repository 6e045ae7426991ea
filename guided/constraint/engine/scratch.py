"""Working memory of walks and steps, and arrays that grow."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from guided.kernels.data.layout import Scratch

__all__ = ["grown", "small_scratch"]

_Scalar = TypeVar("_Scalar", bound=np.generic)


def small_scratch(longest: int, size: int) -> Scratch:
    """Working memory for walks and steps; ``longest`` is the longest token in bytes, ``size`` its first entries."""
    depth = longest + 8
    longs = dict.fromkeys(("longs", "more", "calls", "emits", "emit_states", "thread_a", "thread_c", "listed"), size)
    longs.update(tasks=6 * size, visited=3 * size, united=2 * size, walk_state=depth, walk_similar=depth)
    ints = dict.fromkeys(("call_rules", "emit_labels", "thread_b", "thread_d", "closings"), size)
    ints.update(dict.fromkeys(("walk_obligation", "walk_end", "walk_behind", "walk_fan", "walk_way"), depth))
    arrays: dict[str, Any] = {name: np.zeros(length, np.int64) for name, length in longs.items()}
    arrays.update((name, np.zeros(length, np.int32)) for name, length in ints.items())
    return Scratch(**arrays)


def grown(array: NDArray[_Scalar], size: int) -> NDArray[_Scalar]:
    """A copy with room for ``size`` entries, zero where new."""
    bigger = np.zeros(max(size, array.size), array.dtype)
    bigger[: array.size] = array
    return bigger
