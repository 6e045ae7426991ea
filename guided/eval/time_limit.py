"""A limit of seconds around a call, for engines that know no other.

In the main thread of a Unix process an alarm interrupts the call as soon as Python code runs again, which a call into
compiled code delays until it returns.  Elsewhere the call is left to end.  In both cases a call that took longer than
the limit counts as out of time, so that what is counted does not depend on where it ran.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

__all__ = ["OutOfTimeError", "time_limit"]


class OutOfTimeError(BaseException):
    """A `time_limit` has passed.  No `Exception`, since engines catch those."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `OutOfTimeError` in or after a block that takes longer than ``seconds``."""
    alarmed = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()

    def ring(*_: object) -> NoReturn:
        raise OutOfTimeError

    began = time.perf_counter()
    if not alarmed:
        yield
    else:
        handler = signal.signal(signal.SIGALRM, ring)
        left, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL if handler is None else handler)
            if left:
                # Somebody else's alarm: it rings when it would have, or now.
                signal.setitimer(signal.ITIMER_REAL, max(left - (time.perf_counter() - began), 0.001), interval)
    if time.perf_counter() - began > seconds:
        raise OutOfTimeError
