"""Kernels that lie compiled on the disk, loaded before they are needed.

Numba loads a kernel when it is first called, 2 to 25 ms each, which would be in the middle of somebody's first texts.
The library of `guided.kernels.ahead` has them all at once.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from guided.kernels import entry
from guided.kernels.jit import JUST_IN_TIME
from guided.kernels.lexing import determinise, finite_texts, minimal, number_states, part_pairs, product, strings
from guided.kernels.masking import effect_deltas, effects, places, rows
from guided.kernels.parsing import parser, record_nodes, threads
from guided.kernels.tokens import token_tries

__all__ = ["load_compiled"]

_MODULES = (
    entry, determinise, effect_deltas, effects, finite_texts, minimal, number_states, part_pairs, places, product,
    record_nodes, rows, token_tries,
)  # fmt: skip

_loading = threading.Lock()


def load_compiled() -> None:
    """Load what reading a text under a constraint may call; nothing is compiled, and the second time does nothing."""
    if JUST_IN_TIME:
        with _loading:
            _load()


@lru_cache(maxsize=1)
def _load() -> None:
    for kernel in _kernels():
        for signature in _on_disk(kernel):
            kernel.compile(signature)


def _kernels() -> Iterator[Any]:
    from numba.core.dispatcher import Dispatcher

    for module in _MODULES:
        for name in module.__all__ if hasattr(module, "__all__") else vars(module):
            kernel = getattr(module, name)
            if isinstance(kernel, Dispatcher) and not kernel.targetoptions.get("no_cpython_wrapper"):
                yield kernel
    yield from (strings.place_after, strings.state_at, parser.intern_set, threads.intern_state)


def _on_disk(kernel: Any) -> list[Any]:
    """The signatures for which Numba's cache holds a kernel; none where it keeps its index in another way."""
    try:
        return [key[0] for key in kernel._cache._cache_file._load_index()]
    except (AttributeError, OSError):
        return []
