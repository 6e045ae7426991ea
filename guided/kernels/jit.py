"""How kernels are compiled: those that Python calls, and those that only kernels call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit

__all__ = ["entry", "inner"]


def entry(kernel: Callable[..., Any]) -> Any:
    """Compile a kernel that Python calls."""
    return njit(kernel, cache=True, nogil=True, no_cfunc_wrapper=True)


def inner(kernel: Callable[..., Any]) -> Any:
    """Compile a kernel that only kernels call: without what Python would call it by.

    That unpacks each array of an argument and packs each of a result, a third of the time of compiling a small kernel.
    A call from Python would end the process.
    """
    return njit(kernel, cache=True, nogil=True, no_cfunc_wrapper=True, no_cpython_wrapper=True)
