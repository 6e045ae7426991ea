"""When Numba is at work: compiling a kernel must not be interrupted, and is no part of a grammar's time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from guided.kernels.jit import JUST_IN_TIME

__all__ = ["CompilerClock", "compiler_clock"]


class CompilerClock:
    """Seconds in which a thread held Numba's compiler lock: it compiled a kernel, or loaded a compiled one."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._thread = threading.get_ident()
        self._depth = 0
        self._began = 0.0

    @property
    def running(self) -> bool:
        """Whether this thread holds the lock; what is raised in it then leaves kernels half made, for good."""
        if not JUST_IN_TIME:
            return False
        from numba.core.compiler_lock import global_compiler_lock

        return bool(global_compiler_lock.is_locked())

    def begin(self) -> None:
        """Somebody asks for the lock."""
        if threading.get_ident() == self._thread:
            if self._depth == 0:
                self._began = time.perf_counter()
            self._depth += 1

    def end(self) -> None:
        """Somebody gave the lock back."""
        if threading.get_ident() == self._thread:
            self._depth -= 1
            if self._depth == 0:
                self.seconds += time.perf_counter() - self._began


@contextmanager
def compiler_clock() -> Iterator[CompilerClock]:
    """A clock of this thread that runs, during the block, while Numba is at work."""
    clock = CompilerClock()
    if not JUST_IN_TIME:
        yield clock
        return
    from numba.core import event

    class Listener(event.Listener):  # type: ignore[misc]
        def on_start(self, of: Any) -> None:
            clock.begin()

        def on_end(self, of: Any) -> None:
            clock.end()

    with event.install_listener("numba:compiler_lock", Listener()):
        yield clock
