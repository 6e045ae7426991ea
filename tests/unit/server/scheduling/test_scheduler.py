"""A scheduler's texts: those of `guided.generate`, the same alone and in company, each with its evidence."""

from __future__ import annotations

import asyncio
import json
import math
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import cache
from typing import Any, TypeVar, cast

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import guided
from guided.constraint.protocol import Constrains
from guided.errors import GuidedError, LimitError, VocabularyError
from guided.hf import LoadedModel, generate, load
from guided.hf.cache.traced import TracedPasses
from guided.hf.language_model import TransformersModel, wrapped
from guided.lm import next_logits
from guided.server.scheduling import (
    Busy,
    Closing,
    Failed,
    Finished,
    Job,
    Reason,
    Scheduler,
    SchedulerLimits,
    Token,
)
from guided.server.scheduling.lane import Lane
from tests.amounts import ALL, some
from tests.tolerances import PASSES

T = TypeVar("T")


@cache
def loaded() -> LoadedModel:
    return load()


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    """One for all files of schedulers: its passes are recorded once."""
    return loaded()


def schema(number: int) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            f"name{number}": {"type": "string", "maxLength": 8},
            "age": {"type": "integer", "minimum": number, "maximum": number + 50},
        },
        "required": [f"name{number}", "age"],
        "additionalProperties": False,
    }


def job(model: LoadedModel, number: int, **more: Any) -> Job:
    prompt = tuple(model.tokenizer(f"Extract person {number}: John, aged {number}")["input_ids"])
    constraint = guided.compile(guided.json_schema(schema(number)), model.vocabulary)
    return replace(Job(prompt, constraint, 40, temperature=0.0), **more)


def serve(model: LoadedModel, work: Callable[[Scheduler], Awaitable[T]], limits: SchedulerLimits | None = None) -> T:
    """What ``work`` gives with a scheduler, which is closed at the end and leaves no thread."""

    async def run() -> T:
        scheduler = Scheduler(model, limits)
        try:
            return await asyncio.wait_for(work(scheduler), 120)
        finally:
            await scheduler.close(0)
            assert not scheduler._thread.is_alive() or scheduler._ended.is_set()

    return asyncio.run(run())


async def read(scheduler: Scheduler, job: Job) -> tuple[list[Token], Finished]:
    """All tokens of a job that ends well."""
    found = [event async for event in await scheduler.submit(job)]
    assert isinstance(found[-1], Finished), found[-1]
    assert all(isinstance(event, Token) for event in found[:-1])
    tokens = [event for event in found if isinstance(event, Token)]
    assert "".join(token.text for token in tokens) + found[-1].tail == found[-1].text
    return tokens, found[-1]


def together(
    model: LoadedModel, jobs: list[Job], limits: SchedulerLimits | None = None
) -> list[tuple[list[Token], Finished]]:
    async def work(scheduler: Scheduler) -> list[tuple[list[Token], Finished]]:
        return await asyncio.gather(*[read(scheduler, job) for job in jobs])

    return serve(model, work, limits)


def test_greedy_texts_are_those_of_generate(model: LoadedModel) -> None:
    jobs = [job(model, number) for number in range(some(12, 2) + 1)]
    jobs[5] = replace(jobs[5], constraint=None, max_new_tokens=12)
    found = together(model, jobs, SchedulerLimits(rows=5, prompt_tokens=7))
    for each, (tokens, end) in zip(jobs, found, strict=True):
        [wanted] = generate(model, [list(each.prompt)], each.constraint, max_new_tokens=each.max_new_tokens)
        ids = [token.id for token in tokens if token.id not in model.vocabulary.eos_ids]
        assert (tuple(ids), end.text, end.whole) == (wanted.token_ids, wanted.text, wanted.finished)
        assert end.completion_tokens == len(tokens) and end.prompt_tokens == len(each.prompt)


