"""Threads kept for the process, for work that is done in compiled code or in the constraints' own locks."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

__all__ = ["spread"]

_lock = threading.Lock()
_pool: ThreadPoolExecutor | None = None
_size = 0


def _forget() -> None:
    """A forked process has none of its parent's threads, and perhaps a lock that nobody will open."""
    global _lock, _pool, _size
    _lock, _pool, _size = threading.Lock(), None, 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def spread(work: Callable[[int, int], None], n_items: int, threads: int) -> None:
    """Call ``work(low, high)`` on ranges that make up ``range(n_items)``, on so many threads, this one among them.

    Returns when all are done; raises the first error.  One thread costs a plain call, each more about 30 us.
    """
    threads = max(1, min(threads, n_items))
    if threads == 1:
        work(0, n_items)
        return
    cuts = [n_items * part // threads for part in range(threads + 1)]
    futures: list[Future[None]] = []
    try:
        for part in range(1, threads):
            futures.append(_submit(work, cuts[part], cuts[part + 1], threads))
        work(cuts[0], cuts[1])
    finally:
        # Nobody may write to the caller's arrays once this has returned, not even after an error.
        errors = [future.exception() for future in futures]
    for error in errors:
        if error is not None:
            raise error


def _submit(work: Callable[[int, int], None], low: int, high: int, threads: int) -> Future[None]:
    global _pool, _size
    with _lock:
        if _pool is None or _size < threads - 1:
            # Threads of a smaller pool finish what they have and end by themselves.
            if _pool is not None:
                _pool.shutdown(wait=False)
            _size = threads - 1
            _pool = ThreadPoolExecutor(_size, thread_name_prefix="guided")
        return _pool.submit(work, low, high)
