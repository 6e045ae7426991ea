"""Holding back Python's cyclic garbage collector during work that somebody waits for.

A full collection walks every object of the process: with a model and a data set loaded it takes 0.2 to 1 s, and it may
start at any allocation.  Inside `uncollected` it waits until the work is done; what was allocated counts as before, so
it comes at the next allocation outside: between two masks, or, where nothing else allocates, at the entry of the next.
"""

from __future__ import annotations

import ctypes
import gc
import platform
import threading
from types import TracebackType
from typing import Any

__all__ = ["uncollected", "untrack"]


class _Uncollected:
    """Reentrant, for any number of threads; a collector that is switched off stays off."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._was_enabled = False

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._was_enabled = gc.isenabled()
                if self._was_enabled:
                    gc.disable()
            self._inside += 1

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._was_enabled:
                gc.enable()


uncollected = _Uncollected()
"""``with uncollected:`` no cyclic garbage is collected in this process."""


def _untracking() -> Any:
    if platform.python_implementation() != "CPython":
        return lambda item: None
    function = ctypes.pythonapi.PyObject_GC_UnTrack
    function.argtypes = [ctypes.py_object]
    function.restype = None
    return function


untrack = _untracking()
"""Tell the collector that an object needs no walking: it refers to no cycle, or lives as long as the process.

For interned expressions and their tuples, hundreds of thousands of them in a long run: each full collection walked them
all, and as they outlived every young one, they also made full ones due.  Reference counts free them as before.
For tuples, lists, sets, dicts and objects of Python classes only: memory views, bound methods, functions and cells are
taken off the collector's list without asking when they are freed, which would end the process.  0.1 us a call; does
nothing outside CPython.
"""