def test_recorded_passes_change_no_token(model: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [job(model, number, temperature=number / 4, seed=number) for number in range(6)]
    limits = SchedulerLimits(rows=4, prompt_tokens=7)
    found = together(model, jobs, limits)
    assert TracedPasses.of(model.model).trusted == (True, True), TracedPasses.of(model.model).refused
    monkeypatch.setattr(TransformersModel, "trace", lambda _: None)
    for (tokens, end), (others, other) in zip(found, together(model, jobs, limits), strict=True):
        assert ([token.id for token in tokens], end) == ([token.id for token in others], other)
        for token, same in zip(tokens, others, strict=True):
            assert token.model_logprob == pytest.approx(same.model_logprob, abs=PASSES)


def test_drawn_texts_are_the_same_alone_and_in_company(model: LoadedModel) -> None:
    jobs = [job(model, number, temperature=0.5 + number / 4, seed=number) for number in range(10 if ALL else 6)]
    jobs[3] = replace(jobs[3], top_k=5)
    jobs[4] = replace(jobs[4], top_p=0.8)
    alone = [together(model, [each])[0] for each in jobs[2:5]]
    company = together(model, jobs)[2:5]
    assert [[token.id for token in tokens] for tokens, _ in alone] == [
        [token.id for token in tokens] for tokens, _ in company
    ]
    # And another seed gives another text, or nothing was drawn.
    others = together(model, [replace(jobs[2], seed=seed) for seed in range(100, 104 if ALL else 102)])
    assert len({end.text for _, end in others}) > 1


def test_each_token_carries_both_laws(model: LoadedModel) -> None:
    asked = job(model, 7, temperature=0.8, top_k=20, seed=3, alternatives=4)
    [(tokens, _)] = together(model, [asked])
    constraint = asked.constraint
    assert constraint is not None
    lm, text, state = wrapped(model), list(asked.prompt), constraint.start
    forbidden_seen = False
    for number, token in enumerate(tokens):
        logits = next_logits(lm, [text])[0].double()
        own = logits.log_softmax(-1)
        row = torch.zeros(constraint.vocabulary.n_words, dtype=torch.int32).numpy().view("uint32")
        constraint.fill_budget_mask(state, row, asked.max_new_tokens - number)
        allowed = torch.from_numpy(guided.tokenset.flags(row, logits.numel()).copy())
        scaled = logits.masked_fill(~allowed, -math.inf) / 0.8
        scaled = scaled.masked_fill(scaled < scaled.topk(20).values[-1], -math.inf)
        law = scaled.log_softmax(-1)
        assert token.model_logprob == pytest.approx(float(own[token.id]), abs=PASSES)
        assert token.logprob == pytest.approx(float(law[token.id]), abs=PASSES)
        assert token.removed == pytest.approx(float(own[~allowed].exp().sum()), abs=PASSES)
        for other in token.alternatives:
            assert other.allowed == bool(allowed[other.id])
            assert other.model_logprob == pytest.approx(float(own[other.id]), abs=PASSES)
            assert other.logprob == pytest.approx(float(law[other.id]), abs=PASSES)
        listed = {other.id for other in token.alternatives}
        assert set(own.topk(4).indices.tolist()) <= listed and int(law.argmax()) in listed
        forbidden_seen |= any(not other.allowed for other in token.alternatives)
        text.append(token.id)
        state = constraint.advance(state, token.id)
    assert forbidden_seen


def test_stop_strings_end_the_text_before_them(model: LoadedModel) -> None:
    free = job(model, 2)
    [(_, end)] = together(model, [free])
    at = end.text.index('"age"')
    [(tokens, cut)] = together(model, [replace(free, stop=("nothing", '"age"'))])
    assert (cut.text, cut.stop, cut.reason, cut.whole) == (end.text[:at], '"age"', Reason.STOP, False)
    assert len(tokens) < end.completion_tokens


def test_texts_are_whole_within_their_budget(model: LoadedModel) -> None:
    asked = job(model, 1)
    constraint = asked.constraint
    assert constraint is not None
    least = constraint.shortest_completion(constraint.start) + 1
    for most in (least, least + 1, least + 5):
        [(tokens, end)] = together(model, [replace(asked, max_new_tokens=most, temperature=1.0, seed=most)])
        assert end.whole and len(tokens) <= most
        json.loads(end.text)
    with pytest.raises(LimitError):
        together(model, [replace(asked, max_new_tokens=least - 1)])


def test_common_beginnings_are_computed_once(model: LoadedModel) -> None:
    asked = job(model, 3)
    calls = wrapped(model).calls
    before = calls.positions
    found = together(model, [replace(asked, max_new_tokens=20, temperature=1.0, seed=seed) for seed in range(6)])
    drawn = sum(end.completion_tokens for _, end in found)
    assert calls.positions - before <= len(asked.prompt) + drawn
    assert sorted(end.cached_tokens for _, end in found) == [0] + 5 * [len(asked.prompt)]


def test_a_cancelled_job_ends_before_its_next_token(model: LoadedModel) -> None:
    async def work(scheduler: Scheduler) -> None:
        long = job(model, 4, constraint=None, max_new_tokens=500, temperature=1.0, seed=1)
        async with await scheduler.submit(long) as stream, await scheduler.submit(replace(long, seed=2)) as other:
            seen = [await anext(stream) for _ in range(3)]
            assert all(isinstance(event, Token) for event in seen)
            stream.cancel()
            rest = [event async for event in stream]
            assert isinstance(rest[-1], Finished) and rest[-1].reason is Reason.CANCELLED
            assert len(rest) < 20
            assert isinstance(await anext(other), Token)
        for _ in range(100):
            if not scheduler.counters.growing:
                break
            await asyncio.sleep(0.05)
        assert scheduler.counters.growing == 0

    serve(model, work)


def test_clients_take_turns(model: LoadedModel) -> None:
    async def work(scheduler: Scheduler) -> list[str]:
        order: list[str] = []

        async def one(client: str) -> None:
            await read(scheduler, job(model, 5, client=client, max_new_tokens=16))
            order.append(client)

        await asyncio.gather(*[one("many") for _ in range(5)], one("few"))
        return order

    assert serve(model, work, SchedulerLimits(rows=1)).index("few") <= 2


def test_what_finds_no_room_is_busy_and_what_is_too_long_is_refused(model: LoadedModel) -> None:
    async def work(scheduler: Scheduler) -> None:
        asked = job(model, 6)
        streams = [await scheduler.submit(asked) for _ in range(4)]
        with pytest.raises(Busy) as busy:
            [await scheduler.submit(asked) for _ in range(3)]
        assert 1 <= busy.value.retry_after <= 600
        for stream in streams:
            assert isinstance([event async for event in stream][-1], Finished)
        with pytest.raises(LimitError, match="100 more"):
            await scheduler.submit(replace(asked, max_new_tokens=100))
        with pytest.raises(LimitError, match="alternatives"):
            await scheduler.submit(replace(asked, alternatives=3))
        with pytest.raises(GuidedError, match="no tokens"):
            await scheduler.submit(replace(asked, prompt=(1, 999_999)))
        other = guided.Vocabulary.from_tokens([b"a", None], eos_ids=[1])
        with pytest.raises(VocabularyError):
            await scheduler.submit(replace(asked, constraint=guided.compile(guided.regex("a"), other)))

    serve(model, work, SchedulerLimits(rows=2, waiting=4, job_tokens=90, alternatives=2))


def test_closing_lets_running_jobs_end_and_refuses_others(model: LoadedModel) -> None:
    async def work(scheduler: Scheduler) -> None:
        running = asyncio.create_task(read(scheduler, job(model, 1)))
        while not scheduler.counters.growing:
            await asyncio.sleep(0.01)
        waiting = await scheduler.submit(job(model, 2))
        closing = asyncio.create_task(scheduler.close(30))
        await asyncio.sleep(0)
        with pytest.raises(Closing):
            await scheduler.submit(job(model, 3))
        with pytest.raises(Closing):
            await scheduler.run(lambda model: 1)
        await closing
        _, end = await running
        assert end.whole
        last = [event async for event in waiting][-1]
        assert isinstance(last, Failed) and isinstance(last.error, Closing)

    serve(model, work, SchedulerLimits(rows=1))


def test_time_cuts_a_text(model: LoadedModel) -> None:
    asked = job(model, 4, constraint=None, max_new_tokens=900, temperature=1.0, seed=1)
    [(_, end)] = together(model, [asked], SchedulerLimits(seconds=0.05))
    assert end.reason is Reason.TIME and not end.whole


def test_a_first_mask_that_takes_long_is_waited_for_by_its_job_alone(model: LoadedModel) -> None:
    class Slow:
        """A constraint of which the first mask within a budget takes until somebody says so."""

        def __init__(self, constraint: Constrains) -> None:
            self.constraint = constraint

        def __getattr__(self, name: str) -> object:
            return getattr(self.constraint, name)

        def fill_budget_mask(self, state: int, row: NDArray[np.uint32], budget: int) -> None:
            begun.set()
            assert go.wait(20)
            self.constraint.fill_budget_mask(state, row, budget)

    begun, go = threading.Event(), threading.Event()

    async def work(scheduler: Scheduler) -> None:
        asked = job(model, 3)
        slow = asyncio.create_task(
            scheduler.submit(replace(asked, constraint=cast(Constrains, Slow(asked.constraint))))
        )
        assert await asyncio.to_thread(begun.wait, 20)
        # The event loop and the batch go on.
        assert isinstance((await read(scheduler, asked))[-1], Finished)
        assert not slow.done()
        go.set()
        events = [event async for event in await slow]
        assert isinstance(events[-1], Finished)

    serve(model, work)


def test_a_token_comes_while_the_next_pass_runs(model: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is handed out when that begins, and not once it is over."""
    run, advance, came, late = TracedPasses.run, Lane.advance, threading.Event(), list[int]()
    growing = threading.Event()

    def waiting(self: TracedPasses, *arguments: Any) -> Any:
        *given, begin = arguments

        def begun() -> None:
            begin()
            if growing.is_set() and not came.wait(20):
                late.append(1)

        return run(self, *given, begun)

    def advancing(self: Lane) -> None:
        growing.set()
        advance(self)

    async def work(scheduler: Scheduler) -> None:
        monkeypatch.setattr(TracedPasses, "run", waiting)
        monkeypatch.setattr(Lane, "advance", advancing)
        async with await scheduler.submit(job(model, 1)) as stream:
            async for _ in stream:
                came.set()
                break

    serve(model, work)
    assert growing.is_set() and not late
