"""Grammars made lately, by what they were made from: a schema seen before costs a look-up."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Made = TypeVar("Made")


KEPT = 3, 4
"""The part of the entries, and of their size, that is left when there are too many: to take a grammar apart is 40 us,
by the profiler, and somebody waits for the next."""


class Recent(Generic[Made]):
    """A bounded dictionary that forgets what was asked for longest ago, many at a time; each entry has a size.

    >>> recent = Recent(entries=2, size=100)
    >>> for key in "abc":
    ...     recent.keep(key, key.upper(), 10)
    >>> recent.find("a"), recent.find("c")
    (None, 'C')
    """

    def __init__(self, entries: int, size: int) -> None:
        self._most, self._largest, self._size = entries, size, 0
        self._found: OrderedDict[Hashable, tuple[Made, int]] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, key: Hashable) -> Made | None:
        """What is kept under a key, or None."""
        with self._lock:
            found = self._found.get(key)
            if found is None:
                return None
            self._found.move_to_end(key)
            return found[0]

    def keep(self, key: Hashable, made: Made, size: int) -> None:
        """Keep something under a key, as long as there is room."""
        forgotten: list[object] = []  # taken apart when this returns, not under the lock
        with self._lock:
            old = self._found.pop(key, None)
            self._found[key] = made, size
            self._size += size - (old[1] if old else 0)
            if len(self._found) > self._most or self._size > self._largest:
                part, of = KEPT
                while len(self._found) > 1 and (
                    len(self._found) * of > self._most * part or self._size * of > self._largest * part
                ):
                    forgotten.append(self._forget())
                if self._size > self._largest:
                    forgotten.append(self._forget())

    def _forget(self) -> Made:
        made, size = self._found.popitem(last=False)[1]
        self._size -= size
        return made

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._found.clear()
            self._size = 0
