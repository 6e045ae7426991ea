"""`Stream`: the events of one job, as an asynchronous iterator; how they cross from a thread to an event loop."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType

from guided.server.scheduling.events import Event, Failed, Finished

__all__ = ["Delivery", "Stream", "deliver"]


class Stream:
    """The events of one job, the last of which is `Finished` or `Failed`.

    Belongs to the event loop that it was made in, and is read by one task.  Leaving it as a context manager cancels the
    job, which does nothing to one that has ended.
    """

    def __init__(self, cancel: Callable[[], None]) -> None:
        self.loop = asyncio.get_running_loop()
        self._cancel = cancel
        self._events: deque[Event] = deque()
        self._reader: asyncio.Future[None] | None = None
        self._over = False

    def cancel(self) -> None:
        """End the job before its next token; from any thread, any number of times."""
        self._cancel()

    def take(self, events: Iterable[Event]) -> None:
        """Events that came; on the stream's own loop."""
        self._events.extend(events)
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Event:
        if self._over:
            raise StopAsyncIteration
        while not self._events:
            self._reader = self.loop.create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        event = self._events.popleft()
        self._over = isinstance(event, (Finished, Failed))
        return event

    async def __aenter__(self) -> Stream:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cancel()


def deliver(found: Sequence[tuple[Stream, Sequence[Event]]]) -> None:
    """Hand events to their streams from any thread, with one wake-up of each event loop.

    Events of a loop that is closed are dropped: nobody can read them.
    """
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Stream, Sequence[Event]]]] = {}
    for stream, events in found:
        by_loop.setdefault(stream.loop, []).append((stream, events))
    for loop, here in by_loop.items():
        try:
            loop.call_soon_threadsafe(_take_all, here)
        except RuntimeError:  # The loop was closed.
            for stream, _ in here:
                stream.cancel()


class Delivery:
    """A thread that delivers, so that whoever has events keeps the interpreter: to wake an event loop gives it up, and
    the loop holds it until all its clients have read."""

    def __init__(self) -> None:
        self._found: queue.SimpleQueue[Sequence[tuple[Stream, Sequence[Event]]] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="delivery", daemon=True)
        self._thread.start()

    def put(self, found: Sequence[tuple[Stream, Sequence[Event]]]) -> None:
        """As `deliver`, in the order in which this is called."""
        self._found.put(found)

    def close(self) -> None:
        """Deliver what is there, and end."""
        self._found.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (found := self._found.get()) is not None:
            deliver(found)


def _take_all(found: Sequence[tuple[Stream, Sequence[Event]]]) -> None:
    for stream, events in found:
        stream.take(events)
