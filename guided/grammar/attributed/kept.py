"""`Kept`: what was found before, forgotten all at once when there is too much of it."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["Kept"]

Key = TypeVar("Key")
Value = TypeVar("Value")


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
