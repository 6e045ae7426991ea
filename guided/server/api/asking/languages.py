"""`Languages`: the constraints of sources, compiled outside of the event loop and remembered by content."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

import guided
from guided.constraint.protocol import Constrains
from guided.errors import GuidedError, LimitError
from guided.server.api.asking.sources import Known, Source
from guided.vocab import Vocabulary

__all__ = ["Languages"]

REMEMBERED = 256
"""Constraints kept: as many as texts grow at once, four times over."""
THREADS = 2
"""One that is slow must not keep all others waiting; most of the work holds Python's lock anyway."""


class Languages:
    """Compiles each source once, also where several requests ask for it at the same time."""

    def __init__(self, vocabulary: Vocabulary, known: Known, seconds: float) -> None:
        self.vocabulary, self.known, self.seconds = vocabulary, known, seconds
        self._pool = ThreadPoolExecutor(THREADS, "guided-compile")
        self._found: OrderedDict[Source, Future[Constrains]] = OrderedDict()

    async def constraint(self, source: Source) -> Constrains:
        """The constraint of a source; raises `GuidedError`, `LimitError` where it takes too long."""
        future = self._found.get(source)
        if future is None:
            future = self._found[source] = self._pool.submit(self._compiled, source)
            while len(self._found) > REMEMBERED:
                self._found.popitem(last=False)
        self._found.move_to_end(source)
        try:
            return await asyncio.wait_for(asyncio.shield(asyncio.wrap_future(future)), self.seconds)
        except (TimeoutError, asyncio.TimeoutError):
            raise LimitError(
                f"the grammar was not compiled within {self.seconds:g} seconds",
                remedy="Ask again, when it may be ready, or make it smaller.",
            ) from None
        except GuidedError:
            # Refusals are as quick as they were; what they held is not kept.
            self._found.pop(source, None)
            raise

    def grammar(self, source: Source) -> guided.Grammar:
        """The grammar of a source, which is not compiled."""
        return source.grammar(self.known)

    def _compiled(self, source: Source) -> Constrains:
        constraint = guided.compile(source.grammar(self.known), self.vocabulary)
        # The first mask and the shortest text make most of the tables, which would else be made in the event loop.
        constraint.fill_mask(constraint.start, np.empty(self.vocabulary.n_words, np.uint32))
        constraint.shortest_completion(constraint.start)
        return constraint

    def close(self) -> None:
        """Start nothing more; what runs goes on to its end."""
        self._pool.shutdown(wait=False, cancel_futures=True)
