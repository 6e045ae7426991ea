"""`Compiler`: what requests ask for, compiled in threads beside the event loop and kept by content.

Work is counted (`guided.Limits`), so that a hostile grammar ends soon, and most of it runs without the interpreter's
lock.  A constraint comes with its first mask made, priced, and a shortest text that is long: what is dear about a
grammar is found here, and not in the batch.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Protocol

import numpy as np

from guided.constraint.compile import compile as compile_grammar
from guided.constraint.constraint import Constraint
from guided.constraint.limits import Limits
from guided.constraint.protocol import Constrains
from guided.errors import GuidedError, LimitError
from guided.grammar.ir import Grammar
from guided.kernels.loading import load_compiled
from guided.server.scheduling.counters import Rate
from guided.server.scheduling.handing_over import handing_over
from guided.server.scheduling.refusals import Busy, Closing
from guided.server.scheduling.waiting import FairQueue
from guided.serving.compilation import WARM, read_through
from guided.vocab import Vocabulary

__all__ = ["Asked", "Compiler", "CompilerLimits", "is_ample"]

SHORT = 64
"""Tokens within which a text surely ends whose shortest is not looked for here: that would take 3 of the 6 ms of an
everyday schema."""


def is_ample(constraint: Constrains, budget: int) -> bool:
    """Is a whole text known to fit in so many tokens?  False also where nobody knows without a search."""
    return isinstance(constraint, Constraint) and constraint.is_ample(constraint.start, budget)


FAR = 1 << 30
"""Tokens that are more than any text is bounded by: a mask within them is a mask with its price."""


class Asked(Protocol):
    """What is compiled, such as a `guided.serving.Request`: equal ones have equal languages."""

    def grammar(self, vocabulary: Vocabulary | None = None) -> Grammar:
        """The grammar; raises `GuidedError` for what is none."""

    def __hash__(self) -> int: ...


@dataclass(frozen=True)
class CompilerLimits:
    """How much a compiler does at once, and what it keeps."""

    threads: int = 2
    waiting: int = 128
    """Requests that wait; what finds no room to wait is `Busy`."""
    seconds: float | None = 20.0
    """How long a request may wait and be compiled; its work goes on to its counted limits, and is kept.  It begins when
    the kernels are there, which are compiled once on a machine."""
    remembered: int = 512
    """Requests whose constraint or error is kept, those used last."""
    work: Limits | None = None
    """Of each grammar; None: the default."""


class Compiler:
    """Compiles requests for a vocabulary; for event loops, from any thread."""

    def __init__(self, vocabulary: Vocabulary, limits: CompilerLimits | None = None) -> None:
        self.limits = limits or CompilerLimits()
        self._vocabulary = vocabulary
        self._lock = threading.Condition()
        self._queue: FairQueue[tuple[Asked, Future[Constrains]]] = FairQueue()
        self._known: OrderedDict[Asked, Future[Constrains]] = OrderedDict()
        self._rate = Rate()
        self._closing = False
        self._ready: Future[None] = Future()
        self._threads = [
            threading.Thread(target=self._work, name=f"compiler-{number}", daemon=True)
            for number in range(self.limits.threads)
        ]
        for thread in self._threads:
            thread.start()

    async def compiled(self, request: Asked, *, client: str = "") -> Constrains:
        """The constraint of a request, one object for equal ones.

        Raises what reading and compiling raise, `LimitError` where that takes too long, `Busy` and `Closing`.
        """
        with self._lock:
            if self._closing:
                raise Closing
            future = self._known.get(request)
            if future is None:
                if len(self._queue) >= self.limits.waiting:
                    raise Busy(
                        f"{len(self._queue)} grammars wait to be compiled, as many as may",
                        self._rate.seconds_for(len(self._queue)),
                    )
                future = self._known[request] = Future()
                self._queue.put(client, (request, future))
                self._lock.notify()
            self._known.move_to_end(request)
            self._forget()
        # Others may wait for the same future, and the next request will: it is not cancelled with this one.
        waiting = asyncio.shield(asyncio.wrap_future(future))
        if not self._ready.done():
            await asyncio.wait((waiting, asyncio.wrap_future(self._ready)), return_when=asyncio.FIRST_COMPLETED)
        try:
            return await asyncio.wait_for(waiting, self.limits.seconds)
        except asyncio.TimeoutError:
            raise LimitError(
                f"the grammar was not compiled within {self.limits.seconds} seconds",
                remedy="Ask again later, or simplify the grammar.",
            ) from None

    def close(self) -> None:
        """Refuse what is new and what waits; the threads end after what they compile now."""
        with self._lock:
            self._closing = True
            waiting = [self._queue.take() for _ in range(len(self._queue))]
            self._lock.notify_all()
        for _, future in waiting:
            future.set_exception(Closing())

    def _forget(self) -> None:
        """Drop the oldest requests that are done; the lock is held."""
        surplus = len(self._known) - self.limits.remembered
        if surplus > 0:
            # Those used longest ago come first, and few of them are not done: to ask all took 1.5 ms a request.
            done = (request for request, future in self._known.items() if future.done())
            for request in list(islice(done, surplus)):
                del self._known[request]

    def _work(self) -> None:
        try:
            _load_kernels()
        finally:
            with self._lock:
                if not self._ready.done():
                    self._ready.set_result(None)
        while True:
            with self._lock:
                while not len(self._queue):
                    if self._closing:
                        return
                    self._lock.wait()
                request, future = self._queue.take()
            try:
                with handing_over():
                    constraint = self._made(request)
                future.set_result(constraint)
            except GuidedError as error:
                future.set_exception(error)
            except Exception as error:  # A bug, or no memory: this request's matter, and not kept.
                with self._lock:
                    self._known.pop(request, None)
                future.set_exception(LimitError(f"the grammar could not be compiled: {type(error).__name__}: {error}"))
            self._rate.ended()

    def _made(self, request: Asked) -> Constrains:
        grammar = request.grammar(self._vocabulary)
        constraint: Constrains = compile_grammar(grammar, self._vocabulary, limits=self.limits.work)
        row = np.empty(self._vocabulary.n_words, np.uint32)
        if isinstance(constraint, Constraint):
            constraint.fill_budget_mask(constraint.start, row, FAR)
        else:
            constraint.fill_mask(constraint.start, row)
        if not is_ample(constraint, SHORT):
            constraint.shortest_completion(constraint.start)
        return constraint


@lru_cache(maxsize=1)
def _load_kernels() -> None:
    """Have Numba load the kernels, or compile them on a machine's first day, half a minute; then 10 ms a process."""
    load_compiled()
    vocabulary = Vocabulary.from_tokens([*(bytes([byte]) for byte in range(256)), None], eos_ids=[256])
    read_through(compile_grammar(WARM.grammar(vocabulary), vocabulary))
