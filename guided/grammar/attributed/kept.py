"""What was found before: `Kept`, forgotten all at once when there is too much, and `Last`, of one thing alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["Kept", "Last"]

Key = TypeVar("Key")
Value = TypeVar("Value")
Thing = TypeVar("Thing")


class Kept(dict[Key, Value]):
    """A dict that is emptied before it has more than ``most`` entries.

    Texts rarely come back to where they were long ago, so which are forgotten matters little, and a round of
    evictions would cost more than finding some again.

    >>> kept = Kept(2)
    >>> for number in range(3):
    ...     kept[number] = number
    >>> list(kept)
    [2]
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def __setitem__(self, key: Key, value: Value) -> None:
        if len(self) >= self.most:
            self.clear()
        super().__setitem__(key, value)


class Last(Generic[Thing]):
    """What is known of the object that was asked about last: many ask about one, each after another.

    ``begin`` gives what is known of another object to begin with.

    >>> last, one = Last(lambda _: {}), object()
    >>> last.of(one)["size"] = 1
    >>> last.of(one), last.of(object())
    ({'size': 1}, {})
    """

    def __init__(self, begin: Callable[[Thing], dict[Any, Any]]) -> None:
        self._begin = begin
        self._last: tuple[Thing | None, dict[Any, Any]] = (None, {})

    def of(self, one: Thing) -> dict[Any, Any]:
        """What is known of an object so far; whoever asks may add to it."""
        last, known = self._last
        if last is not one:
            known = self._begin(one)
            self._last = one, known
        return known
