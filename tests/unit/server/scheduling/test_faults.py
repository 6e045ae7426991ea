"""What goes wrong ends what it must, by name, and nothing else; and what runs the model itself takes turns."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch

import guided
from guided.hf import LoadedModel, generate, load
from guided.hf.cache.sequences import CachedSequences
from guided.hf.language_model import TransformersModel
from guided.infer import smc
from guided.server.scheduling import (
    Busy,
    Cancelled,
    Event,
    Failed,
    Finished,
    Job,
    Scheduler,
    SchedulerLimits,
    Token,
    masking,
)
from guided.serving.matcher import Matcher
from guided.steer import Contrastive, Declaration, Seen, Stack
from tests.amounts import ALL
from tests.unit.server.scheduling.test_scheduler import job, model, read, serve, together

__all__ = ["model"]


async def events(scheduler: Scheduler, job: Job) -> list[Event]:
    return [event async for event in await scheduler.submit(job)]


def test_too_little_memory_halves_the_batch(model: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [job(model, number) for number in range(9 if ALL else 5)]
    wanted = [end.text for _, end in together(model, jobs)]
    extend, passes = CachedSequences.extend, list[int]()

    def small(self: CachedSequences, tokens: Any) -> Any:
        passes.append(sum(1 for new in tokens if new))
        if passes[-1] > 2:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate")
        return extend(self, tokens)

    monkeypatch.setattr(CachedSequences, "extend", small)

    async def work(scheduler: Scheduler) -> list[str]:
        found = await asyncio.gather(*[read(scheduler, each) for each in jobs])
        assert scheduler.counters.short_of_memory > 0
        return [end.text for _, end in found]

    assert serve(model, work) == wanted
    assert max(passes) > 2


def test_a_job_that_has_no_memory_even_alone_fails_by_name(model: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    extend = CachedSequences.extend

    def none(self: CachedSequences, tokens: Any) -> Any:
        if any(len(self.tokens(row)) > 60 and new for row, new in enumerate(tokens)):
            raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried")
        return extend(self, tokens)

    monkeypatch.setattr(CachedSequences, "extend", none)
    long = job(model, 1, constraint=None, max_new_tokens=200, temperature=1.0, seed=1)

    async def work(scheduler: Scheduler) -> None:
        found, (_, end) = await asyncio.gather(events(scheduler, long), read(scheduler, job(model, 2)))
        assert isinstance(found[-1], Failed) and "too little memory" in str(found[-1].error)
        assert end.whole
        assert (await read(scheduler, job(model, 3)))[1].whole

    serve(model, work)


def test_an_error_of_the_model_ends_its_batch_and_not_the_scheduler(
    model: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    extend, broken = CachedSequences.extend, threading.Event()

    def failing(self: CachedSequences, tokens: Any) -> Any:
        if broken.is_set():
            raise RuntimeError("index out of range in self")
        return extend(self, tokens)

    monkeypatch.setattr(CachedSequences, "extend", failing)

    async def work(scheduler: Scheduler) -> None:
        broken.set()
        for found in await asyncio.gather(*[events(scheduler, job(model, number)) for number in range(3)]):
            assert isinstance(found[-1], Failed) and "index out of range" in str(found[-1].error)
        broken.clear()
        assert (await read(scheduler, job(model, 1)))[1].whole

    serve(model, work)


def test_scores_that_are_no_numbers_end_their_own_row(model: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    from guided.server.scheduling import lane

    choose = lane.choose

    def spoiled(logits: torch.Tensor, masks: Any, jobs: Any, *rest: Any) -> Any:
        for row, each in enumerate(jobs):
            if each.client == "spoiled":
                logits[row, 5] = torch.nan
        return choose(logits, masks, jobs, *rest)

    monkeypatch.setattr(lane, "choose", spoiled)

    async def work(scheduler: Scheduler) -> None:
        found, (_, end) = await asyncio.gather(
            events(scheduler, job(model, 1, client="spoiled")), read(scheduler, job(model, 2))
        )
        assert isinstance(found[0], Failed) and "not numbers" in str(found[0].error)
        assert end.whole

    serve(model, work)


def test_a_slow_mask_holds_up_its_own_row_alone(model: LoadedModel) -> None:
    slow = job(model, 1)
    held = threading.Event()
    inner = slow.constraint
    assert inner is not None

    class Slow:
        """The constraint, whose masks after the first wait."""

        def __getattr__(self, name: str) -> Any:
            return getattr(inner, name)

        vocabulary, start, end = inner.vocabulary, inner.start, inner.end

        def fill_budget_mask(self, state: int, row: Any, budget: int) -> None:
            if state != inner.start:
                assert held.wait(60)
            inner.fill_budget_mask(state, row, budget)

    async def work(scheduler: Scheduler) -> None:
        first = asyncio.create_task(read(scheduler, replace(slow, constraint=Slow())))
        second = asyncio.create_task(read(scheduler, replace(slow, constraint=Slow())))
        others = await asyncio.gather(*[read(scheduler, job(model, number)) for number in range(2, 6)])
        assert all(end.whole for _, end in others)
        assert not first.done() and not second.done()
        held.set()
        assert (await first)[1].whole and (await second)[1].whole

    serve(model, work)


def test_threads_may_submit_and_cancel_from_loops_of_their_own(model: LoadedModel) -> None:
    async def work(scheduler: Scheduler) -> None:
        ends: list[Finished] = []

        def other(number: int) -> None:
            async def one() -> None:
                _, end = await read(scheduler, job(model, number, client=str(number)))
                ends.append(end)
                async with await scheduler.submit(job(model, number)) as stream:
                    await anext(stream)

            asyncio.run(one())

        threads = [threading.Thread(target=other, args=(number,)) for number in range(5)]
        for thread in threads:
            thread.start()
        await asyncio.get_running_loop().run_in_executor(None, lambda: [thread.join(60) for thread in threads])
        assert len(ends) == 5 and all(end.whole for end in ends)

    serve(model, work)


def test_a_sampler_takes_turns_with_the_batch(model: LoadedModel) -> None:
    asked = job(model, 1)
    prompt = list(asked.prompt)
    alone = generate(model, prompt, asked.constraint, sampler=smc, n=4, seed=5, max_new_tokens=40)

    async def work(scheduler: Scheduler) -> None:
        def sample(model: Any) -> Any:
            return generate(model, prompt, asked.constraint, sampler=smc, n=4, seed=5, max_new_tokens=40)

        found, *others = await asyncio.gather(
            scheduler.run(sample), *[read(scheduler, job(model, number)) for number in range(2, 5)]
        )
        assert [each.text for each in found] == [each.text for each in alone]
        assert all(end.whole for _, end in others)

    serve(model, work)


def test_a_run_that_nobody_waits_for_stops_at_its_next_pass(model: LoadedModel) -> None:
    stopped, passes = threading.Event(), [0]

    def endless(lm: Any) -> None:
        sequences = lm.start([[5]])
        try:
            while True:
                sequences.extend([[6]])
                sequences.crop([1])
                passes[0] += 1
        except Cancelled:
            stopped.set()
            raise

    async def work(scheduler: Scheduler) -> None:
        task = asyncio.create_task(scheduler.run(endless))
        waiting = asyncio.create_task(scheduler.run(lambda lm: 7))
        await asyncio.sleep(0.05)
        with pytest.raises(Busy):
            await scheduler.run(lambda lm: 8)
        task.cancel()
        assert await asyncio.wait_for(waiting, 20) == 7
        assert stopped.is_set() and passes[0] > 0
        with pytest.raises(ZeroDivisionError):
            await scheduler.run(lambda lm: 1 // 0)

    serve(model, work, SchedulerLimits(runs=1, waiting_runs=1))


@dataclass(frozen=True)
class Against:
    """A steerer that makes a token unlikely."""

    token: int

    def declare(self, model: Any) -> Declaration:
        return Declaration()

    def steer(self, logits: torch.Tensor, seen: Seen) -> torch.Tensor:
        steered = logits.clone()
        steered[:, self.token] -= 50.0
        return steered


def test_steered_jobs_are_those_of_generate(model: LoadedModel) -> None:
    plain = job(model, 2)
    [(tokens, _)] = together(model, [plain])
    constraint = plain.constraint
    assert constraint is not None
    stack = Stack([Against(tokens[-3].id)])
    wanted = generate(model, list(plain.prompt), constraint, steer=stack, max_new_tokens=40)
    (steered, end), (same, _) = together(model, [replace(plain, steer=stack), plain])
    assert end.text == wanted.text and end.whole
    assert same == tokens
    assert [token.id for token in steered] != [token.id for token in tokens]
    assert np.isfinite([token.logprob for token in steered]).all()


def test_steered_jobs_share_passes_and_are_those_of_generate(model: LoadedModel) -> None:
    """Jobs of one stack that come and go: other prompts, grammars, budgets and ends, and one pass for all of a step."""
    [(tokens, _)] = together(model, [job(model, 2)])
    steerer = Against(tokens[-3].id)
    jobs = [replace(job(model, number), max_new_tokens=24 + 4 * number) for number in range(5)]
    jobs.append(replace(job(model, 5), constraint=None, max_new_tokens=9))
    # Stacks of their own with the same steerer, as requests bring them.
    steered = [replace(each, steer=Stack([steerer])) for each in jobs]

    async def work(scheduler: Scheduler) -> tuple[list[tuple[list[Token], Finished]], int]:
        calls = scheduler._model.calls
        before = calls.passes
        first = asyncio.create_task(read(scheduler, steered[0]))
        while not scheduler.counters.tokens:
            await asyncio.sleep(0.001)
        found = await asyncio.gather(first, *[read(scheduler, each) for each in steered[1:]])
        passes = calls.passes - before
        # The lane is empty now, and the next rows have the first numbers again.
        again = await read(scheduler, steered[3])
        assert [token.id for token in again[0]] == [token.id for token in found[3][0]]
        return found, passes

    found, passes = serve(model, work)
    for each, (_, end) in zip(jobs, found, strict=True):
        wanted = generate(model, list(each.prompt), each.constraint, steer=steerer, max_new_tokens=each.max_new_tokens)
        assert end.text == wanted.text, each
    assert passes < 0.7 * sum(end.completion_tokens for _, end in found)


def test_what_another_model_reads_is_not_known_of_the_prompt(model: LoadedModel) -> None:
    amateur = TransformersModel(load())
    [(_, end)] = together(model, [replace(job(model, 2), steer=Stack([Contrastive(amateur)]))])
    assert end.whole and end.cached_tokens == 0


def test_a_steered_prompt_that_is_read_in_pieces_is_a_prompt(model: LoadedModel) -> None:
    plain = replace(job(model, 2), constraint=job(model, 3).constraint)
    [(tokens, _)] = together(model, [plain])
    steerer = Against(tokens[-3].id)
    wanted = generate(model, list(plain.prompt), plain.constraint, steer=steerer, max_new_tokens=40)
    steered = replace(plain, steer=Stack([steerer]))
    [(_, end)] = together(model, [steered], SchedulerLimits(prompt_tokens=len(plain.prompt) // 3))
    assert end.text == wanted.text and end.whole


def test_each_mask_of_a_steered_job_is_made_once(model: LoadedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """And is there for the steerer, which speaks after it: the prompt is read in pieces, which are no text."""
    plain = replace(job(model, 2), constraint=guided.compile(guided.regex("[0-9]{3,9}"), model.vocabulary))
    fill, step, made = Matcher.fill, masking.step, [0]

    def counted(*arguments: Any) -> None:
        made[0] += 1
        fill(*arguments)

    def counted_steps(*arguments: Any) -> Any:
        found = step(*arguments)
        made[0] += sum(kept is not None for kept in found)
        return found

    monkeypatch.setattr(Matcher, "fill", counted)
    monkeypatch.setattr(masking, "step", counted_steps)
    monkeypatch.setattr("guided.draft.masks.fill_masks", None)
    pieces = SchedulerLimits(prompt_tokens=len(plain.prompt) // 3)
    seen: list[int] = []

    class Counts(Against):
        def steer(self, logits: torch.Tensor, seen_: Seen) -> torch.Tensor:
            seen.append(int(torch.isfinite(logits).sum(-1).max()))
            return logits

    [(tokens, end)] = together(model, [replace(plain, steer=Stack([Counts(0)]))], pieces)
    # The first is made with the matcher, and none follows the end of the text.
    assert end.whole and made[0] == len(tokens) - 1
    digits = sum(data is not None and data.isdigit() for data in model.vocabulary.tokens)
    assert max(seen[-len(tokens) :]) <= digits + len(model.vocabulary.eos_ids)
