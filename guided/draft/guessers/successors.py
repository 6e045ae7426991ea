"""`Successors`: how often each token came after each context, for as many contexts as fit."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Generic, TypeVar

__all__ = ["Successors"]

K = TypeVar("K", bound=Hashable)

LARGEST = 32.0
"""Counts are halved where one reaches this: what came lately counts for more."""


class Successors(Generic[K]):
    """Counts of tokens by context; contexts used longest ago go first.

    >>> counts = Successors[str](limit=100)
    >>> counts.add("a", 7)
    >>> counts.after("a")
    {7: 1.0}
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._counts: OrderedDict[K, dict[int, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._counts)

    def after(self, context: K) -> Mapping[int, float]:
        """The counts after a context; empty where it was not seen."""
        return self._counts.get(context, {})

    def add(self, context: K, token: int, weight: float = 1.0) -> None:
        """Count a token after a context."""
        counts = self._counts.setdefault(context, {})
        counts[token] = counts.get(token, 0.0) + weight
        if counts[token] >= LARGEST:
            self._counts[context] = {token: count / 2 for token, count in counts.items() if count >= 0.5}
        self._touch(context)

    def put(self, context: K, counts: dict[int, float]) -> None:
        """Replace what is known of a context."""
        self._counts[context] = counts
        self._touch(context)

    def _touch(self, context: K) -> None:
        self._counts.move_to_end(context)
        if len(self._counts) > self.limit:
            self._counts.popitem(last=False)

    def drop(self, which: Callable[[K], bool]) -> None:
        """Forget contexts."""
        for context in [context for context in self._counts if which(context)]:
            del self._counts[context]
