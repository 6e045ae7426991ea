"""Kernels that two processes compile into one cache together, each of them once.

A process claims a kernel by a file of its name before compiling it, and gives the claim back when the kernel is in the
cache; the other, should it come to that kernel meanwhile, waits and loads it.  Kernels call each other in no circle, so
two processes never wait for each other.  A claim covers all variants of a kernel, because Numba rewrites the index of
a kernel's variants as a whole: two processes that add to it at once lose entries.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

__all__ = ["shared_kernels"]

_PAUSE = 0.005
"""Seconds between two looks at a claim of the other process."""


@contextmanager
def shared_kernels(claims: Path, other_lives: Callable[[], bool]) -> Iterator[None]:
    """In the block, claim kernels in the folder ``claims`` before compiling them, and wait for those that are claimed.

    ``other_lives`` says whether the process is still there with which the folder is shared: the claims of a process
    that is gone count no more.
    """
    kernels = list(all_kernels())
    caches = [kernel._cache for kernel in kernels]
    for kernel, cache in zip(kernels, caches, strict=True):
        function = kernel.py_func
        kernel._cache = _ClaimedCache(cache, claims / f"{function.__module__}.{function.__qualname__}", other_lives)
    try:
        yield
    finally:
        for kernel, cache in zip(kernels, caches, strict=True):
            kernel._cache = cache


def all_kernels() -> set[Any]:
    """Every kernel, as Numba's dispatchers."""
    from numba.core.dispatcher import Dispatcher

    import guided.kernels

    found = walk_packages(guided.kernels.__path__, "guided.kernels.")
    modules = [importlib.import_module(module.name) for module in found]
    return {value for module in modules for value in vars(module).values() if isinstance(value, Dispatcher)}


class _ClaimedCache:
    """The cache of one kernel's variants, where what it misses is claimed."""

    def __init__(self, cache: Any, claim: Path, other_lives: Callable[[], bool]) -> None:
        self._cache = cache
        self._claim = claim
        self._other_lives = other_lives
        self._held = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The compiled variant; None when this process has to compile it, for which it then holds the claim."""
        while True:
            found = self._cache.load_overload(signature, target_context)
            if found is not None:
                return found
            if self._held or not self._other_lives():
                self._held += 1
                return None
            if self._take():
                # What the other process kept between our look and our claim is there now.
                found = self._cache.load_overload(signature, target_context)
                if found is None:
                    self._held += 1
                    return None
                self._claim.unlink()
                return found
            while self._claim.exists() and self._other_lives():
                time.sleep(_PAUSE)

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep a variant, and give back the claim with the last that is being compiled."""
        self._cache.save_overload(signature, compiled)
        self._held -= 1
        if not self._held:
            self._claim.unlink(missing_ok=True)

    def _take(self) -> bool:
        try:
            os.close(os.open(self._claim, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except FileExistsError:
            return False
        return True
