"""A limit of seconds around a call, for engines that know no other.

In the main thread of a Unix process an alarm interrupts the call as soon as Python code runs again, which a call into
compiled code delays until it returns.  Elsewhere the call is left to end.  In both cases a call that took longer than
the limit counts as out of time, so that what is counted does not depend on where it ran; nor does it depend on whether
our kernels were compiled before: they are not interrupted, and their time is not counted.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["OutOfTimeError", "time_limit"]

_AGAIN_S = 0.02
"""Until the alarm rings again, where it rang while a kernel was compiled, which takes about a second."""


class OutOfTimeError(BaseException):
    """A `time_limit` has passed.  No `Exception`, since engines catch those."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `OutOfTimeError` in or after a block that takes longer than ``seconds``."""
    from guided.kernels.compiling import compiler_clock

    began = time.perf_counter()
    with compiler_clock() as clock:

        def passed() -> bool:
            return time.perf_counter() - began - clock.seconds > seconds

        def ring(*_: object) -> None:
            if clock.running or not passed():
                signal.setitimer(signal.ITIMER_REAL, _AGAIN_S)
            else:
                raise OutOfTimeError

        if _alarms_reach_us():
            with _alarm(ring, seconds):
                yield
        else:
            yield
        if passed():
            raise OutOfTimeError


def _alarms_reach_us() -> bool:
    """Whether alarms reach this thread."""
    return hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()


@contextmanager
def _alarm(ring: Callable[..., None], seconds: float) -> Iterator[None]:
    began = time.perf_counter()
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
