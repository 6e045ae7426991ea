"""Text potentials that are answered elsewhere: by coroutines (a web service as a reward), or in other processes.

Both ask in batches, wait no longer than they are told, and never guess: an answer that does not come is an error,
unless a weight for it was given.  What the answers are is the business of who gives them.
"""

from __future__ import annotations

import asyncio
import math
import multiprocessing
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from multiprocessing.pool import AsyncResult, Pool
from typing import Any

from guided.infer.errors import PotentialError
from guided.infer.potentials.text_potentials import TextPotential
from guided.vocab.vocabulary import Vocabulary

__all__ = ["AsyncTextScorer", "WorkerTextScorer"]

Scorer = Callable[[Sequence[str]], Iterable[float]]
Asking = Callable[[Sequence[str]], Awaitable[Iterable[float]]]

START = 120.0
"""Seconds for processes to start and import: a spawned one that loads torch takes 5 to 20 on a busy machine."""


class _Remote(TextPotential):
    """What both share: scores times ``scale``, batches, and what a missing answer weighs."""

    def __init__(self, vocabulary: Vocabulary, *, scale: float, batch: int, timeout: float, late: float | None) -> None:
        super().__init__(vocabulary)
        for name, value in (("scale", scale), ("batch", batch), ("timeout", timeout)):
            if not 0 < value < math.inf:
                raise ValueError(f"{name} is a positive number, not {value}")
        if late is not None and not late < math.inf:
            raise ValueError(f"late is a log weight below infinity, not {late}")
        self.scale, self.batch, self.timeout, self.late = scale, batch, timeout, late

    def _batches(self, texts: Sequence[str]) -> list[Sequence[str]]:
        return [texts[start : start + self.batch] for start in range(0, len(texts), self.batch)]

    def _missing(self, texts: Sequence[str]) -> list[float]:
        if self.late is None:
            raise PotentialError(
                f"{self!r} did not answer in {self.timeout:g} s about {len(texts)} texts, {texts[0]!r} among them",
                remedy="Raise timeout, lower batch, or say by late= what a text without an answer weighs.",
            )
        return [self.late] * len(texts)

    def _scaled(self, scores: Iterable[float], texts: Sequence[str]) -> list[float]:
        found = [self.scale * float(score) for score in scores]
        if len(found) != len(texts):
            raise PotentialError(f"{self!r} gave {len(found)} scores for {len(texts)} texts", remedy="One for each.")
        return found

    def close(self) -> None:
        """Let go of what answers; nothing can be asked any more."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncTextScorer(_Remote):
    """Scores by a coroutine: ``exp(scale * score)`` for each text, up to ``concurrency`` batches at a time.

    ``complete(texts)`` awaits a score for each of at most ``batch`` distinct texts, ``prefix(texts)`` likewise for
    texts that may go on (None: 0 for all).  Each batch gets ``timeout`` seconds once it is sent, and is then cancelled:
    `PotentialError`, or, where ``late`` is given, that log weight for its texts, which makes the target depend on the
    clock.  What the coroutine raises is raised as `PotentialError`.  The event loop is the potential's own, in a thread
    of its own, so that it may be used where another one runs; close it with `close`, or a ``with`` statement.

    >>> import guided
    >>> from guided import infer
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> async def lengths(texts):  # in earnest: ask a server
    ...     return [float(len(text)) for text in texts]
    >>> with infer.AsyncTextScorer(letters, lengths, scale=0.5) as scorer:
    ...     print(scorer.complete_each([b"ab", b"abba"]))
    [1.0, 2.0]
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        complete: Asking,
        prefix: Asking | None = None,
        *,
        scale: float = 1.0,
        batch: int = 32,
        concurrency: int = 8,
        timeout: float = 30.0,
        late: float | None = None,
    ) -> None:
        super().__init__(vocabulary, scale=scale, batch=batch, timeout=timeout, late=late)
        if concurrency < 1:
            raise ValueError(f"concurrency is at least 1, not {concurrency}")
        self._complete, self._prefix, self.concurrency = complete, prefix, concurrency
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="guided-scorer", daemon=True)
        self._thread.start()

    def content(self) -> Any:
        """Both functions and the scale."""
        return (self.vocabulary, self._complete, self._prefix, self.scale, self.late)

    def weights_of_prefixes(self, texts: Sequence[str]) -> list[float]:
        """Scaled scores, or 0 without a scorer of prefixes."""
        return [0.0] * len(texts) if self._prefix is None else self._asked(self._prefix, texts)

    def weights_of_texts(self, texts: Sequence[str]) -> list[float]:
        """Scaled scores."""
        return self._asked(self._complete, texts)

    def _asked(self, ask: Asking, texts: Sequence[str]) -> list[float]:
        if self._loop.is_closed():
            raise PotentialError(f"{self!r} is closed", remedy="Make another.")
        return asyncio.run_coroutine_threadsafe(self._all(ask, texts), self._loop).result()

    async def _all(self, ask: Asking, texts: Sequence[str]) -> list[float]:
        gate = asyncio.Semaphore(self.concurrency)

        async def one(part: Sequence[str]) -> list[float]:
            async with gate:
                try:
                    scores = await asyncio.wait_for(_awaited(ask, part), self.timeout)
                except TimeoutError:
                    return self._missing(part)
                except _AnswerError as error:
                    raise PotentialError(
                        f"{self!r} failed: {error.__cause__!r}", remedy="Look at what answers."
                    ) from error.__cause__
                return self._scaled(scores, part)

        tasks = [asyncio.ensure_future(one(part)) for part in self._batches(texts)]
        try:
            return [value for values in await asyncio.gather(*tasks) for value in values]
        finally:
            for task in tasks:
                task.cancel()

    def close(self) -> None:
        """End the event loop; what is under way is cancelled."""
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __repr__(self) -> str:
        return f"<AsyncTextScorer {getattr(self._complete, '__qualname__', type(self._complete).__qualname__)}>"


