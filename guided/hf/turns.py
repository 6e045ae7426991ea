"""`Turns`: a lock that whoever asked first gets first.

With a lock of the standard library, a thread that lets it go and asks again at once mostly gets it again, and others
wait for as long as that one goes on.
"""

from __future__ import annotations

import threading
from collections import deque
from types import TracebackType

__all__ = ["Turns"]


class Turns:
    """A lock held as a context manager; the thread that has it may take it again.

    >>> turns = Turns()
    >>> with turns, turns:
    ...     pass
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner: int | None = None
        self._depth = 0
        self._waiting: deque[tuple[int, threading.Lock]] = deque()

    def __enter__(self) -> None:
        me = threading.get_ident()
        with self._lock:
            if self._owner in (None, me):
                self._owner = me
                self._depth += 1
                return
            mine = threading.Lock()
            mine.acquire()
            self._waiting.append((me, mine))
        try:
            mine.acquire()  # until whoever goes before hands over
        except BaseException:  # An interrupt: the turn is passed on, or was never given.
            self._give_up(me, mine)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._depth -= 1
            if not self._depth:
                self._hand_over()

    def _hand_over(self) -> None:
        """Give the turn to the next thread, if there is one; the inner lock is held."""
        self._owner = None
        if self._waiting:
            self._owner, theirs = self._waiting.popleft()
            self._depth = 1
            theirs.release()

    def _give_up(self, me: int, mine: threading.Lock) -> None:
        with self._lock:
            if (me, mine) in self._waiting:
                self._waiting.remove((me, mine))
            elif self._owner == me:
                self._depth = 0
                self._hand_over()
