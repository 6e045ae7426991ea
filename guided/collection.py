"""Holding back Python's cyclic garbage collector during work that somebody waits for.

A full collection walks every object of the process: with a model and a data set loaded it takes 0.2 to 1 s, and it may
start at any allocation.  Inside `uncollected` it waits until the work is done; what was allocated counts as before, so
it comes at the next allocation outside: between two masks, or, where nothing else allocates, at the entry of the next.
"""

from __future__ import annotations

import gc
import threading
from types import TracebackType

__all__ = ["uncollected"]


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