class _AnswerError(Exception):
    """What a coroutine raised, a time-out of its own included: not to be taken for ours."""


async def _awaited(ask: Asking, texts: Sequence[str]) -> Iterable[float]:
    try:
        return await ask(texts)
    except Exception as error:
        raise _AnswerError from error


class WorkerTextScorer(_Remote):
    """Scores by a function in other processes: for models that hold the interpreter, and for code that may hang or die.

    ``complete`` and ``prefix`` are functions of a module, as processes get them by name; ``processes`` of them are
    started afresh (no fork of threads that hold locks), and each is handed a batch, which gets ``timeout`` seconds.
    Where one does not answer the processes are ended and others started, and it is a `PotentialError`.  With ``late``
    it is that log weight for the texts of the batch, which makes the target depend on the clock.  A process is no
    sandbox: whoever executes generated code must confine it.

    >>> import guided
    >>> from functools import partial
    >>> from guided import infer
    >>> letters = guided.Vocabulary.from_tokens([b"a", b"b", None], eos_ids=[2])
    >>> with infer.WorkerTextScorer(letters, partial(map, len), scale=0.5, processes=2) as scorer:
    ...     scorer.prefix([0, 1])  # no function for prefixes: 0, and no process is started yet
    0.0
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        complete: Scorer,
        prefix: Scorer | None = None,
        *,
        scale: float = 1.0,
        batch: int = 32,
        processes: int = 1,
        timeout: float = 30.0,
        late: float | None = None,
    ) -> None:
        super().__init__(vocabulary, scale=scale, batch=batch, timeout=timeout, late=late)
        if processes < 1:
            raise ValueError(f"processes is at least 1, not {processes}")
        self._complete, self._prefix, self.processes = complete, prefix, processes
        self._pool: Pool | None = None
        self._closed = False

    def content(self) -> Any:
        """Both functions and the scale."""
        return (self.vocabulary, self._complete, self._prefix, self.scale, self.late)

    def weights_of_prefixes(self, texts: Sequence[str]) -> list[float]:
        """Scaled scores, or 0 without a scorer of prefixes."""
        return [0.0] * len(texts) if self._prefix is None else self._asked(self._prefix, texts)

    def weights_of_texts(self, texts: Sequence[str]) -> list[float]:
        """Scaled scores."""
        return self._asked(self._complete, texts)

    def _asked(self, score: Scorer, texts: Sequence[str]) -> list[float]:
        found: list[float] = []
        parts = self._batches(texts)
        for start in range(0, len(parts), self.processes):
            # No more than there are processes: a batch does not wait behind another one that hangs.
            found += self._round(score, parts[start : start + self.processes])
        return found

    def _round(self, score: Scorer, parts: Sequence[Sequence[str]]) -> list[float]:
        pool = self._started()
        given: list[AsyncResult[list[float]]] = [pool.apply_async(_scores, (score, list(part))) for part in parts]
        found: list[float] = []
        late = False
        try:
            for part, answer in zip(parts, given, strict=True):
                try:
                    # One wait for all of them: what came while another was waited for is there at once.
                    scores = answer.get(0.0 if late else self.timeout)
                except multiprocessing.TimeoutError:
                    late = True
                    found += self._missing(part)
                except Exception as error:
                    raise PotentialError(f"{self!r} failed: {error!r}", remedy="Look at what answers.") from error
                else:
                    found += self._scaled(scores, part)
        finally:
            if late:
                self._end()
        return found

    def _started(self) -> Pool:
        if self._closed:
            raise PotentialError(f"{self!r} is closed", remedy="Make another.")
        if self._pool is None:
            self._pool = multiprocessing.get_context("spawn").Pool(self.processes)
            try:
                self._pool.apply_async(_scores, (_nothing, [])).get(START)
            except multiprocessing.TimeoutError:
                self._end()
                raise PotentialError(
                    f"{self!r}: no process started in {START:g} s",
                    remedy="Scripts need `if __name__ == '__main__':`, as processes import them.",
                ) from None
        return self._pool

    def _end(self) -> None:
        if self._pool is not None:
            self._pool.terminate()
            self._pool.join()
            self._pool = None

    def close(self) -> None:
        """End the processes."""
        self._closed = True
        self._end()

    def __repr__(self) -> str:
        return f"<WorkerTextScorer {getattr(self._complete, '__qualname__', type(self._complete).__qualname__)}>"


def _scores(score: Scorer, texts: Sequence[str]) -> list[float]:
    return [float(value) for value in score(texts)]


def _nothing(texts: Sequence[str]) -> list[float]:
    return []
