"""`FairQueue`: what waits, in the order in which it is taken: clients in turn, and of each client the oldest first."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

__all__ = ["FairQueue"]

T = TypeVar("T")


class FairQueue(Generic[T]):
    """A queue for each client; they take turns.  Not safe for threads.

    >>> queue = FairQueue()
    >>> for client, item in [("a", 1), ("a", 2), ("a", 3), ("b", 4)]:
    ...     queue.put(client, item)
    >>> [queue.take() for _ in range(len(queue))]
    [1, 4, 2, 3]
    """

    def __init__(self) -> None:
        self._clients: dict[str, deque[T]] = {}
        self._n = 0

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[T]:
        for items in self._clients.values():
            yield from items

    def put(self, client: str, item: T) -> None:
        """Wait behind what the client has there already."""
        self._clients.setdefault(client, deque()).append(item)
        self._n += 1

    def first(self) -> T | None:
        """What `take` would take."""
        return next(iter(self._clients.values()))[0] if self._clients else None

    def take(self) -> T:
        """The oldest item of the client whose turn it is, who is then the last of all."""
        client, items = next(iter(self._clients.items()))
        del self._clients[client]
        found = items.popleft()
        if items:
            self._clients[client] = items
        self._n -= 1
        return found

    def drop(self, unwanted: Callable[[T], bool]) -> list[T]:
        """Take out whatever is unwanted, wherever it stands; the turns stay."""
        gone = [item for item in self if unwanted(item)]
        if gone:
            kept = {client: deque(i for i in items if not unwanted(i)) for client, items in self._clients.items()}
            self._clients = {client: items for client, items in kept.items() if items}
            self._n -= len(gone)
        return gone
