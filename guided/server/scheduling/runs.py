"""`Runs`: functions that run the model themselves, each in a thread; their passes take turns with everybody else's."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import TypeVar

from guided.lm import NOTHING, LanguageModel, Needs, Scores, Sequences, Tree
from guided.lm.wrapped import WrappedModel
from guided.server.scheduling.counters import Rate
from guided.server.scheduling.limits import SchedulerLimits
from guided.server.scheduling.refusals import Busy, Cancelled, Closing
from guided.server.scheduling.waiting import FairQueue

__all__ = ["Runs"]

T = TypeVar("T")


class _Run:
    """A function with its model, and what it gives."""

    def __init__(self, function: Callable[[LanguageModel], object], model: LanguageModel) -> None:
        self.cancelled = threading.Event()
        self.future: Future[object] = Future()
        self._function = function
        self._model = CancellableModel(model, self.cancelled)

    def __call__(self) -> None:
        if self.cancelled.is_set():
            self.future.set_exception(Cancelled())
            return
        try:
            self.future.set_result(self._function(self._model))
        except BaseException as error:
            self.future.set_exception(error)


class Runs:
    """Threads for functions, so many at once; the others wait, clients in turn."""

    def __init__(self, model: LanguageModel, limits: SchedulerLimits, rate: Rate) -> None:
        self._model = model
        self._limits = limits
        self._rate = rate
        self._lock = threading.Lock()
        self._queue: FairQueue[_Run] = FairQueue()
        self._now: list[_Run] = []
        self._closing = False

    @property
    def running(self) -> int:
        """Functions that run."""
        return len(self._now)

    @property
    def waiting(self) -> int:
        """Functions that wait."""
        return len(self._queue)

    async def run(self, function: Callable[[LanguageModel], T], client: str) -> T:
        """What the function gives, once it has had its turn."""
        run = _Run(function, self._model)
        with self._lock:
            if self._closing:
                raise Closing
            if len(self._queue) >= self._limits.waiting_runs:
                raise Busy(f"{len(self._queue)} runs wait, as many as may", self._rate.seconds_for(len(self._queue)))
            self._queue.put(client, run)
            self._start()
        try:
            return await asyncio.wrap_future(run.future)  # type: ignore[arg-type]
        finally:
            run.cancelled.set()

    async def close(self, grace: float) -> None:
        """Refuse what is new and what waits, let what runs end for so many seconds, and then cancel it."""
        with self._lock:
            self._closing = True
            now, waiting = list(self._now), [self._queue.take() for _ in range(len(self._queue))]
        for run in waiting:
            if run.future.set_running_or_notify_cancel():
                run.future.set_exception(Closing())
        if not now:
            return
        await asyncio.wait([asyncio.wrap_future(run.future) for run in now], timeout=grace)
        for run in now:
            run.cancelled.set()

    def _start(self) -> None:
        """Start what there is room for; the lock is held."""
        while len(self._queue) and len(self._now) < self._limits.runs:
            run = self._queue.take()
            if run.future.set_running_or_notify_cancel():
                self._now.append(run)
                threading.Thread(target=self._do, args=(run,), name="run", daemon=True).start()

    def _do(self, run: _Run) -> None:
        run()
        self._rate.ended()
        with self._lock:
            self._now.remove(run)
            self._start()


class CancellableModel(WrappedModel):
    """A model whose passes raise `Cancelled` once nobody waits for what they are made for."""

    def __init__(self, model: LanguageModel, cancelled: threading.Event) -> None:
        super().__init__(model)
        self._cancelled = cancelled

    @property
    def tokenizer(self) -> object | None:
        """The model's tokenizer."""
        return getattr(self.model, "tokenizer", None)

    def start(self, prompts: Sequence[Sequence[int]], needs: Needs = NOTHING) -> Sequences:
        """Sequences that begin with these prompts."""
        self.check()
        return _CancellableSequences(self.model.start(prompts, needs), self)

    def check(self) -> None:
        """Raise `Cancelled` if nobody waits any more."""
        if self._cancelled.is_set():
            raise Cancelled


class _CancellableSequences:
    """`guided.lm.Sequences` of such a model."""

    def __init__(self, sequences: Sequences, model: CancellableModel) -> None:
        self._sequences = sequences
        self._model = model

    def __len__(self) -> int:
        return len(self._sequences)

    def tokens(self, row: int) -> tuple[int, ...]:
        """The row's tokens."""
        return self._sequences.tokens(row)

    @property
    def last(self) -> Scores:
        """Scores after the last token of each row."""
        return self._sequences.last

    def extend(self, tokens: Sequence[Sequence[int]]) -> Sequence[Scores]:
        """Append tokens to each row."""
        self._model.check()
        return self._sequences.extend(tokens)

    def select(self, rows: Sequence[int]) -> None:
        """Row i becomes the old row ``rows[i]``."""
        self._sequences.select(rows)

    def crop(self, lengths: Sequence[int]) -> None:
        """Roll each row back to so many tokens."""
        self._sequences.crop(lengths)

    def extend_tree(self, trees: Sequence[Tree]) -> Sequence[Scores]:
        """Score every node of one draft tree a row."""
        self._model.check()
        return self._sequences.extend_tree(trees)

    def keep(self, paths: Sequence[Sequence[int]]) -> None:
        """Append the nodes of one path of each row's last tree."""
        self._sequences.keep(paths)

    def join(self, prompts: Sequence[Sequence[int]]) -> None:
        """New rows enter at the end."""
        self._model.check()
        self._sequences.join(prompts)
