"""What a scheduler has done and does, and how soon it should have room."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Counters", "Rate"]

REMEMBERED = 64
"""Ends of jobs from which the rate is measured."""


@dataclass(frozen=True)
class Counters:
    """Sums since the beginning, and what is so now."""

    growing: int
    """Texts that grow now."""
    waiting: int
    running: int
    """Functions of `Scheduler.run` that run now."""
    waiting_runs: int
    tokens: int
    steps: int
    """Passes of batches."""
    prompt_tokens: int
    """Of jobs that ended without an error."""
    cached_tokens: int
    ended: Mapping[str, int]
    """Jobs that ended, by the `Reason` in small letters, or ``failed``."""
    short_of_memory: int
    """Passes that found too little memory and were made again in halves."""


class Rate:
    """How fast jobs end; safe for threads."""

    def __init__(self) -> None:
        self._ends: deque[float] = deque(maxlen=REMEMBERED)
        self._lock = threading.Lock()

    def ended(self) -> None:
        """A job has ended just now."""
        with self._lock:
            self._ends.append(time.monotonic())

    def seconds_for(self, n: int) -> float:
        """Seconds until so many more have ended, going by the last ones; at least 1, at most 600."""
        with self._lock:
            ends = list(self._ends)
        if len(ends) < 2:
            return 1.0
        each = (time.monotonic() - ends[0]) / (len(ends) - 1)
        return min(max(1.0, n * each), 600.0)
