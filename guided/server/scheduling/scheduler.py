"""`Scheduler`: many jobs by one model, which a thread of its own runs; what comes of them goes to their streams.

Jobs of the same steerers have a batch of their own, since theirs is another model; all batches take turns, step by
step.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

from guided.errors import GuidedError, LimitError, UnsupportedError, VocabularyError
from guided.hf.language_model import wrapped
from guided.hf.loading import LoadedModel
from guided.lm import LanguageModel
from guided.server.scheduling.compiler import is_ample
from guided.server.scheduling.counters import Counters, Rate
from guided.server.scheduling.events import Failed, Finished, Reason, Token
from guided.server.scheduling.growing import Growing
from guided.server.scheduling.handing_over import handing_over
from guided.server.scheduling.jobs import Job
from guided.server.scheduling.lane import Lane
from guided.server.scheduling.limits import SchedulerLimits
from guided.server.scheduling.masking import MaskFiller, Pending, PendingMasks
from guided.server.scheduling.refusals import Busy, Closing
from guided.server.scheduling.runs import Runs
from guided.server.scheduling.stream import Delivery, Stream
from guided.server.scheduling.waiting import FairQueue
from guided.serving.matcher import Matcher
from guided.steer import Stack

__all__ = ["Scheduler"]

T = TypeVar("T")

TRACED_PARAMETERS = 200_000_000
"""Of a model whose passes are recorded: to do so takes some twenty short ones, each of which reads all parameters, and
the larger the operations are the less they wait for the interpreter between them."""


class Scheduler:
    """Runs jobs on a model, as many at once as the limits say; `submit` is awaited in an event loop of any thread.

    Texts do not depend on what else runs, up to roundings of the model's own: a batch multiplies other matrices.
    """

    def __init__(self, model: LoadedModel, limits: SchedulerLimits | None = None) -> None:
        self.limits = limits or SchedulerLimits()
        self._vocabulary = model.vocabulary
        self._model = wrapped(model, eos_ids=model.vocabulary.eos_ids or None)
        if self._model.can.encoder:
            raise UnsupportedError(
                "models with an encoder are not served", remedy="Serve a decoder-only model, or call guided.generate."
            )
        positions = getattr(model.model.config.get_text_config(), "max_position_embeddings", None)
        room = min(self.limits.cached_tokens, positions or self.limits.cached_tokens)
        self._job_tokens = min(self.limits.job_tokens or room, room)
        on_processor = model.model.device.type == "cpu"
        if on_processor and sum(parameter.numel() for parameter in model.model.parameters()) <= TRACED_PARAMETERS:
            self._model.trace()
        self._prompt_tokens = self.limits.prompt_tokens or (128 if on_processor else 2048)
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._waiting: FairQueue[Growing] = FairQueue()
        self._closing = False
        self._ended = threading.Event()
        self._rate = Rate()
        self._reasons: Counter[str] = Counter()
        self._counted: Counter[str] = Counter()
        self._filler = MaskFiller()
        self._shared = Lane(self._model, self._filler)
        self._own: dict[tuple[int, ...], Lane] = {}
        """By their steerers, which the lane holds, so that no others come to have their ids."""
        self._grown: Sequence[Growing] = ()
        """Those that have drawn since the last pass."""
        self._most_rows = self.limits.rows
        self._delivery = Delivery()
        self._runs = Runs(self._model, self.limits, self._rate)
        self._thread = threading.Thread(target=self._work, name="scheduler", daemon=True)
        self._model.before_passes(self._begin_beside)
        self._thread.start()

    async def submit(self, job: Job) -> Stream:
        """Take a job, whose events come from the stream; a first mask that is not known is made in a thread before.

        Raises `Busy` where as many wait as may, `Closing` after `close`, `LimitError` for more tokens than a job may
        have and for a constraint of which no text fits, `VocabularyError` for one of another vocabulary.
        """
        self._check(job)
        with self._lock:
            self._check_room()
        matcher = None
        if job.constraint is not None and is_ample(job.constraint, job.max_new_tokens):
            matcher = Matcher(job.constraint, job.max_new_tokens)
        elif job.constraint is not None:
            # Neither the event loop waits for this mask, nor the thread that all texts grow in.
            matcher = await asyncio.to_thread(Matcher, job.constraint, job.max_new_tokens)
        growing = Growing(job, matcher, self._vocabulary, self._model.eos_ids, self._wake)
        with self._lock:
            self._check_room()
            self._waiting.put(job.client, growing)
        self._wake.set()
        return growing.stream

    def _check_room(self) -> None:
        """Raise `Closing` and `Busy`; the lock is held."""
        if self._closing:
            raise Closing
        if len(self._waiting) >= self.limits.waiting:
            raise Busy(
                f"{len(self._waiting)} jobs wait, as many as may", self._rate.seconds_for(len(self._waiting) // 4 + 1)
            )

    async def run(self, function: Callable[[LanguageModel], T], *, client: str = "") -> T:
        """What a function gives that runs the model itself, such as a sampler or a search; in a thread.

        The passes of the model that it gets take turns with the batch, and raise `Cancelled` once the task that waits
        here is cancelled.  Raises `Busy` and `Closing` as `submit` does.
        """
        return await self._runs.run(function, client)

    @property
    def counters(self) -> Counters:
        """What was done so far, and what is being done."""
        with self._lock:
            lanes = [self._shared, *self._own.values()]
            return Counters(
                growing=sum(map(len, lanes)), waiting=len(self._waiting), running=self._runs.running,
                waiting_runs=self._runs.waiting, tokens=self._counted["tokens"], steps=self._counted["steps"],
                prompt_tokens=self._counted["prompt_tokens"], cached_tokens=self._counted["cached_tokens"],
                ended=dict(self._reasons), short_of_memory=self._counted["short_of_memory"],
            )  # fmt: skip

    async def close(self, grace: float = 30.0) -> None:
        """Refuse what is new and what waits, let what grows end for so many seconds, and then cut it."""
        with self._lock:
            self._closing = True
        self._wake.set()
        await self._runs.close(grace)
        loop = asyncio.get_running_loop()
        if not await loop.run_in_executor(None, self._ended.wait, grace):
            for lane in (self._shared, *self._own.values()):
                for growing in lane.growing:
                    growing.stream.cancel()
            await loop.run_in_executor(None, self._ended.wait)

    def _check(self, job: Job) -> None:
        size = len(job.prompt) + job.max_new_tokens
        if size > self._job_tokens:
            raise LimitError(
                f"the prompt has {len(job.prompt)} tokens, and {job.max_new_tokens} more are asked for:"
                f" together a job may have {self._job_tokens}",
                where="max_new_tokens" if len(job.prompt) < self._job_tokens else "prompt",
                remedy="Shorten the prompt, or ask for fewer tokens.",
            )
        if job.alternatives > self.limits.alternatives:
            raise LimitError(
                f"{job.alternatives} alternatives are asked for, and there are at most {self.limits.alternatives}",
                where="alternatives",
                remedy="Ask for fewer.",
            )
        outside = [token for token in job.prompt if not 0 <= token < self._model.width]
        if outside:
            raise GuidedError(f"the model has no tokens {outside[:5]}", where="prompt", remedy="Use its tokenizer.")
        if job.constraint is not None and job.constraint.vocabulary != self._vocabulary:
            raise VocabularyError(
                "the constraint was compiled for another vocabulary", remedy="Compile it with the model's."
            )
        if job.draft is not None:
            raise UnsupportedError(
                "jobs of a scheduler take no drafts", where="draft", remedy="Use Scheduler.run with guided.generate."
            )

    def _work(self) -> None:
        """The thread: steps while there is anything to do, until the end."""
        try:
            while True:
                with handing_over():
                    while self._turn():
                        pass
                with self._lock:
                    if self._closing:
                        return
                    idle = not len(self._waiting)
                if idle:
                    self._wake.wait()
        finally:
            self._filler.close()
            self._delivery.close()
            self._ended.set()

    def _turn(self) -> bool:
        """Let in who may enter, and a step of every lane; False where no text grows."""
        self._wake.clear()
        self._admit()
        lanes = [lane for lane in (self._shared, *self._own.values()) if len(lane)]
        for lane in lanes:
            self._step(lane)
        with self._lock:
            self._own = {key: lane for key, lane in self._own.items() if len(lane)}
        return bool(lanes)

    def _step(self, lane: Lane) -> None:
        """One token more for every row of a lane.  Whatever goes wrong ends that lane's jobs, not the thread."""
        jobs = lane.growing
        try:
            for growing in jobs:
                reason = growing.must_end(self.limits.seconds)
                if reason is not None:
                    growing.cut(reason)
            drawn = lane.draw()
            self._grown = jobs
            lane.advance()
            lane.read_on(self._prompt_tokens)
        except Exception as error:
            self._give_up(lane, error)
        else:
            with self._lock:
                self._counted["tokens"] += drawn
                self._counted["steps"] += 1
            if lane.short_of_memory:
                self._most_rows = max(1, len(jobs) // 2)
                with self._lock:
                    self._counted["short_of_memory"] += lane.short_of_memory
                lane.short_of_memory = 0
        self._hand_out(jobs)

    def _begin_beside(self) -> None:
        """What is for other threads, when a pass begins: before that they would have the interpreter in its way."""
        if threading.current_thread() is self._thread:
            grown, self._grown = self._grown, ()
            self._hand_out(grown)
            self._filler.begin()

    def _give_up(self, lane: Lane, error: Exception) -> None:
        """End all jobs of a lane by an error that is none of theirs, and begin another lane."""
        failed = error if isinstance(error, GuidedError) else GuidedError(
            f"the model failed: {type(error).__name__}: {error}", remedy="Ask again; if it stays so, look at the log."
        )  # fmt: skip
        for growing in lane.growing:
            growing.fail(failed)
        self._hand_out(lane.growing)
        with self._lock:
            if lane is self._shared:
                self._shared = Lane(self._model, self._filler)
            else:
                self._own = {key: each for key, each in self._own.items() if each is not lane}

    def _hand_out(self, jobs: Sequence[Growing]) -> None:
        """Hand events to the streams, and count those that end a job."""
        found = [(growing, growing.events) for growing in jobs if growing.events]
        for growing, events in found:
            growing.events = []
            end = events[-1]
            if isinstance(end, Token):
                continue
            with self._lock:
                self._reasons["failed" if isinstance(end, Failed) else end.reason.name.lower()] += 1
                if isinstance(end, Finished):
                    self._counted["prompt_tokens"] += end.prompt_tokens
                    self._counted["cached_tokens"] += end.cached_tokens
            self._rate.ended()
        if found:
            self._delivery.put([(growing.stream, events) for growing, events in found])

    def _admit(self) -> None:
        """Let waiting jobs in while there is room, as many prompts at a time as may be read between two tokens."""
        entering: list[Growing] = []
        with self._lock:
            gone = self._waiting.drop(lambda growing: self._closing or growing.cancelled.is_set())
            growing = [each for lane in (self._shared, *self._own.values()) for each in lane.growing]
            reserved, rows, read = sum(each.reserved for each in growing), len(growing), 0
            if not rows:
                self._most_rows = self.limits.rows
            while (first := self._waiting.first()) is not None:
                size = len(first.job.prompt)
                if rows >= self._most_rows or reserved + first.reserved > self.limits.cached_tokens:
                    break
                if entering and read + size > self._prompt_tokens:
                    break
                entering.append(self._waiting.take())
                reserved, rows, read = reserved + first.reserved, rows + 1, read + size
        for each in gone:
            each.cut(Reason.CANCELLED) if each.cancelled.is_set() else each.fail(Closing())
        for each in entering:
            each.began = time.monotonic()
        self._enter(self._shared, [each for each in entering if not each.job.steer])
        steered: dict[Lane, list[Growing]] = {}
        for each in entering:
            if each.job.steer:
                try:
                    steered.setdefault(self._steered_lane(each.job.steer), []).append(each)
                except GuidedError as error:
                    each.fail(error)
        for lane, jobs in steered.items():
            self._enter(lane, jobs)
        self._hand_out([*gone, *entering])

    def _enter(self, lane: Lane, jobs: Sequence[Growing]) -> None:
        if not jobs:
            return
        try:
            lane.enter(jobs, self._prompt_tokens)
        except Exception as error:
            for growing in jobs:
                growing.fail(GuidedError(f"the prompt could not be read: {type(error).__name__}: {error}"))
            self._give_up(lane, error)

    def _steered_lane(self, stack: Stack) -> Lane:
        """The lane of all jobs of these steerers.  They speak after the masks, so that candidates are allowed tokens.

        Raises what the stack says where it does not fit the model.
        """
        key = tuple(id(steerer) for steerer in (stack.adaptive, *stack.steerers))
        found = self._own.get(key)
        if found is None:
            rows: dict[int, Pending] = {}
            pair = [] if stack.adaptive is None else [stack.adaptive]
            model = Stack([*pair, PendingMasks(rows), *stack.steerers]).over(self._model)
            found = Lane(model, self._filler, rows)
            with self._lock:
                self._own[key] = found
        return found
