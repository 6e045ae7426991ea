"""Holding back Python's cyclic garbage collector during work that somebody waits for.

A full collection walks every object of the process: with a model and a data set loaded it takes 0.2 to 1 s, and it may
start at any allocation.  While it is held back it waits until the work is done; what was allocated counts as before, so
it comes at the next allocation outside, between two masks.  So whoever holds it does so before anything else, and
returns as soon as it is released.
"""

from __future__ import annotations

import ctypes
import gc
import platform
from typing import Any

__all__ = ["hold", "release", "set_aside", "untrack"]


def hold() -> bool:
    """Hold the collector back; is it this call after which it has to be released?

    0.1 us, so that every mask can afford it; no ``with``, which would itself allocate.  Nests, and a collector that is
    switched off stays off.  Among threads the first to come is the one that releases it, whoever is still at work.
    """
    if gc.isenabled():
        gc.disable()
        return True
    return False


release = gc.enable
"""Ends what `hold` began, where that returned True."""


def set_aside() -> None:
    """Collect once, and leave what is there now out of all later collections; for processes that serve.

    A model and its libraries are 400,000 objects that stay.  Walking them kept the interpreter for 0.3 s in one piece
    while a grammar of 5,382 rules was made; without them no collection of that work took more than 0.02 s.
    """
    gc.collect()
    gc.freeze()


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
