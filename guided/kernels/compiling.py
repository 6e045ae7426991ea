"""When Numba is at work: compiling a kernel must not be interrupted, and is no part of a grammar's time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import event
from numba.core.compiler_lock import global_compiler_lock

__all__ = ["CompilerClock", "compiler_clock"]


class CompilerClock(event.Listener):  # type: ignore[misc]
    """Seconds in which a thread held Numba's compiler lock: it compiled a kernel, or loaded a compiled one."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._thread = threading.get_ident()
        self._depth = 0
        self._began = 0.0

    @property
    def running(self) -> bool:
        """Whether this thread holds the lock; what is raised in it then leaves kernels half made, for good."""
        return bool(global_compiler_lock.is_locked())

    def on_start(self, of: Any) -> None:
        """Numba says that somebody asks for the lock."""
        if threading.get_ident() == self._thread:
            if self._depth == 0:
                self._began = time.perf_counter()
            self._depth += 1

    def on_end(self, of: Any) -> None:
        """Numba says that somebody gave the lock back."""
        if threading.get_ident() == self._thread:
            self._depth -= 1
            if self._depth == 0:
                self.seconds += time.perf_counter() - self._began


@contextmanager
def compiler_clock() -> Iterator[CompilerClock]:
    """A clock of this thread that runs, during the block, while Numba is at work."""
    clock = CompilerClock()
    with event.install_listener("numba:compiler_lock", clock):
        yield clock
